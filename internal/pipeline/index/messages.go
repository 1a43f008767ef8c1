package index

import (
	"context"
	"math"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

func (t *turn) queue() queue.Queue { return t.h.Queues[t.manifest.Lane] }

// hold keeps messages invisible until the given time. If the time is 0, it gives them back. A
// refused extension does no harm: the message is received again and judged by its row.
func (t *turn) hold(ctx context.Context, receipts []string, until shard.Micros) []error {
	var d time.Duration
	if until != 0 {
		d = queue.WholeSeconds(until.Sub(t.now()))
	}
	errs := t.queue().Hold(ctx, receipts, d)
	t.lost("change visibility", "", queue.Failed(errs))
	return errs
}

// deleteDone deletes the messages whose events are all done. If a deletion fails, the message is
// delivered again, and its row shows a duplicate.
func (t *turn) deleteDone(ctx context.Context) {
	var receipts []string
	var which []int
	for r := range t.records {
		if s := &t.records[r]; s.open == 0 && !s.given && !s.deleted && s.mine {
			// Set before the call: a turn tries each deletion once, because a lost one does no
			// harm.
			s.deleted = true
			receipts, which = append(receipts, t.manifest.Records[r].Message.Receipt), append(which, r)
		}
	}
	if len(receipts) == 0 {
		return
	}
	errs := t.queue().Delete(ctx, receipts)
	for i, r := range which {
		n := journal.Note{Step: journal.Deleted, Message: t.manifest.Records[r].Message.ID}
		if err := queue.ErrorAt(errs, i); err != nil {
			n.Step, n.Detail = journal.DeleteLost, err.Error()
		}
		t.note(n)
	}
}

// giveBack makes the messages that leave the flight visible at once and removes their other
// events from it. Redelivery judges the whole message again.
func (t *turn) giveBack(ctx context.Context) {
	var receipts []string
	for _, d := range t.docs {
		for _, e := range d.left() {
			if t.records[e.record].given {
				t.drop(e)
			}
		}
	}
	for r := range t.records {
		if t.records[r].given {
			receipts = append(receipts, t.manifest.Records[r].Message.Receipt)
		}
	}
	if len(receipts) > 0 {
		t.hold(ctx, receipts, 0)
	}
}

// maxLeave is how many messages leave one flight at most. Each costs a share of a receive when
// it returns, and is in flight for the queue's visibility. Under much traffic a flight holds
// hundreds. A few more turns then cost less (ADR 0028).
const maxLeave = 100

// mayLeave reports whether superseded messages may leave this flight. They may not while the
// sink is unhealthy or throttles, because the older one would return before the newer one is
// written. The messages of a rescued flight may not leave either, because nothing brings them
// back.
func (t *turn) mayLeave() bool {
	return t.firstVisible() <= t.longestHold() && t.sink.circuit == shard.CircuitClosed && !t.tripped && t.keepsUp() &&
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

// remainingReceipts returns the receipt handles of the messages that are still held.
func (t *turn) remainingReceipts() []string { return t.receipts(func(int) bool { return true }) }

func (t *turn) receipts(which func(record int) bool) []string {
	var out []string
	for r := range t.records {
		if t.records[r].open > 0 && which(r) {
			out = append(out, t.manifest.Records[r].Message.Receipt)
		}
	}
	return out
}

func (t *turn) window() time.Duration { return t.config.Window(t.manifest.Lane == flight.Bulk) }

// visible returns when a message of the flight becomes visible.
func (t *turn) visible(record int) shard.Micros {
	if t.state.Extended == 0 {
		return t.state.VisibleUntil
	}
	if t.turns == nil {
		t.turns = t.manifest.Turns()
	}
	return t.state.Visible(t.turns[record], t.window())
}

// firstVisible returns when the first message that is still held becomes visible.
func (t *turn) firstVisible() shard.Micros {
	first := shard.Micros(math.MaxInt64)
	for r := range t.records {
		if t.records[r].open > 0 {
			first = min(first, t.visible(r))
		}
	}
	return first
}

// extend keeps the held messages invisible until the given time, but never past SQS's twelve
// hours. Messages that are invisible for longer anyway are left alone.
func (t *turn) extend(ctx context.Context, until shard.Micros) {
	until = min(until, t.longestHold())
	if t.state.VisibleUntil >= until {
		return
	}
	receipts := t.receipts(func(r int) bool { return t.visible(r) < until })
	if len(receipts) == 0 {
		return
	}
	errs := t.hold(ctx, receipts, until)
	failed := 0
	for i := range receipts {
		if queue.ErrorAt(errs, i) != nil {
			failed++
		}
	}
	// If every extension was refused, the state keeps the old time and the next turn tries
	// again.
	if failed < len(receipts) || failed == 0 {
		t.state.VisibleUntil = until
	}
	t.note(journal.Note{Step: journal.Extended, Count: len(receipts) - failed, Until: until.Time()})
}

// longestHold returns the end of SQS's longest invisibility since the receive, less a minute.
func (t *turn) longestHold() shard.Micros {
	return shard.MicrosOf(t.manifest.Received.Add(queue.MaxHold - time.Minute))
}

// twelveHours gives all messages back before SQS ends their invisibility. That costs one receive
// in twelve hours. It gives the messages new receipt handles and another twelve hours.
func (t *turn) twelveHours(ctx context.Context) flight.State {
	receipts := t.remainingReceipts()
	t.hold(ctx, receipts, 0)
	t.note(journal.Note{Step: journal.TwelveHours, Count: len(receipts)})
	return t.end(ctx)
}
