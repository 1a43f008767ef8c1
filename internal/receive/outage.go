package receive

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// maxOutageHold is the longest that a message waits for the table between two tries.
const maxOutageHold = 15 * time.Minute

// outage is what happens while the table cannot be reached. Closed: the messages wait, longer at each receive, up to 15 minutes.
// Open (an operator's choice that suspends promise 1): a flight of their own also writes them to the sink at once. Either way none is
// acknowledged: when the table is back they are judged as if nothing had been written.
func (b *batch) outage(ctx context.Context) {
	var receipts []string
	count := 1
	for i := range b.events {
		if p := &b.events[i]; b.docs[p.doc].err != nil {
			m := b.msgs[p.msg]
			receipts = append(receipts, m.Receipt)
			count = max(count, m.ReceiveCount)
		}
	}
	wait := maxOutageHold
	if count < 8 {
		wait = min(wait, b.h.Config.Queues.Visibility<<(count-1))
	}
	b.h.note(journal.Note{Step: journal.Unreachable, Count: len(receipts), Until: b.h.Clock.Now().Add(wait)})
	if b.h.Config.TableOutage == config.TableOutageOpen && count == 1 { // once is enough: a redelivery brings nothing new
		b.writeOpen(ctx)
	}
	_ = b.h.Ingest.Hold(ctx, receipts, wait) // a refused extension changes nothing: they come back earlier
}

// writeOpen starts a flight that writes the newest version of each document without asking its row.
func (b *batch) writeOpen(ctx context.Context) {
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: b.h.NewID(), Sink: b.h.Sink, Lane: b.h.Lane, Received: b.start.Add(-pollMargin),
	}
	for i := range b.docs {
		d := &b.docs[i]
		if d.err == nil {
			continue
		}
		p := b.top(d)
		m.Records = append(m.Records, flight.Record{Message: b.msgs[p.msg], Events: []flight.Entry{{
			Index: p.Index, Doc: p.Doc, Key: p.Key, Class: p.Class, Op: p.Op, Due: shard.MicrosOf(b.start), Admitted: shard.MicrosOf(b.start),
		}}})
	}
	b.launch(ctx, m, flight.State{
		Schema: flight.SchemaVersion, Flight: m.Flight, Left: flight.AllLeft(m.Items()), WakeAt: flight.WakeText(b.start), Open: true,
	}, b.start)
}
