// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// outage handles a table that cannot be reached. With the setting closed, the messages wait, longer
// at each receive, up to 15 minutes. With open (an operator's choice that suspends promise 1), a
// separate flight also writes the messages to the sink at once. In both modes no message is
// acknowledged. When the table is back, all messages are judged as if nothing had been written.
type outage struct {
	*invocation
	hider  hider
	launch launcher
	newID  func(time.Time) flight.ID
}

// handle hides the messages of documents for which the table did not answer.
func (o outage) handle(ctx context.Context, batch []message, events []pending, docs []*document, readable bool) {
	lost := make(map[*message]bool, len(batch))
	var cause error
	for i := range events {
		if p := &events[i]; p.doc.err != nil {
			lost[p.msg], cause = true, p.doc.err
		}
	}
	n := journal.Note{Step: journal.Unreachable, Detail: backoff.Class(cause)}
	for i := range batch {
		if m := &batch[i]; lost[m] {
			until := o.clock.Now().Add(o.hider.outageHold(m.ReceiveCount))
			n.Count, n.Until = n.Count+1, latest(n.Until, until)
		}
	}
	o.note(n)
	if o.config.TableOutage == config.TableOutageOpen && !readable { // a table that can be read has no outage
		o.writeOpen(ctx, docs)
	}
	o.hider.backOff(ctx, batch, func(m *message) bool { return lost[m] })
}

// writeOpen starts a flight that writes versions without asking their rows: for each document, the
// version that could not be admitted. This need not be the newest version, because a newer one may
// already be a dead letter. writeOpen takes only messages of a first receive, because a redelivery
// brings no new version.
func (o outage) writeOpen(ctx context.Context, docs []*document) {
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: o.newID(o.start), Sink: o.sink, Lane: o.lane,
		Received: o.start.Add(-pollMargin),
	}
	for _, d := range docs {
		p := d.asked
		if d.err == nil || p.msg.ReceiveCount > 1 {
			continue
		}
		m.Records = append(m.Records, flight.Record{Message: p.msg.Message, Events: []flight.Entry{{
			// No row admitted this version: see flight.Entry.
			Index: p.Index, Doc: p.Doc, Key: p.Key, Class: p.Class, Op: p.Op, Due: shard.MicrosOf(o.start),
		}}})
	}
	if len(m.Records) == 0 {
		return
	}
	o.launch.start(ctx, m, flight.State{
		Schema: flight.SchemaVersion, Flight: m.Flight, Remaining: flight.AllRemaining(m.Items()),
		WakeAt: flight.WakeText(o.start), Outage: true, Kind: o.config.Flight.KindFor(0),
	}, o.start)
}
