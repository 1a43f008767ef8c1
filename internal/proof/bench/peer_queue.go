// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Visibility makes every message invisible until it is due, and writes messages that are received
// again.
func Visibility(ctx context.Context, w *World) {
	w.poll(ctx, "hold", peerTimeout, func(ctx context.Context, v *fault.Invocation, clk clock.Clock,
		batch []queue.Message,
	) []string {
		var due []parsed
		var kept []string
		later := holds{}
		for _, m := range parseAll(batch) {
			if m.ReceiveCount > 1 {
				due = append(due, m)
				continue
			}
			later.add(m.Message, m.Sent.Add(w.Config.Debounce.Quiet).Sub(clk.Now()))
			kept = append(kept, m.ID)
		}
		later.send(ctx, w.queueFor(v))
		return append(kept, w.inBulk(ctx, v, newest(due))...)
	})
}

// Delayed writes messages when they arrive, because the upstream has delayed them.
func Delayed(ctx context.Context, w *World) {
	w.poll(ctx, "write", peerTimeout, func(ctx context.Context, v *fault.Invocation, _ clock.Clock,
		batch []queue.Message,
	) []string {
		return w.inBulk(ctx, v, newest(parseAll(batch)))
	})
}
