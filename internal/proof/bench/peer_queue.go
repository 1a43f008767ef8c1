package bench

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/queue"
)

// Visibility makes every message invisible until it is due, and writes what comes back.
func Visibility(ctx context.Context, w *World) (stop func(), err error) {
	w.poll(ctx, "hold", peerTimeout, func(ctx context.Context, v *fault.Invocation, clk clock.Clock,
		batch []queue.Message,
	) []string {
		var due []parsed
		kept := []string{}
		hold := map[int][]string{} // receipts by whole seconds
		for _, m := range parseAll(batch) {
			if m.ReceiveCount > 1 {
				due = append(due, m)
				continue
			}
			s := int(seconds(m.Sent.Add(w.Config.Debounce.Quiet).Sub(clk.Now())).Seconds())
			hold[s] = append(hold[s], m.Receipt)
			kept = append(kept, m.ID)
		}
		for s, receipts := range hold {
			w.queueFor(v).Hold(ctx, receipts, time.Duration(s)*time.Second) // one that fails comes back later
		}
		return append(kept, w.inBulk(ctx, v, newest(due))...)
	})
	return func() {}, nil
}

// Delayed writes what comes: the upstream has delayed it.
func Delayed(ctx context.Context, w *World) (stop func(), err error) {
	w.poll(ctx, "write", peerTimeout, func(ctx context.Context, v *fault.Invocation, _ clock.Clock,
		batch []queue.Message,
	) []string {
		return append([]string{}, w.inBulk(ctx, v, newest(parseAll(batch)))...)
	})
	return func() {}, nil
}
