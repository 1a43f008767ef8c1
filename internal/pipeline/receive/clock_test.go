// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/journal"
)

// By a clock that is a month ahead, every message would be past its dead deadline. SQS's times show
// that the clock is wrong.
func TestABatchIsNotJudgedByAClockThatIsOff(t *testing.T) {
	type row struct {
		by    time.Duration
		again bool // every message was received once before
		off   bool
	}
	usecasetest.Table(t, stage(nil).play, map[string]row{
		"ahead by a month":                        {30 * 24 * time.Hour, false, true},
		"behind by a month":                       {-30 * 24 * time.Hour, false, true},
		"behind by a month, messages redelivered": {-30 * 24 * time.Hour, true, true},
		"ahead by a minute":                       {time.Minute, false, false},
		"ahead by a month, messages redelivered":  {30 * 24 * time.Hour, true, true},
		"ahead by a minute, messages redelivered": {time.Minute, true, false},
		"behind by a minute":                      {-time.Minute, false, false},
	}, func(b *bench, c row) {
		b.send(put("a", 1), put("b", 1))
		if c.again {
			if _, err := b.live.Receive(b.Context(), 10, 0); err != nil {
				b.Fatal(err)
			}
			time.Sleep(b.Config.Queues.Visibility + time.Second)
		}
		batch, err := b.live.Receive(b.Context(), 10, 0)
		if err != nil || len(batch) != 2 {
			b.Fatalf("received %d messages, %v", len(batch), err)
		}
		h, _ := b.handler()
		h.Clock = clock.Skewed{Clock: clock.System{}, By: c.by}
		kept := h.Handle(b.Context(), batch)
		if len(kept) != 2 {
			b.Errorf("kept %v, want both messages", kept)
		}
		want := 0
		if c.off {
			want = 1
		}
		b.Noted(journal.ClockOff, want)
		if admitted := len(b.Notes.Of(journal.Admitted)); admitted != 2-2*want {
			b.Errorf("%d admitted, want %d", admitted, 2-2*want)
		}
		b.WantLetters(b.dead, 0)
	})
}
