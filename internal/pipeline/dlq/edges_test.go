// SPDX-License-Identifier: Apache-2.0

package dlq_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
)

// A sender to the dead-letter queue must not be able to end a version.
func TestAMessageWithoutRoomToBeSentAgainIsParkedAndItsRowStays(t *testing.T) {
	play(t, nil, func(b *bench) {
		body := strings.Replace(put("1", 1), `"v1"`, `"`+strings.Repeat("x", queue.MaxBytes-len(put("1", 1))+2)+`"`, 1)
		e := b.EventOf(body)
		b.Admit(e)
		before := b.Row(e.Doc)
		b.dead.Send(b.Context(), []queue.Outgoing{{Body: body}})
		b.keeps(0, "the message is parked")
		b.want(1, 0, 0)
		if r := b.Row(e.Doc); r != before {
			b.Errorf("row %+v, want it unchanged", r)
		}
	})
}

// SQS delays a message by at most fifteen minutes.
func TestAMessageGoesBackHoweverLongTheBackOffIs(t *testing.T) {
	play(t, func(c *config.Config) { c.Retry.BackoffMax = time.Hour }, func(b *bench) {
		m := b.send(b.live, put("1", 1), nil)
		b.Admit(b.Event(m))
		b.move(b.live, m)
		b.keeps(0, "the message is given back")
		if got := b.live.Counts(); got.Delayed != 1 || got.Total() != 1 {
			b.Errorf("queue %+v, want one delayed message", got)
		}
	})
}

// The collection of this dead letter belongs to another sink now. It is still the dead letter of
// its version, and not the dead letter of a message in a wrong queue.
func TestADeadLetterKeepsItsNameWhereItsCollectionHasMoved(t *testing.T) {
	play(t, twoSinks, func(b *bench) {
		m := queue.Message{ID: "m", Body: put("1", 1), Sent: time.Now()}
		key := b.Event(m).Key
		b.sends("search", deadletter.New(m, deadletter.RejectedBySink, "", "payroll#1", key, 0, time.Now()))
		b.keeps(0, "the dead letter is parked")
		if got := b.one(deadletter.RejectedBySink); got.ID != deadletter.ID("payroll#1", key, "") {
			b.Errorf("parked as %s, want the id for its version", got.ID)
		}
	})
}
