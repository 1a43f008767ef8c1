// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// believe removes lull's own attributes from the messages of other senders (ADR 0057). So neither
// the flight nor a copy that lull sends in its own name contains an attribute that another sender
// set.
func believe(in *invocation, senders queue.Senders, msgs []queue.Message) []queue.Message {
	copied := false // the slice belongs to the caller
	for i := range msgs {
		m, removed := senders.Believed(msgs[i])
		if removed == nil {
			continue
		}
		if !copied {
			msgs, copied = slices.Clone(msgs), true
		}
		msgs[i] = m
		in.note(journal.Note{
			Step: journal.Untrusted, Message: m.ID, Sent: m.Sent,
			Detail: "not sent by lull: judged without " + strings.Join(removed, ", "),
		})
	}
	return msgs
}

// clockOff reports whether this clock differs from SQS's clock. By a wrong clock, messages would
// seem too old or too new, and rows would keep wrong times. Every message was sent and received
// before now, and was sent within the queue's retention. A message that is delivered for the first
// time was received at most one visibility ago.
func clockOff(in *invocation, msgs []queue.Message) bool {
	var happened, first time.Time
	for i := range msgs {
		m := &msgs[i]
		happened = latest(happened, latest(m.Sent, m.FirstReceived))
		if m.ReceiveCount == 1 {
			first = latest(first, m.FirstReceived)
		}
	}
	c := in.config.Queues
	off := cmp.Or(clock.Off(in.start, happened, c.Retention), clock.Off(in.start, first, c.Visibility))
	if off != 0 {
		in.note(journal.Note{Step: journal.ClockOff, Count: len(msgs), Detail: "this clock is off by " + off.String()})
	}
	return off != 0
}

// unwrap returns the state of each message. It unpacks the messages inside dead letters that were
// redriven. If unpacking makes the batch too large, the message is received again. A dead letter
// from a newer lull is also received again, because only the newer lull knows where its body is.
func unwrap(senders queue.Senders, msgs []queue.Message) []message {
	batch, bytes := make([]message, len(msgs)), 0
	for i := range msgs {
		m := &batch[i]
		m.Message = msgs[i]
		if _, ok := m.Attributes[deadletter.AttrLetter]; !ok {
			continue
		}
		if m.full = bytes > maxLetterBytes; m.full {
			continue
		}
		inside, says, err := deadletter.Inside(m.Message)
		m.letter = says
		if m.newer = err != nil && senders.Ours(m.Sender); m.newer {
			continue
		}
		m.Message, _ = senders.Believed(inside)
		bytes += len(m.Body)
	}
	return batch
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
