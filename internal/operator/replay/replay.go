package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/archive"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Service replays. All fields are required. It is safe for concurrent use.
type Service struct {
	Store   archive.Store
	Shards  shard.Store
	Sources *source.Set
	// Send sends to the bulk queue of a sink, one error or nil for each message, nil for none.
	Send   func(ctx context.Context, sink string, out []queue.Outgoing) []error
	Config *config.Config
	Clock  clock.Clock
}

// Order says what to replay.
type Order struct {
	From, To   time.Time // when lull received it: at From or later, before To
	Collection shard.Collection
	Source     string
	Run        shard.Run
	DryRun     bool
}

// MaxStep is the most messages that a step looks at.
const MaxStep = 500

// Outcome is what becomes of an event.
type Outcome string

// The outcomes. All but Sent leave the event where it is, in the archive.
const (
	Sent    Outcome = "sent"    // or would be, in a dry run
	Other   Outcome = "other"   // of another collection or source than the order's
	Newer   Outcome = "newer"   // its row knows something newer
	Dead    Outcome = "dead"    // its dead letter is parked: redrive that
	TooOld  Outcome = "too_old" // nothing is committed, and its tombstone may be gone
	Skipped Outcome = "skipped" // by its source's rule
	Invalid Outcome = "invalid" // the settings do not decode it: it was a dead letter, or is one now
	// Refused cannot be sent again: it would be another event, or be too large for the queue.
	Refused Outcome = "refused"
)

// Fault is something that could not be replayed, and why.
type Fault struct {
	Object  archive.Name `json:"object"`
	Message string       `json:"message_id,omitempty"` // empty for the whole object
	Outcome Outcome      `json:"outcome"`
	Why     string       `json:"why"`
}

// Unreadable is the outcome of an object that cannot be read.
const Unreadable Outcome = "unreadable"

// Step is what became of a part of the archive.
type Step struct {
	Next     string          `json:"next,omitempty"`   // where the next step goes on; empty at the end
	At       time.Time       `json:"at,omitzero"`      // when the last message of it was received
	Messages int             `json:"messages"`         // looked at
	Sent     int             `json:"sent"`             // messages sent, copies of one counted each
	Events   map[Outcome]int `json:"events"`           // of those messages
	Faults   []Fault         `json:"faults,omitempty"` // refused and invalid messages, and objects that cannot be read
}

// cursor is an object, and how many of its messages are done.
type cursor struct {
	name archive.Name
	done int
}

func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	colon := strings.LastIndex(text, ":")
	c.name = archive.Name(text[:max(colon, 0)])
	if c.done, err = strconv.Atoi(text[colon+1:]); colon < 0 || err != nil || c.done < 0 {
		return c, fmt.Errorf("%q is not a place in the archive", text)
	}
	return c, nil
}

func (c cursor) String() string { return fmt.Sprintf("%s:%d", c.name, c.done) }

// all is done of an object behind which a step goes on.
const all = archive.MaxMessages

// Step replays the next part of an order, at most so many messages of one object, from where after
// says. An error says that nothing of the step counts: repeat it.
func (s *Service) Step(ctx context.Context, o Order, after string, most int) (Step, error) {
	at, err := parseCursor(after)
	if err != nil {
		return Step{}, err
	}
	step := Step{Next: after, Events: map[Outcome]int{}}
	if at.name == "" || at.done >= all {
		behind := max(archive.After(o.From), at.name)
		list, _, err := s.Store.List(ctx, behind, archive.After(o.To), 1)
		if err != nil {
			return step, fmt.Errorf("replay: %w", err)
		}
		if len(list) == 0 {
			step.Next = ""
			return step, nil
		}
		at = cursor{name: list[0].Name}
	}
	parts, msgs, err := archive.Read(ctx, s.Store, at.name)
	step.At = parts.Received
	var bad *archive.Unreadable
	switch {
	case errors.As(err, &bad):
		step.Faults = append(step.Faults, Fault{Object: at.name, Outcome: Unreadable, Why: bad.Err.Error()})
	case errors.Is(err, archive.ErrNotFound): // it expired meanwhile
	case err != nil:
		return step, fmt.Errorf("replay: %w", err)
	}
	msgs = msgs[min(at.done, len(msgs)):]
	looked := msgs[:min(max(most, 1), MaxStep, len(msgs))]
	at.done += len(looked)
	if len(looked) == len(msgs) {
		at.done = all
	}
	if len(looked) > 0 {
		p := part{Service: s, order: o, sink: parts.Sink, object: at.name, step: &step}
		if err := p.replay(ctx, looked); err != nil {
			return step, fmt.Errorf("replay: %w", err)
		}
	}
	step.Next, step.Messages = at.String(), len(looked)
	return step, nil
}

// part are messages of one object.
type part struct {
	*Service
	order   Order
	sink    string
	sources *source.Set // of the sink
	object  archive.Name
	docs    []shard.DocID // of the events that are wanted
	rows    map[shard.DocID]shard.Row
	step    *Step
}

