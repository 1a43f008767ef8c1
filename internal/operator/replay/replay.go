// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Service replays the archive. All fields are required, except Other. It is safe for concurrent
// use.
type Service struct {
	Store   archive.Store
	Shards  shard.Store
	Sources *source.Set
	// Send sends to the bulk queue of a sink, in the stack of a part. It returns an error or nil for
	// each message, or nil if all were sent.
	Send func(ctx context.Context, part int, sink string, out []queue.Outgoing) []error
	// Other returns the rows of another part, or nil if Send does not reach its stack. Other is nil
	// if the stack has all documents.
	Other  func(part int) shard.Store
	Config *config.Config
	Clock  clock.Clock
}

// Order says what to replay.
type Order struct {
	From, To   time.Time // replay messages that lull received at From or later, and before To
	Collection shard.Collection
	Source     string
	Run        shard.Run
	DryRun     bool
}

// MaxStep is the most messages that a step reads.
const MaxStep = 500

// Outcome is what a replay does with an event.
type Outcome string

// The outcomes. Only Sent events are sent again. Every event stays in the archive.
const (
	Sent      Outcome = "sent"       // in a dry run: would be sent
	Other     Outcome = "other"      // the order does not name its collection or source
	Newer     Outcome = "newer"      // its row has something newer
	Dead      Outcome = "dead"       // its dead letter is parked: redrive the dead letter
	TakenBack Outcome = "taken_back" // an operator withdrew the version by a reset
	TooOld    Outcome = "too_old"    // its row has no committed version, and a tombstone may have expired
	Skipped   Outcome = "skipped"    // the settings of its source skip it
	Invalid   Outcome = "invalid"    // the settings cannot decode it, so that it would become a dead letter
	// Refused events cannot be sent again: the copy would be another event, or too large for the
	// queue.
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

// Step is the result of one step.
type Step struct {
	Next     string          `json:"next,omitempty"`   // where the next step continues; empty at the end
	At       time.Time       `json:"at,omitzero"`      // when the messages of this step's object were received
	Messages int             `json:"messages"`         // messages read
	Sent     int             `json:"sent"`             // messages sent; each copy of a message counts
	Parts    map[int]int     `json:"parts,omitempty"`  // messages sent by part, if there are several
	Events   map[Outcome]int `json:"events"`           // the events of these messages, by outcome
	Faults   []Fault         `json:"faults,omitempty"` // refused and invalid messages, and objects that cannot be read
}

// cursor is an object and the number of its messages that are done.
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
		return c, fmt.Errorf("%q is not a place in the archive: want the text that the step before returned", text)
	}
	return c, nil
}

func (c cursor) String() string { return fmt.Sprintf("%s:%d", c.name, c.done) }

// wholeObject is the number of messages done if the next step begins with the next object.
const wholeObject = archive.MaxMessages

