package index

import (
	"context"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// maxLeave is how many messages leave one flight at most. Each costs a share of a receive when
// it returns, and is in flight for the queue's visibility. Under much traffic a flight holds
// hundreds. A few more turns then cost less (ADR 0028).
const maxLeave = 100

// mayLeave reports whether superseded messages may leave this flight. They may not while the
// sink is unhealthy or throttles, because the older one would return before the newer one is
// written. The messages of a rescued flight may not leave either, because nothing brings them
// back.
func (t *turn) mayLeave() bool {
	return t.firstVisible() <= t.longestHold() && t.sink.circuit == shard.CircuitClosed && !t.sink.tripped && t.keepsUp() &&
		t.config.SupersededLeave() && len(t.remainingReceipts()) <= maxLeave
}

// leaves reports whether all remaining messages are superseded and may leave. SQS shows them
// again when their visibility ends. By then the newer versions should be written, and receive
// acknowledges the older ones as stale. A message leaves only once: if it returns too early it
// stays in its flight, so that the cap applies to it.
//
// The newer versions may be due after the messages return. If they are due later than the
// queue's visibility from now, the messages are extended to that time.
func (t *turn) leaves() (extend shard.Micros, ok bool) {
	if !t.mayLeave() {
		return 0, false
	}
	newer := shard.Micros(0)
	for _, d := range t.docs {
		for _, e := range d.left() {
			if d.step.Newer == 0 || t.message(e).ReceiveCount > 1 {
				return 0, false
			}
			newer = max(newer, d.step.Newer)
		}
	}
	if newer <= t.firstVisible().Add(-t.config.Index.Timeout) {
		return 0, true
	}
	return newer.Add(t.config.Extended(t.window())), newer.Sub(t.now()) > t.config.Queues.Visibility
}

// leave ends the flight without its messages.
func (t *turn) leave(ctx context.Context, extend shard.Micros) flight.State {
	t.extend(ctx, extend)
	for _, d := range t.docs {
		for _, e := range d.left() {
			n := t.about(d, e, journal.LeftSuperseded, d.step.Why)
			n.Until = t.visible(e.record).Time()
			t.note(n)
		}
	}
	return t.end(ctx)
}

// twelveHours gives all messages back before SQS ends their invisibility. That costs one receive
// in twelve hours. It gives the messages new receipt handles and another twelve hours.
func (t *turn) twelveHours(ctx context.Context) flight.State {
	receipts := t.remainingReceipts()
	t.hold(ctx, receipts, 0)
	t.note(journal.Note{Step: journal.TwelveHours, Count: len(receipts)})
	return t.end(ctx)
}
