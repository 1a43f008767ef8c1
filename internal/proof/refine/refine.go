package refine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/proof/model"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/source"
)

// Parting is where code and model part: a real step that the model does not have.
type Parting struct {
	At   time.Duration // since the simulation began
	Step Step
	Why  string
}

func (p Parting) String() string { return fmt.Sprintf("%s at %s: %s", p.Step, p.At, p.Why) }

// Settings of a Checker.
type Settings struct {
	Versions    bool // of the sink
	MaxRefusals int
	Upstream    sim.Upstream // one document, and at most as many versions as the model has
	Sources     *source.Set
}

// Checker follows the one document of a world. Its [Checker.See] is for sim.Options.Watch. It must
// be used by one goroutine at a time.
type Checker struct {
	Counts map[Step]int // of the steps that were edges of the model

	doc         shard.DocID
	keys        []shard.OrderKey // in their order: the model's version 1 is the first
	deletes     model.KeySet
	sink        model.SinkKind
	maxRefusals uint8
	now         time.Duration
	found       []Parting
	said        bool // that something is wrong with the step that is seen

	row       shard.Row
	lastWrite shard.Micros // the time of the last committed claim
	leaseOver bool
	claims    map[shard.Token]*claim
	content   model.Key // of the sink
	fence     shard.Micros
	deletedAt time.Duration
	letters   [model.MaxKey + 1]model.DeadLetter
	stored    model.KeySet // of the dead letters that are parked

	messages map[*emulation.Message]*message
	receipts map[string]*message
	acting   map[int64]*holder // who an invocation acts for: itself with its batch, or its flight
	flights  map[flight.ID]*holder
	holders  map[string]*holder
	live     map[int64]bool
	deleter  *holder // who deletes the next message of a queue; nil if unknown
	index    bool    // ... which is a flight
}

// message is one message of a queue.
type message struct {
	keys model.KeySet
	dead bool
	moved,
	gone bool
}

// holder is an invocation of receive or dlq with its batch, or a flight.
type holder struct {
	messages []*message
	known    model.KeySet // versions that it has seen done
}

// seen returns the versions that a holder has seen done; none for a nil holder.
func (h *holder) seen() model.KeySet {
	if h == nil {
		return 0
	}
	return h.known
}

// claim is one lease that was granted.
type claim struct {
	by       int64
	token    shard.Token
	key      model.Key
	at       shard.Micros
	ahead    bool
	phase    model.Phase // Sent, Applied, or Waiting where it is over
	sent     int         // requests
	open     int         // ... of which something may still be applied
	copies   int         // of another document's or version's, in the same way
	refused  bool        // the last item that was answered
	refusals uint8       // as the row showed them
	message  *message
}

// most is how many partings are kept. The first is the one that matters.
const most = 3

// New returns a Checker of a world with this upstream.
func New(s Settings) (*Checker, error) {
	c := &Checker{
		Counts: map[Step]int{}, maxRefusals: uint8(s.MaxRefusals), sink: model.Forgetful,
		claims: map[shard.Token]*claim{}, messages: map[*emulation.Message]*message{}, receipts: map[string]*message{},
		acting: map[int64]*holder{}, flights: map[flight.ID]*holder{}, holders: map[string]*holder{},
		live: map[int64]bool{},
	}
	if !s.Versions {
		c.sink = model.Plain
	}
	ops := map[shard.OrderKey]shard.Operation{}
	for _, a := range s.Upstream.Arrivals {
		for _, r := range s.Sources.Decode(queue.Message{Body: a.Message.Body, Attributes: a.Message.Attributes}) {
			e := r.Event
			if r.Invalid != nil || r.Skip != "" || c.doc != "" && e.Doc != c.doc || !e.NotBefore.IsZero() {
				return nil, fmt.Errorf("event %s %s: want versions of one document, without notBefore", e.Doc, e.Version)
			}
			c.doc, ops[e.Key] = e.Doc, e.Op
		}
	}
	c.keys = slices.Sorted(maps.Keys(ops))
	if len(c.keys) > int(model.MaxKey) {
		return nil, fmt.Errorf("%d versions: the model has %d", len(c.keys), model.MaxKey)
	}
	for i, k := range c.keys {
		if ops[k] == shard.Delete {
			c.deletes |= model.Keys(model.Key(i + 1))
		}
	}
	c.row.Doc = c.doc
	return c, nil
}

// Partings returns the differences between code and model, the first one first.
func (c *Checker) Partings() []Parting { return c.found }

// judge counts a step that the model has. It reports a step that the model does not have, unless
// the same fault was reported before.
func (c *Checker) judge(s Step, has bool, format string, args ...any) {
	switch {
	case has:
		c.count(s)
	case !c.said:
		c.part(s, format, args...)
	}
}

// part notes a step that the model does not have. It is false, as the step is.
func (c *Checker) part(s Step, format string, args ...any) bool {
	if c.said = true; len(c.found) < most {
		c.found = append(c.found, Parting{c.now, s, fmt.Sprintf(format, args...)})
	}
	return false
}

// key is the model's name of an order key.
func (c *Checker) key(k shard.OrderKey) model.Key {
	switch k {
	case "":
		return model.None
	case shard.Lowest:
		return model.Lowest
	}
	i, known := slices.BinarySearch(c.keys, k)
	if !known {
		c.part("a row", "nobody sent %s", k)
	}
	return model.Key(i + 1)
}

// set are the model's names of order keys.
func (c *Checker) set(keys ...shard.OrderKey) (set model.KeySet) {
	for _, k := range keys {
		set |= model.Keys(c.key(k))
	}
	return set
}

// See takes in one step of the world.
func (c *Checker) See(s sim.Step) {
	c.now, c.said = s.At, false
	switch s.What {
	case sim.Wrote, sim.Refused:
		if s.Write.Doc == c.doc {
			c.wrote(s)
		}
	case sim.Read:
		for _, r := range s.Rows {
			if r.Doc == c.doc {
				c.observe(s.By, r)
			}
		}
	case sim.Glanced: // of such an image only hints are taken
	case sim.Sent, sim.Answered, sim.Landed:
		c.request(s)
	case sim.Batched:
		c.begins(s.By, c.batch(s.Receipts))
	case sim.Turned:
		c.begins(s.By, c.flights[s.Flight])
	case sim.Ended:
		c.ends(s.By)
	case sim.Held:
		c.holds(s)
	default:
		c.message(s)
	}
}

// begins is an invocation, and who it acts for.
func (c *Checker) begins(by int64, h *holder) { c.live[by], c.acting[by] = true, h }

// batch returns the messages that an invocation of receive or dlq was given.
func (c *Checker) batch(receipts []string) *holder {
	h := &holder{}
	for _, r := range receipts {
		h.messages = append(h.messages, c.receipts[r])
		c.holders[r] = h
	}
	return h
}

// ends is the end of an invocation, by itself or by a kill. Its claims stay what they are.
func (c *Checker) ends(by int64) {
	for _, cl := range c.claims {
		if cl.by == by && cl.phase != model.Waiting {
			c.count(gaveUp)
		}
	}
	delete(c.live, by)
}

// of is who an invocation acts for.
func (c *Checker) of(by int64) *holder { return cmp.Or(c.acting[by], &holder{}) }

// observe notes what the image of a row tells who reads it.
func (c *Checker) observe(by int64, image shard.Row) { c.of(by).known |= c.done(image) }

func (c *Checker) count(s Step) { c.Counts[s]++ }