// message is a message of a part with what it decodes to.
type message struct {
	queue.Message
	events []event.Result
	want   []bool // by event: it is to be sent
}

func (p *part) count(o Outcome, n int) { p.step.Events[o] += n }

// fault names what could not be replayed: a message once in a row, because it may hold hundreds of
// events.
func (p *part) fault(o Outcome, message, why string) {
	if last := len(p.step.Faults) - 1; last < 0 || p.step.Faults[last].Message != message {
		p.step.Faults = append(p.step.Faults, Fault{p.object, message, o, why})
	}
}

func (p *part) replay(ctx context.Context, msgs []queue.Message) error {
	if _, known := p.Config.Sinks[p.sink]; !known {
		p.count(Refused, len(msgs))
		p.fault(Refused, "", fmt.Sprintf("sinks.%s: there is no such sink any more", p.sink))
		return nil
	}
	p.sources = p.Sources.At(p.sink)
	list := make([]message, len(msgs))
	for i, m := range msgs {
		list[i] = p.decode(m)
	}
	var err error
	if p.rows, err = (rows.Table{Store: p.Shards, Clock: p.Clock}).Of(ctx, p.docs, shard.Consistent); err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	var out []queue.Outgoing
	for i := range list {
		out = append(out, p.copies(&list[i])...)
	}
	p.step.Sent = len(out)
	if p.order.DryRun || len(out) == 0 {
		return nil
	}
	for _, err := range p.Send(ctx, p.sink, out) {
		if err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// decode makes the events of a message, and says which of them the order is about.
func (p *part) decode(a queue.Message) message {
	m := message{Message: a}
	m.events = p.sources.Decode(m.Message)
	m.want = make([]bool, len(m.events))
	if p.order.Source != "" && p.sources.SourceOf(m.Message) != p.order.Source {
		p.count(Other, len(m.events))
		return m
	}
	for i, r := range m.events {
		doc := r.Event.Doc
		switch own := p.Config.SinkOf(doc); {
		case r.Invalid != nil:
			p.count(Invalid, 1)
			p.fault(Invalid, m.ID, r.Invalid.Error())
		case r.Skip != "":
			p.count(Skipped, 1)
		case own != p.sink, p.order.Collection != "" && doc.Collection() != p.order.Collection:
			p.count(Other, 1)
		default:
			m.want[i] = true
			p.docs = append(p.docs, doc)
		}
	}
	return m
}

// copies are the messages to send: the message itself where all of its events go, otherwise one for
// each that does.
func (p *part) copies(m *message) (out []queue.Outgoing) {
	sending, whole := 0, true
	for i, want := range m.want {
		if want {
			if o := p.outcome(m, i); o != Sent {
				p.count(o, 1)
				m.want[i] = false
			}
		}
		if m.want[i] {
			sending++
		} else if m.events[i].Skip == "" {
			whole = false
		}
	}
	switch {
	case sending == 0:
		return nil
	case whole:
		return p.copy(m, nil, sending, -1)
	}
	for i, want := range m.want {
		if want {
			out = p.copy(m, out, 1, i)
		}
	}
	return out
}

// copy adds the message as one of the run, or its copy for one event.
func (p *part) copy(m *message, out []queue.Outgoing, events, only int) []queue.Outgoing {
	one, err := p.again(m, only)
	if err == nil {
		p.count(Sent, events)
		return append(out, one)
	}
	p.count(Refused, events)
	p.fault(Refused, m.ID, err.Error())
	return out
}

// outcome is what becomes of an event by its row.
func (p *part) outcome(m *message, i int) Outcome {
	e := m.events[i].Event
	row := p.rows[e.Doc]
	switch {
	case row.Beyond(e.Key):
		return Newer
	case row.Dead.SameEvent(e.Key):
		return Dead
	case row.Committed == "" && p.Config.Lifecycle.Aged(m.FirstSent(), p.Clock.Now()):
		return TooOld
	}
	return Sent
}

// again is the message as one of the run, or its copy for one event. It must say what it said. It
// is sent now, so that the run is not ahead of its time, but keeps when it was first sent.
func (p *part) again(m *message, only int) (queue.Outgoing, error) {
	out, err := deadletter.Copy(m.Body, m.Attributes, m.FirstSent(), 0)
	if err != nil {
		return out, err
	}
	if only >= 0 {
		out.Attributes[queue.AttrEvent] = queue.Text(strconv.Itoa(only))
	}
	one := queue.Message{ID: m.ID, Body: out.Body, Attributes: out.Attributes, Sent: p.Clock.Now(), ReceiveCount: 1}
	if one, err = p.sources.Resync(one, p.order.Run, ""); err != nil {
		return out, err
	}
	for i, r := range p.sources.Decode(one) {
		if m.want[i] && (only < 0 || i == only) && !r.Event.Key.SameEvent(m.events[i].Event.Key) {
			return out, errors.New("as one of a resync run it would be another event")
		}
	}
	out.Body, out.Attributes = one.Body, one.Attributes
	return out, out.Refusal()
}
