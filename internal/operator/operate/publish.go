// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Publication is a list of messages to publish.
type Publication struct {
	Messages []queue.Outgoing `json:"messages"`
	Lane     flight.Lane      `json:"lane,omitempty"` // if empty, live, or bulk for resyncs
	// Run, a ULID, makes all messages part of this resync run. With Run, Collection also moves their
	// events to that collection.
	Run        string `json:"run,omitempty"`
	Collection string `json:"collection,omitempty"`
	// Sink, if set, sends the messages only to this sink of their collections.
	Sink string `json:"sink,omitempty"`
	// Unchecked also sends messages that break the contract, as an upstream would. They become dead
	// letters.
	Unchecked bool `json:"unchecked,omitempty"`
}

// Published is the result of a publication. Refused messages were not sent.
type Published struct {
	Messages int       `json:"messages"`
	Events   int       `json:"events"`
	Refused  []Refusal `json:"refused,omitempty"`
	// Parts counts the messages of each part, if the stack has only a part of the documents.
	Parts map[int]int `json:"parts,omitempty"`
	// Sent has the events that were sent, at most the first thousand.
	Sent []SentEvent `json:"sent,omitempty"`
}

// SentEvent is an event of a message that was sent.
type SentEvent struct {
	Message   int         `json:"message"` // the position of the event's message
	Key       shard.DocID `json:"key,omitempty"`
	Version   string      `json:"version,omitempty"`
	OrderKey  string      `json:"order_key,omitempty"`
	Operation string      `json:"operation,omitempty"` // put or delete
	Skip      string      `json:"skip,omitempty"`      // why the source skips the event
	Invalid   string      `json:"invalid,omitempty"`   // why the event becomes a dead letter
	Empty     bool        `json:"empty,omitempty"`     // the source's projection selects nothing of the content
}

// Refusal is a message that no queue accepted, or that breaks the contract.
type Refusal struct {
	Message int    `json:"message"` // the position of the message
	Why     string `json:"why"`
}

// publisher sends messages.
type publisher struct {
	layout
	sender

	Sources *source.Set
	Clock   clock.Clock
}

// maxSentEvents is how many events an answer names.
const maxSentEvents = 1000

// Publish sends messages. It refuses and names a message that breaks the contract, and sends the
// others.
func (o *publisher) Publish(ctx context.Context, p Publication) (Published, error) {
	var done Published
	var run shard.Run
	var wrong error
	if p.Run != "" {
		run, wrong = runOf(p.Run)
	}
	err := cmp.Or(
		want(p.Lane == "" || p.Lane == flight.Live || p.Lane == flight.Bulk, "lane %q: want %s or %s", p.Lane,
			flight.Live, flight.Bulk),
		o.has(p.Sink), wrong)
	if err != nil {
		return done, err
	}
	list := make([]addressed, len(p.Messages))
	for i, out := range p.Messages {
		m := &list[i]
		if m.out, m.to, m.err = o.routed(p, out, run); m.err != nil {
			m.refused = true
			continue
		}
		for _, sink := range m.to.Sinks() {
			if p.Sink == "" || p.Sink == sink {
				m.sinks = append(m.sinks, sink)
			}
		}
	}
	failed := o.sendAll(ctx, list)
	for i := range list {
		switch m := &list[i]; {
		case m.refused && i < failed: // a caller who continues at the failed message gets the refusals after it then
			done.Refused = append(done.Refused, Refusal{i, m.err.Error()})
		case len(m.sinks) == 0 && !m.refused:
			done.Messages++
			o.sentTo(&done, m.to.Part)
			done.Events += len(m.to.Events)
			most := min(len(m.to.Events), maxSentEvents-len(done.Sent))
			done.Sent = append(done.Sent, o.sentEvents(i, m, m.to.Events[:most])...)
		case i == failed:
			err = fmt.Errorf("publish message %d (%d before it were sent): %w", i, done.Messages, m.err)
		}
	}
	return done, err
}

// routed returns the message in the form that the publication asks for, and its route. The error
// says why the message cannot be sent.
func (o *publisher) routed(p Publication, out queue.Outgoing, run shard.Run) (queue.Outgoing, feed.Route, error) {
	out = out.Foreign() // receive trusts messages of the operator's role (ADR 0057), but an upstream wrote this message
	m := queue.Message{Body: out.Body, Attributes: out.Attributes, Sent: o.Clock.Now()}
	if p.Run != "" {
		marked, err := feed.Resync(o.Config, o.Sources, m, run, p.Collection)
		if err != nil {
			return out, feed.Route{}, err
		}
		out.Body, m.Body = marked.Body, marked.Body
	}
	if why := out.Refusal(); why != nil {
		return out, feed.Route{}, refusal(why)
	}
	to := feed.RouteOf(o.Config, o.Sources, m)
	to.Lane = cmp.Or(p.Lane, to.Lane)
	if fault := to.Fault(); fault != nil && !p.Unchecked {
		return out, to, fmt.Errorf("%s%w", o.decodedBy(m, to.Sink), fault)
	}
	if err := o.reachesPart(to); err != nil {
		return out, to, err
	}
	if sinks := to.Sinks(); p.Sink != "" && !slices.Contains(sinks, p.Sink) {
		return out, to, fmt.Errorf("the message is not for sink %s, but for %s", p.Sink, strings.Join(sinks, ", "))
	}
	return out, to, nil
}

// decodedBy says which source decodes a message that names no source. It returns an empty text if
// the message names a source, or if there is only one source.
func (o *publisher) decodedBy(m queue.Message, sink string) string {
	names := slices.Sorted(maps.Keys(o.Config.Sources))
	by := o.Sources.At(sink).SourceOf(m)
	if _, named := m.Attributes[queue.AttrSource]; named || len(names) < 2 || by == "" {
		return ""
	}
	return fmt.Sprintf("it names no source (of %s), so %s decodes it: ", strings.Join(names, ", "), by)
}

func (o *publisher) sentEvents(message int, m *addressed, results []event.Result) (sent []SentEvent) {
	for _, r := range results {
		e := SentEvent{Message: message, Skip: r.Skip}
		switch {
		case r.Invalid != nil:
			e.Key, e.Invalid = r.Invalid.Doc, r.Invalid.Error()
		case r.Skip == "":
			e.Key, e.Version, e.Operation = r.Event.Doc, r.Event.Version, string(r.Event.Op)
			e.OrderKey = r.Event.Key.String()
			e.Empty = o.Sources.At(m.to.Sink).SelectsNothing(
				queue.Message{Body: m.out.Body, Attributes: m.out.Attributes, Sent: o.Clock.Now()}, r.Event)
		}
		sent = append(sent, e)
	}
	return sent
}

// refusal adds the fix to the reason why no queue accepts a message.
func refusal(why error) error {
	if errors.Is(why, queue.ErrTooLarge) {
		return fmt.Errorf("%w: send the payload by dataref", why)
	}
	return why
}
