// SPDX-License-Identifier: Apache-2.0

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
	// recordBytes is about how many bytes a record has in addition to its body: receipt handle,
	// attributes and names.
	recordBytes = 700
)

// Never is a moment in the future that is never reached.
const Never = time.Duration(math.MaxInt64)

// Batch contains the messages that a poller collects for one invocation.
type Batch struct {
	Max    int           // messages
	Window time.Duration // how long the batch collects messages after the first one

	Messages []queue.Message // the messages, as they were received
	End      time.Duration   // when the window closes; Never before the first message
	Full     bool            // no further message fits into the batch
	taken    []*Message
	bytes    int
}

// NewBatch returns an empty batch.
func NewBatch(limit int, window time.Duration) Batch {
	return Batch{Max: limit, Window: window, End: Never}
}

// Fill receives up to n messages from the queue into the batch, and returns their number and bytes.
// If n is 0, Fill receives as many messages as fit.
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

// GiveBack makes the messages of the batch visible again. GiveBack skips messages that were
// received again in the meantime.
func (b *Batch) GiveBack(q *Queue, now time.Duration) {
	for i, m := range b.taken {
		if m.Receipt == b.Messages[i].Receipt {
			_ = q.Hold(now, m, 0) // an error means that the message is already visible
		}
	}
}

// Succeeded returns the receipts of the messages that a function with ReportBatchItemFailures does
// not report as failed. The event source mapping deletes these messages. If the function reports an
// id that is empty or not in the batch, Succeeded returns an error, and the mapping deletes no
// message.
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
