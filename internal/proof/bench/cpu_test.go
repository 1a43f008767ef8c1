package bench

import "testing"

// The two sides of the processor's comparison, for profiles: bursts of 5 in three batches. An op is
// 1,000 events.
func BenchmarkLull(b *testing.B) {
	w, err := newLullWorker(true)
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, w)
}

func BenchmarkIdempotencyLoop(b *testing.B) {
	w, err := newLoopWorker(true)
	if err != nil {
		b.Fatal(err)
	}
	benchmark(b, w)
}

func benchmark(b *testing.B, w worker) {
	defer w.close()
	b.ReportAllocs()
	for round := 0; b.Loop(); round++ {
		if err := w.do(b.Context(), newWorkload(200, 5, 3, 100, round)); err != nil {
			b.Fatal(err)
		}
	}
}
