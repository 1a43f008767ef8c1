// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// panicky is a source with a bug: it panics with its input.
type panicky struct{ receive.Decoder }

func (p panicky) DecodeContext(ctx context.Context, m queue.Message) []event.Result {
	if strings.Contains(m.Body, "hunter2") {
		panic(m.Body)
	}
	return p.Decoder.DecodeContext(ctx, m)
}

// In an earlier version, a decoder that panicked on one message made a thousand messages be
// received again.
func TestADecoderThatPanicsCostsItsMessageAlone(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.sources = panicky{b.Sources}
		b.send(puts("good", 50)...)
		b.send("hunter2")
		for try := range 3 {
			b.poll()
			b.index()
			if n := b.dead.Counts().Total(); n != try/2 {
				b.Errorf("%d dead letters after try %d, want one only after the last try", n, try+1)
			}
			b.Noted(journal.Admitted, 50) // all good messages were held by the first try
			time.Sleep(41 * time.Second)
		}
		if n := b.live.Counts().Total(); n != 0 {
			b.Errorf("%d messages are left, want none", n)
		}
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Reason != deadletter.Panic || l[0].Detail != "decode: panic: string" ||
			l[0].Body != "hunter2" {
			b.Errorf("dead letters %+v, want one with only the class of the panic", l)
		}
		b.Noted(journal.Panicked, 3)
		for _, n := range b.Notes.All() {
			if strings.Contains(n.Detail+n.Stack, "hunter2") {
				b.Errorf("the note %s contains content of the message", n.Step)
			}
			if n.Step == journal.Panicked && (n.Message == "" || !strings.Contains(n.Stack, "panicky")) {
				b.Errorf("note %+v, want the message and the place of the panic", n)
			}
		}
	})
}
