package receive

import (
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// pollMargin is how much earlier than this invocation the visibility may have started, besides
// the batch window.
const pollMargin = 5 * time.Second

// flightID returns the id of this invocation's flight. ADMIT writes it into the rows before the
// manifest exists.
func (b *batch) flightID() flight.ID {
	if b.id == "" {
		b.id = b.h.NewID(b.start)
	}
	return b.id
}

// hold is step 5: it stores the manifest, then starts one execution. If either fails, nothing
// has to be undone.
func (b *batch) hold(ctx context.Context) {
	m := b.manifest()
	if len(m.Records) == 0 {
		return
	}
	for i := range b.events {
		if p := &b.events[i]; p.hold {
			n := b.about(p, journal.Held, "")
			n.Flight, n.Until = string(m.Flight), p.due.Time()
			b.h.note(n)
		}
	}
	c, turns := b.h.Config, m.Turns()
	window := c.Window(b.h.Lane == flight.Bulk)
	wake := slices.Min(turns)
	kind := c.Flight.KindFor(wake.Sub(b.now()))
	switch kind {
	case config.FlightStandard:
		wake = flight.Together(wake, turns, window) // each wake costs state transitions
	case config.FlightExpress:
		wake = min(wake, b.now().Add(c.Flight.ContinueAfter)) // the execution ends after this time
	}
	// VisibleUntil: the visibility started at the poll, before the batch window and the
	// invocation (design section 7).
	state := flight.State{
		Schema: flight.SchemaVersion, Flight: m.Flight, Remaining: flight.AllRemaining(m.Items()), Kind: kind,
		WakeAt:       flight.WakeText(wake.Time()),
		VisibleUntil: shard.MicrosOf(b.start.Add(c.Queues.Visibility - window - pollMargin)),
	}
	long := state
	if long.Extended = c.Extended(window); long.Visible(slices.Max(turns), window) > state.VisibleUntil {
		state = long
	}
	if !b.launch(ctx, m, state, wake.Time()) {
		b.backOff(ctx, func(i int) bool { return b.state[i].held && b.msgs[i].ReceiveCount > 1 })
		return
	}
	if state.Extended != 0 {
		b.extend(ctx, m, state, window)
	}
}

// extend extends the visibility, once, of messages that wait longer than the queue's visibility.
// The queue's visibility is short, so that the messages of a lost flight return soon. If an
// extension fails, the message returns too early, and a second flight holds it until the same
// time.
func (b *batch) extend(ctx context.Context, m *flight.Manifest, s flight.State, window time.Duration) {
	longest := shard.MicrosOf(m.Received.Add(queue.MaxHold - time.Minute))
	waits := map[time.Duration][]string{}
	for r, turn := range m.Turns() {
		if until := min(s.Visible(turn, window), longest); until > s.VisibleUntil {
			wait := queue.WholeSeconds(until.Sub(b.now()))
			waits[wait] = append(waits[wait], m.Records[r].Message.Receipt)
		}
	}
	b.holdBack(ctx, "extend visibility", waits)
}

// launch stores the manifest and then starts its execution. An execution without a manifest ends
// at once. A manifest without an execution stays until prune finds all of its events done.
func (b *batch) launch(ctx context.Context, m *flight.Manifest, state flight.State, wake time.Time) (started bool) {
	err := backoff.Do(ctx, b.h.Clock, func() error { return b.h.Flights.Put(ctx, m) })
	if err == nil {
		err = backoff.Do(ctx, b.h.Clock, func() error { return b.h.Launcher.Start(ctx, state) })
	}
	n := journal.Note{Step: journal.Launched, Flight: string(m.Flight), Count: len(m.Records), Until: wake}
	if err != nil {
		n.Step, n.Detail = journal.LaunchLost, err.Error()
	}
	b.h.note(n)
	return err == nil
}

// admittedAt returns when the row accepted this version, or the newer one that it waits behind.
// If this version is overtaken, the result is before the cap, so that it has cap grace and the
// newest version goes first.
func (b *batch) admittedAt(p *pending) shard.Micros {
	at, row := shard.MicrosOf(b.admitted), b.docs[p.doc].after
	if row.Pending > p.Key && row.BurstStart != 0 {
		at = min(at, row.BurstStart.Add(b.h.Config.For(string(p.Doc.Collection())).MaxWait)-1)
	}
	return at
}

// manifest collects the held messages, each with its events that are not done.
func (b *batch) manifest() *flight.Manifest {
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: b.flightID(), Sink: b.h.Sink, Lane: b.h.Lane,
		Received: b.start.Add(-pollMargin),
	}
	at := make(map[int]int, len(b.msgs))
	entries := make([]flight.Entry, 0, len(b.events)) // the first entry of each record: most have one
	for i := range b.events {
		p := &b.events[i]
		// A message with a failed event is received again as a whole, so the flight takes none
		// of its events.
		if !p.hold || b.state[p.msg].failed {
			p.hold = false
			continue
		}
		r, ok := at[p.msg]
		if !ok {
			r = len(m.Records)
			at[p.msg] = r
			m.Records = append(m.Records, flight.Record{Message: b.msgs[p.msg]})
		}
		e := flight.Entry{
			Index: p.Index, Doc: p.Doc, Key: p.Key, Class: p.Class, Op: p.Op, Due: p.due,
			Admitted: b.admittedAt(p),
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
