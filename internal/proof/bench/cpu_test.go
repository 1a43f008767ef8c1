package bench

import "testing"

// The two sides of the processor's comparison, for profiles: bursts of 5 in three batches. An op is
// 1,000 events.
func BenchmarkLull(b *testing.B) { benchmark(b, newLullWorker(b, true)) }

func BenchmarkIdempotencyLoop(b *testing.B) { benchmark(b, newLoopWorker(b, true)) }

func benchmark(b *testing.B, w worker) {
	b.ReportAllocs()
	for round := 0; b.Loop(); round++ {
		check(b, w.do(b.Context(), newWorkload(200, 5, 3, 100, round)))
	}
}
