// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

// BenchmarkQueue sends, receives, holds and deletes each message, with 100,000 messages in flight
// at all times.
func BenchmarkQueue(b *testing.B) {
	q := memory.NewQueue(clock.System{}, memory.QueueSettings{Name: "q", Visibility: time.Hour, MaxInFlight: 1 << 30})
	ctx := b.Context()
	const batch = 1000
	out := make([]queue.Outgoing, batch)
	for i := range out {
		out[i] = queue.Outgoing{Body: strings.Repeat("x", 500)}
	}
	var held [][]string
	turn := func() {
		q.Send(ctx, out)
		got, _ := q.Gather(ctx, batch, 0)
		receipts := make([]string, len(got))
		for i := range got {
			receipts[i] = got[i].Receipt
		}
		held = append(held, receipts)
		if len(held) > 100 {
			q.Hold(ctx, held[50], 2*time.Hour)
			q.Delete(ctx, held[0])
			held = held[1:]
		}
	}
	for range 100 {
		turn()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		turn()
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "messages/s")
}
