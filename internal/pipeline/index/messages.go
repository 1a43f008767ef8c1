// SPDX-License-Identifier: Apache-2.0

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

// messages handles the messages of the flight in their queue.
type messages struct {
	*holding
	queue queue.Queue
	turns []shard.Micros // result of flight.Manifest.Turns; nil until it is needed
}

// hold keeps messages invisible until the given time. If the time is 0, hold gives the messages
// back. A refused extension does no harm: the message is received again and judged by its row.
func (m *messages) hold(ctx context.Context, receipts []string, until shard.Micros) []error {
	var d time.Duration
	if until != 0 {
		d = queue.WholeSeconds(until.Sub(m.now()))
	}
	errs := m.queue.Hold(ctx, receipts, d)
	m.noteFailed("change visibility", "", queue.Failed(errs))
	return errs
}

// deleteDone deletes the messages whose events are all done. If a deletion fails, the message is
// delivered again, and its row shows a duplicate.
func (m *messages) deleteDone(ctx context.Context) {
	var receipts []string
	var which []int
	for r := range m.records {
		if s := &m.records[r]; s.open == 0 && !s.given && !s.deleted && s.mine {
			// Set this before the call, because a turn tries each deletion once. A lost deletion
			// does no harm.
			s.deleted = true
			receipts, which = append(receipts, m.manifest.Records[r].Message.Receipt), append(which, r)
		}
	}
	if len(receipts) == 0 {
		return
	}
	errs := m.queue.Delete(ctx, receipts)
	for i, r := range which {
		n := journal.Note{Step: journal.Deleted, Message: m.manifest.Records[r].Message.ID}
		if err := queue.ErrorAt(errs, i); err != nil {
			n.Step, n.Detail = journal.DeleteLost, err.Error()
		}
		m.note(n)
	}
}

// giveBack makes the messages that leave the flight visible at once, and removes their other events
// from the flight. Redelivery judges the whole message again.
func (m *messages) giveBack(ctx context.Context) {
	var receipts []string
	for _, d := range m.docs {
		for e := range d.unfinished() {
			if m.records[e.record].given {
				m.drop(e)
			}
		}
	}
	for r := range m.records {
		if m.records[r].given {
			receipts = append(receipts, m.manifest.Records[r].Message.Receipt)
		}
	}
	if len(receipts) > 0 {
		m.hold(ctx, receipts, 0)
	}
}

// extend keeps the held messages invisible until the given time, but never past SQS's twelve hours.
// It does not touch messages that are invisible for longer anyway.
func (m *messages) extend(ctx context.Context, until shard.Micros) {
	until = min(until, m.longestHold())
	if m.state.VisibleUntil >= until {
		return
	}
	receipts := m.receipts(func(r int) bool { return m.visible(r) < until })
	if len(receipts) == 0 {
		return
	}
	errs := m.hold(ctx, receipts, until)
	failed := 0
	for i := range receipts {
		if queue.ErrorAt(errs, i) != nil {
			failed++
		}
	}
	// If every extension was refused, the state keeps the old time and the next turn tries
	// again.
	if failed < len(receipts) || failed == 0 {
		m.state.VisibleUntil = until
	}
	m.note(journal.Note{Step: journal.Extended, Count: len(receipts) - failed, Until: until.Time()})
}

// longestHold returns the latest time until which SQS can keep the messages invisible, less a
// minute. SQS counts from the receive.
func (m *messages) longestHold() shard.Micros {
	return shard.MicrosOf(m.manifest.Received.Add(queue.MaxHold - time.Minute))
}

// visible returns when a message of the flight becomes visible.
func (m *messages) visible(record int) shard.Micros {
	if m.state.Extended == 0 {
		return m.state.VisibleUntil
	}
	if m.turns == nil {
		m.turns = m.manifest.Turns()
	}
	return m.state.Visible(m.turns[record], m.window())
}

// firstVisible returns when the first message that is still held becomes visible.
func (m *messages) firstVisible() shard.Micros {
	first := shard.Micros(math.MaxInt64)
	for r := range m.records {
		if m.records[r].open > 0 {
			first = min(first, m.visible(r))
		}
	}
	return first
}

// remainingReceipts returns the receipt handles of the messages that are still held.
func (m *messages) remainingReceipts() []string { return m.receipts(func(int) bool { return true }) }

func (m *messages) receipts(which func(record int) bool) []string {
	var out []string
	for r := range m.records {
		if m.records[r].open > 0 && which(r) {
			out = append(out, m.manifest.Records[r].Message.Receipt)
		}
	}
	return out
}

func (m *messages) window() time.Duration { return m.config.Queues.Window(m.lane == flight.Bulk) }
