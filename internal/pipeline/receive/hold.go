// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// The visibility of a message starts when it is polled. pollMargin is how long before the start of
// this invocation that may have been, besides the batch window.
const pollMargin = 5 * time.Second

// holder does step 5: it stores the manifest, then starts one execution. If either fails, nothing
// has to be undone.
type holder struct {
	*invocation
	hider  hider
	launch launcher
}

// hold puts all events that must wait into one flight.
func (h holder) hold(ctx context.Context, batch []message, events []pending, asked admitted) {
	m := h.manifest(events, asked)
	if len(m.Records) == 0 {
		return
	}
	for i := range events {
		if p := &events[i]; p.hold {
			n := p.about(journal.Held, "")
			n.Flight, n.Until = string(m.Flight), p.due.Time()
			h.note(n)
		}
	}
	c, turns := h.config, m.Turns()
	window := c.Queues.Window(h.lane == flight.Bulk)
	wake := slices.Min(turns)
	kind := c.Flight.KindFor(wake.Sub(h.now()))
	switch kind {
	case config.FlightStandard:
		wake = flight.Together(wake, turns, window) // each wake costs state transitions
	case config.FlightExpress:
		wake = min(wake, h.now().Add(c.Flight.ContinueAfter)) // an Express execution ends after this time
	}
	// VisibleUntil counts from the poll, because the visibility started then, before the batch
	// window and the invocation (design section 7).
	state := flight.State{
		Schema: flight.SchemaVersion, Flight: m.Flight, Remaining: flight.AllRemaining(m.Items()), Kind: kind,
		WakeAt:       flight.WakeText(wake.Time()),
		VisibleUntil: shard.MicrosOf(h.start.Add(c.Queues.Visibility - window - pollMargin)),
	}
	long := state
	if long.Extended = c.Index.Extended(window); long.Visible(slices.Max(turns), window) > state.VisibleUntil {
		state = long
	}
	if !h.launch.start(ctx, m, state, wake.Time()) {
		h.hider.backOff(ctx, batch, func(m *message) bool { return m.held && m.ReceiveCount > 1 })
		return
	}
	if state.Extended != 0 {
		h.extend(ctx, m, state, window)
	}
}

// extend extends the visibility of messages that wait longer than the queue's visibility. It does
// so once. The queue's visibility is short, so that the messages of a lost flight return soon. If
// an extension fails, the message returns too early, and a second flight holds it until the same
// time.
func (h holder) extend(ctx context.Context, m *flight.Manifest, s flight.State, window time.Duration) {
	longest := shard.MicrosOf(m.Received.Add(queue.MaxHold - time.Minute))
	waits := map[time.Duration][]string{}
	for r, turn := range m.Turns() {
		if until := min(s.Visible(turn, window), longest); until > s.VisibleUntil {
			wait := queue.WholeSeconds(until.Sub(h.now()))
			waits[wait] = append(waits[wait], m.Records[r].Message.Receipt)
		}
	}
	h.hider.hide(ctx, "extend visibility", waits)
}

// admittedAt returns when the row accepted this version, or the newer version for which this
// version waits. If a newer version is pending, the returned time is before the cap. So the cap
// grace applies to this version, and the newest version is written first.
func (h holder) admittedAt(p *pending, asked admitted) shard.Micros {
	at, row := shard.MicrosOf(asked.at), p.doc.after
	if row.Pending > p.Key && row.BurstStart != 0 {
		at = min(at, row.BurstStart.Add(h.config.For(string(p.Doc.Collection())).MaxWait)-1)
	}
	return at
}

// manifest collects the held messages, each with its unfinished events.
func (h holder) manifest(events []pending, asked admitted) *flight.Manifest {
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: asked.flight, Sink: h.sink, Lane: h.lane,
		Received: h.start.Add(-pollMargin),
	}
	at := make(map[*message]int, min(len(events), 10))
	// the first entry of each record, because most records have only one
	entries := make([]flight.Entry, 0, len(events))
	for i := range events {
		p := &events[i]
		// A message with a failed event is received again as a whole, so the flight takes none
		// of its events.
		if !p.hold || p.msg.failed {
			p.hold = false
			continue
		}
		r, ok := at[p.msg]
		if !ok {
			r = len(m.Records)
			at[p.msg] = r
			m.Records = append(m.Records, flight.Record{Message: p.msg.Message})
		}
		e := flight.Entry{
			Index: p.Index, Doc: p.Doc, Key: p.Key, Class: p.Class, Op: p.Op, Due: p.due,
			Admitted: h.admittedAt(p, asked),
		}
		if m.Records[r].Events != nil {
			m.Records[r].Events = append(m.Records[r].Events, e)
			continue
		}
		entries = append(entries, e)
		m.Records[r].Events = entries[len(entries)-1 : len(entries) : len(entries)]
	}
	return m
}
