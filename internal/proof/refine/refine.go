// SPDX-License-Identifier: Apache-2.0

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

// Parting is a difference between code and model: a step of the code that the model does not have.
type Parting struct {
	At   time.Duration // since the simulation began
	Step Step
	Why  string
}

func (p Parting) String() string { return fmt.Sprintf("%s at %s: %s", p.Step, p.At, p.Why) }

// Settings configure a Checker.
type Settings struct {
	Versions    bool // the sink has versions
	MaxRefusals int
	Upstream    sim.Upstream // one document, and at most as many versions as the model has
	Sources     *source.Set
}

// Checker follows the one document of a simulated run. Pass its method [Checker.See] as
// sim.Options.Watch. Only one goroutine at a time may use a Checker.
type Checker struct {
	Counts map[Step]int // how often each step was an edge of the model

	doc         shard.DocID
	keys        []shard.OrderKey // in ascending order: the model's version 1 is the first
	deletes     model.KeySet
	sink        model.SinkKind
	maxRefusals uint8
	now         time.Duration
	found       []Parting
	said        bool // a fault of the current step was already reported

	row       shard.Row
	lastWrite shard.Micros // the time of the last committed claim
	leaseOver bool
	claims    map[shard.Token]*claim
	content   model.Key // the version in the sink
	fence     shard.Micros
	deletedAt time.Duration
	letters   [model.MaxKey + 1]model.DeadLetter
	stored    model.KeySet // versions whose dead letter is parked

	messages map[*emulation.Message]*message
	receipts map[string]*message
	acting   map[int64]*holder // the holder for which an invocation acts: its own batch, or its flight
	flights  map[flight.ID]*holder
	holders  map[string]*holder
	live     map[int64]bool
	deleter  *holder // the holder that deletes the next message of a queue; nil if unknown
	index    bool    // the deleter is a flight
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
	known    model.KeySet // versions that the holder has seen done
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
	phase    model.Phase // Sent, Applied, or Waiting after the claim is over
	sent     int         // the number of requests that were sent
	open     int         // how many requests may still be applied
	copies   int         // how many copies of other documents or versions may still be applied
	refused  bool        // whether the last answer refused the item
	refusals uint8       // the number of refusals in the row at the time of the claim
	message  *message
}

// most is how many partings are kept. Usually only the first one matters.
const most = 3

// New returns a Checker for a simulated run with this upstream.
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

// judge counts a step that the model has. A step that the model does not have is reported once.
func (c *Checker) judge(s Step, has bool, format string, args ...any) {
	switch {
	case has:
		c.count(s)
	case !c.said:
		c.part(s, format, args...)
	}
}

// part reports a step that the model does not have. part always returns false.
func (c *Checker) part(s Step, format string, args ...any) bool {
	if c.said = true; len(c.found) < most {
		c.found = append(c.found, Parting{c.now, s, fmt.Sprintf(format, args...)})
	}
	return false
}

// key returns the model's key for an order key.
func (c *Checker) key(k shard.OrderKey) model.Key {
	switch k {
	case "":
		return model.None
	case shard.Lowest:
		return model.Lowest
	}
	i, known := slices.BinarySearch(c.keys, k)
	if !known {
		c.part("a row", "the upstream never sent %s", k)
	}
	return model.Key(i + 1)
}

// set returns the model's keys for order keys.
func (c *Checker) set(keys ...shard.OrderKey) (set model.KeySet) {
	for _, k := range keys {
		set |= model.Keys(c.key(k))
	}
	return set
}

// See follows one step of the simulated run.
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
	case sim.Glanced: // the code uses such an image only for hints
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

// begins notes a new invocation and the holder for which it acts.
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

// ends handles the end of an invocation, by itself or by a kill. The invocation's claims do not
// change.
func (c *Checker) ends(by int64) {
	for _, cl := range c.claims {
		if cl.by == by && cl.phase != model.Waiting {
			c.count(gaveUp)
		}
	}
	delete(c.live, by)
}

// holderOf returns the holder for which an invocation acts.
func (c *Checker) holderOf(by int64) *holder { return cmp.Or(c.acting[by], &holder{}) }

// observe notes which versions the image of a row shows as done. A write may arrive after its
// sender has ended. Then the flight does not learn what the row has.
func (c *Checker) observe(by int64, image shard.Row) {
	if c.live[by] {
		c.holderOf(by).known |= c.done(image)
	}
}

func (c *Checker) count(s Step) { c.Counts[s]++ }
