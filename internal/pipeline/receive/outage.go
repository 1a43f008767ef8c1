package receive

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// outage handles a table that cannot be reached. Closed: the messages wait, longer at each
// receive, up to 15 minutes. Open (an operator's choice that suspends promise 1): a separate
// flight also writes them to the sink at once. In both modes no message is acknowledged. When
// the table is back, they are judged as if nothing had been written.
func (b *batch) outage(ctx context.Context) {
	lost := make([]bool, len(b.msgs))
	var cause error
	for i := range b.events {
		p := &b.events[i]
		if err := b.docs[p.doc].err; err != nil {
			lost[p.msg], cause = true, err
		}
	}
	n := journal.Note{Step: journal.Unreachable, Detail: backoff.Class(cause)}
	for i := range b.msgs {
		if lost[i] {
			until := b.h.Clock.Now().Add(b.outageHold(b.msgs[i].ReceiveCount))
			n.Count, n.Until = n.Count+1, latest(n.Until, until)
		}
	}
	b.h.note(n)
	if b.h.Config.TableOutage == config.TableOutageOpen && !b.readable { // a table that can be read has no outage
		b.writeOpen(ctx)
	}
	b.backOff(ctx, func(i int) bool { return lost[i] })
}

// backOff hides messages that could not be held, longer at each receive. Something is broken and
// must not be asked all the time, and each receive costs money.
func (b *batch) backOff(ctx context.Context, which func(i int) bool) {
	// Receipt handles by wait: one call of Hold serves all messages with the same wait.
	waits := map[time.Duration][]string{}
	for i := range b.msgs {
		if which(i) {
			wait := b.outageHold(b.msgs[i].ReceiveCount)
			waits[wait] = append(waits[wait], b.msgs[i].Receipt)
		}
	}
	b.holdBack(ctx, "keep messages away", waits)
}

// holdBack makes messages invisible, grouped by how long. If a call is refused, its messages
// only return earlier. In a backlog almost every message has another wait, so the calls run in
// parallel. Otherwise they would take longer than the function's time.
func (b *batch) holdBack(ctx context.Context, call string, waits map[time.Duration][]string) {
	each := slices.Sorted(maps.Keys(waits))
	errs := fanout.Map(b.h.Parallel, maxParallel, each, func(wait time.Duration) error {
		return queue.Failed(b.h.Ingest.Hold(ctx, waits[wait], wait))
	})
	for _, err := range errs {
		b.lost(call, err)
	}
}

// outageHold returns the wait of a message that was received so often: the queue's visibility,
// doubled at each receive.
func (b *batch) outageHold(count int) time.Duration {
	// The bound keeps the shift small, so that the product cannot overflow.
	if count >= 8 {
		return config.TableHold
	}
	return min(config.TableHold, b.h.Config.Queues.Visibility<<max(count-1, 0))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// writeOpen starts a flight that writes versions without asking their rows: for each document,
// the version that could not be admitted. It need not be the newest, because a newer one may be
// known to be a dead letter. Only messages of a first receive are written: a redelivery brings
// nothing new.
func (b *batch) writeOpen(ctx context.Context) {
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: b.h.NewID(b.start), Sink: b.h.Sink, Lane: b.h.Lane,
		Received: b.start.Add(-pollMargin),
	}
	for i := range b.docs {
		d := &b.docs[i]
		p := &b.events[d.asked]
		if d.err == nil || b.msgs[p.msg].ReceiveCount > 1 {
			continue
		}
		m.Records = append(m.Records, flight.Record{Message: b.msgs[p.msg], Events: []flight.Entry{{
			// No row admitted it: see flight.Entry.
			Index: p.Index, Doc: p.Doc, Key: p.Key, Class: p.Class, Op: p.Op, Due: shard.MicrosOf(b.start),
		}}})
	}
	if len(m.Records) == 0 {
		return
	}
	b.launch(ctx, m, flight.State{
		Schema: flight.SchemaVersion, Flight: m.Flight, Remaining: flight.AllRemaining(m.Items()),
		WakeAt: flight.WakeText(b.start), Outage: true, Kind: b.h.Config.Flight.KindFor(0),
	}, b.start)
}