// Step replays the next part of an order, from the cursor after. The part is at most most messages
// of one object. After an error, repeat the step.
func (s *Service) Step(ctx context.Context, o Order, after string, most int) (Step, error) {
	at, err := parseCursor(after)
	if err != nil {
		return Step{}, err
	}
	step := Step{Next: after, Events: map[Outcome]int{}}
	if at.name == "" || at.done >= wholeObject {
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
	case errors.Is(err, archive.ErrNotFound): // the object expired in the meantime
	case err != nil:
		return step, fmt.Errorf("replay: %w", err)
	}
	msgs = msgs[min(at.done, len(msgs)):]
	looked := msgs[:min(max(most, 1), MaxStep, len(msgs))]
	at.done += len(looked)
	if len(looked) == len(msgs) {
		at.done = wholeObject
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

// part is the messages of one object that a step replays.
type part struct {
	*Service
	order   Order
	sink    string
	sources *source.Set // as the queue of the sink uses them
	object  archive.Name
	docs    []shard.DocID // the documents of the events that the order selects
	rows    map[shard.DocID]shard.Row
	step    *Step
}

// message is a message of a part with its events.
type message struct {
	queue.Message
	events []event.Result
	want   []bool // for each event: whether to send it
}

func (p *part) count(o Outcome, n int) { p.step.Events[o] += n }

// fault records why a message or object could not be replayed. A message has one fault, although it
// may contain hundreds of events.
func (p *part) fault(o Outcome, message, why string) {
	if last := len(p.step.Faults) - 1; last < 0 || p.step.Faults[last].Message != message {
		p.step.Faults = append(p.step.Faults, Fault{p.object, message, o, why})
	}
}

func (p *part) replay(ctx context.Context, msgs []queue.Message) error {
	if _, known := p.Config.Sinks[p.sink]; !known {
		p.count(Refused, len(msgs))
		p.fault(Refused, "", fmt.Sprintf("sinks.%s: the settings no longer have this sink: to replay its messages, add it again",
			p.sink))
		return nil
	}
	p.sources = p.Sources.At(p.sink)
	list := make([]message, len(msgs))
	for i, m := range msgs {
		list[i] = p.decode(m)
	}
	if err := p.read(ctx); err != nil {
		return err
	}
	out := map[int][]queue.Outgoing{} // by part
	for i := range list {
		if part, copies := p.copies(&list[i]); len(copies) > 0 {
			out[part] = append(out[part], copies...)
			p.step.Sent += len(copies)
		}
	}
	if p.Config.Parts.Spread() {
		p.step.Parts = make(map[int]int, len(out))
		for part, copies := range out {
			p.step.Parts[part] = len(copies)
		}
	}
	if p.order.DryRun {
		return nil
	}
	for _, part := range slices.Sorted(maps.Keys(out)) {
		for _, err := range p.Send(ctx, part, p.sink, out[part]) {
			if err != nil {
				return fmt.Errorf("send: %w", err)
			}
		}
	}
	return nil
}

// read reads the rows, each in the table of its part.
func (p *part) read(ctx context.Context) error {
	docs := map[int][]shard.DocID{}
	for _, doc := range p.docs {
		docs[p.Config.PartOf(doc)] = append(docs[p.Config.PartOf(doc)], doc)
	}
	p.rows = make(map[shard.DocID]shard.Row, len(p.docs))
	for of, docs := range docs {
		from := p.Shards
		if !p.Config.Ours(docs[0]) {
			from = p.Other(of)
		}
		if from == nil {
			continue // moved refuses the events
		}
		read, err := (rows.Table{Store: from, Clock: p.Clock}).Of(ctx, docs, shard.Consistent)
		if err != nil {
			return fmt.Errorf("read rows of part %d: %w", of, err)
		}
		maps.Copy(p.rows, read)
	}
	return nil
}

// decode decodes a message, and marks the events that the order selects.
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

// copies returns the messages to send, and to which part. If all events are to be sent, it returns
// one copy of the message. Otherwise it returns a copy for each event to send.
func (p *part) copies(m *message) (part int, out []queue.Outgoing) {
	for i, want := range m.want {
		if want {
			if o := p.outcome(m, i); o != Sent {
				p.count(o, 1)
				m.want[i] = false
			}
		}
	}
	part, sending := p.moved(m)
	switch {
	case sending == 0:
		return part, nil
	case m.whole():
		return part, p.copy(m, nil, sending, -1)
	}
	for i, want := range m.want {
		if want {
			out = p.copy(m, out, 1, i)
		}
	}
	return part, out
}

// copy appends to out a copy of the message for the resync run. If only is an event's position, the
// copy is for that event alone.
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

// outcome reads the row of an event's document, and decides whether the event is sent.
func (p *part) outcome(m *message, i int) Outcome {
	e := m.events[i].Event
	row := p.rows[e.Doc]
	switch {
	case row.Beyond(e.Key):
		return Newer
	case row.Took(e.Key):
		return TakenBack
	case row.Dead.SameEvent(e.Key):
		return Dead
	case row.Committed == "" && p.Config.Lifecycle.Aged(m.FirstSent(), p.Clock.Now()):
		return TooOld
	}
	return Sent
}

// again returns a copy of the message for the resync run, with all events or with only one. Its
// events must stay the same. The copy is sent now, so that its run is not in the future. But it
// keeps the time when the message was first sent.
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
			return out, errors.New("in a resync run the event would have another version or content: publish the document again")
		}
	}
	out.Body, out.Attributes = one.Body, one.Attributes
	return out, out.Refusal()
}
