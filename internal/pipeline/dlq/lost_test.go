// SPDX-License-Identifier: Apache-2.0

package dlq_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// If a call fails, the class of the error is noted, and the message is received again.
func TestNoErrorOfACallIsLost(t *testing.T) {
	t.Parallel()
	usecasetest.NoErrorIsLost(t, func(t *testing.T, f *usecasetest.FailingCall) ([]journal.Note, error) {
		b := setup(t, nil)
		b.old()
		b.move(b.live, b.send(b.live, put("2", 1), nil))
		leased := b.send(b.live, put("3", 1), nil)
		b.Admit(b.Event(leased))
		b.Claim(b.Event(leased))
		b.move(b.live, leased)
		b.SendLetter(b.dead, queue.Message{ID: "m", Body: put("4", 1), Sent: time.Now()},
			b.EventOf(put("4", 1)), deadletter.RejectedBySink)
		v := fault.NewInvocation(f, "dlq", 1)
		v.Failure = usecasetest.Denied
		b.h.Shards, b.h.Letters = v.Shards(b.Shards), v.DeadLetters(b.Letters)
		b.h.Live, b.h.Dead = v.Queue(b.live), v.Queue(b.dead)
		for range 3 {
			b.handle()
			time.Sleep(time.Minute)
		}
		b.want(3, 1, 0)
		return b.Notes.All(), nil
	})
}
