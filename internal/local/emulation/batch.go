package emulation

import (
	"fmt"
	"math"
	"time"

	"github.com/lullhq/lull/internal/seam/queue"
)

const (
	// MaxBatchBytes is the size at which an event source mapping closes a batch: the payload limit
	// of an invocation.
	MaxBatchBytes = 6 << 20
	// recordBytes is about how many bytes a record adds to its body: receipt handle, attributes,
	// names.
	recordBytes = 700
)

// Never is a time that is never reached.
const Never = time.Duration(math.MaxInt64)

// Batch is the messages that a poller collects for one invocation.
type Batch struct {
	Max    int           // messages
	Window time.Duration // how long it collects messages after the first one

	Messages []queue.Message // as they were received
	End      time.Duration   // when the window closes; Never before the first message
	Full     bool            // nothing more fits
	taken    []*Message
	bytes    int
}

// NewBatch returns an empty batch.
func NewBatch(limit int, window time.Duration) Batch {
	return Batch{Max: limit, Window: window, End: Never}
}

// Fill receives up to n messages from the queue into the batch, and returns their number and bytes.
// If n is 0, it receives as many as fit.
func (b *Batch) Fill(q *Queue, now time.Duration, n int) (got, bytes int) {
	for !b.Full && (n == 0 || got < n) {
		m := q.Front(now)
		if m == nil {
			break
		}
		if b.bytes+m.Bytes+recordBytes > MaxBatchBytes && len(b.taken) > 0 {
			b.Full = true
			break
		}
		q.Take(now, m)
		got, bytes = got+1, bytes+m.Bytes
		b.bytes += m.Bytes + recordBytes
		b.Messages, b.taken = append(b.Messages, m.Message), append(b.taken, m)
		b.End = min(b.End, now+b.Window)
		b.Full = len(b.taken) == b.Max
	}
	return got, bytes
}

// GiveBack makes the messages visible again that were not received again since.
func (b *Batch) GiveBack(q *Queue, now time.Duration) {
	for i, m := range b.taken {
		if m.Receipt == b.Messages[i].Receipt {
			_ = q.Hold(now, m, 0) // it may be visible already
		}
	}
}

// Succeeded returns the receipts of the messages that a function with ReportBatchItemFailures does
// not report as failed. The mapping deletes these. An id that is empty or not in the batch is an
// error, and keeps the whole batch.
func Succeeded(batch []queue.Message, failed []string) ([]string, error) {
	found := make(map[string]bool, len(failed))
	for _, id := range failed {
		found[id] = false
	}
	done := make([]string, 0, len(batch))
	for i := range batch {
		if _, stays := found[batch[i].ID]; stays {
			found[batch[i].ID] = true
		} else {
			done = append(done, batch[i].Receipt)
		}
	}
	for id, known := range found {
		if !known {
			return nil, fmt.Errorf("handle batch of %d: item identifier %q is not in the batch: the whole batch counts as "+
				"failed",
				len(batch), id)
		}
	}
	return done, nil
}
