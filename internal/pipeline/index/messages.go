package index

import (
	"context"
	"math"
	"time"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

func (t *turn) queue() queue.Queue { return t.h.Queues[t.manifest.Lane] }

// hold keeps messages invisible until the given time, or gives them back where it is 0. A refused
// extension changes nothing: the message is received again and judged by its row.
func (t *turn) hold(ctx context.Context, receipts []string, until shard.Micros) []error {
	var d time.Duration
	if until != 0 {
		d = queue.WholeSeconds(until.Sub(t.now()))
	}
	errs := t.queue().Hold(ctx, receipts, d)
	t.lost("change visibility", "", queue.Failed(errs))
	return errs
}

// deleteDone deletes the messages all of whose events are done. A deletion that fails costs a
// redelivery, which the row will judge a duplicate.
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

// giveBack makes the messages that leave the flight visible at once and takes their other events
// out: redelivery judges the whole message again.
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

// maxLeave is how many messages leave one flight at most. Each costs a share of a receive when it
// returns, and is in flight for the queue's visibility. The flights of much traffic hold hundreds,
// and a few more turns cost less than that (ADR 0028).
const maxLeave = 100

// mayLeave reports whether superseded messages may leave this flight at all: a sink that is
// unhealthy or throttles writes the newer version after the older one is back. Nothing brings back
// the messages of a rescued flight, which nobody extends.
func (t *turn) mayLeave() bool {
	return t.firstVisible() <= t.longestHold() && t.sink.circuit == shard.CircuitClosed && !t.tripped && t.keepsUp() &&
		t.h.Config.SupersededLeave() && len(t.remainingReceipts()) <= maxLeave
}

// leaves reports whether all that is left of the flight is superseded and leaves it. SQS shows the
// messages again when their visibility ends. The newer versions should be written by then, and
// receive acknowledges them as stale. A message leaves once: one that returned too early stays in
// its flight, so that the cap holds for it. The newer versions may be due later than the messages
// return, and later from now than the queue's visibility: then they are extended to that time.
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
	if newer <= t.firstVisible().Add(-t.h.Config.Index.Timeout) {
		return 0, true
	}
	return newer.Add(t.h.Config.Extended(t.window())), newer.Sub(t.now()) > t.h.Config.Queues.Visibility
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

// remainingReceipts are the handles of the messages that are still held.
func (t *turn) remainingReceipts() []string { return t.receipts(func(int) bool { return true }) }

func (t *turn) receipts(which func(record int) bool) []string {
	var out []string
	for r := range t.records {
		if s := t.records[r]; s.open > 0 && !s.given && which(r) {
			out = append(out, t.manifest.Records[r].Message.Receipt)
		}
	}
	return out
}

func (t *turn) window() time.Duration { return t.h.Config.Window(t.manifest.Lane == flight.Bulk) }

// visible is when a message of the flight becomes visible.
func (t *turn) visible(record int) shard.Micros {
	if t.state.Extended == 0 {
		return t.state.VisibleUntil
	}
	if t.turns == nil {
		t.turns = t.manifest.Turns()
	}
	return t.state.Visible(t.turns[record], t.window())
}

// firstVisible is when the first message that is still held becomes visible.
func (t *turn) firstVisible() shard.Micros {
	first := shard.Micros(math.MaxInt64)
	for r := range t.records {
		if s := t.records[r]; s.open > 0 && !s.given {
			first = min(first, t.visible(r))
		}
	}
	return first
}

// extend makes what is held invisible until the given time, if it would be visible before, never
// past SQS's twelve hours.
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
	// Where every extension was refused, the state keeps the old time and the next turn tries
	// again.
	if failed < len(receipts) || failed == 0 {
		t.state.VisibleUntil = until
	}
	t.note(journal.Note{Step: journal.Extended, Count: len(receipts) - failed, Until: until.Time()})
}

// longestHold is how long SQS keeps a message invisible since it was received, less a minute.
func (t *turn) longestHold() shard.Micros {
	return shard.MicrosOf(t.manifest.Received.Add(queue.MaxHold - time.Minute))
}

// twelveHours gives everything back before SQS ends the invisibility by itself: one receive in
// twelve hours. The next receive gives the messages new receipt handles and another twelve hours.
func (t *turn) twelveHours(ctx context.Context) flight.State {
	receipts := t.remainingReceipts()
	t.hold(ctx, receipts, 0)
	t.note(journal.Note{Step: journal.TwelveHours, Count: len(receipts)})
	return t.end(ctx)
}
