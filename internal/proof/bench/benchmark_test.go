// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/lullhq/lull/sink/blevesink"
)

// BenchmarkLull and BenchmarkIdempotencyLoop are the two sides of the comparison of processor time,
// for profiles. They run the base workload. One operation is 1,000 events.
func BenchmarkLull(b *testing.B) { benchmark(b, newLullWorker(b, true)) }

func BenchmarkIdempotencyLoop(b *testing.B) { benchmark(b, newLoopWorker(b, true)) }

func benchmark(b *testing.B, w worker) {
	b.ReportAllocs()
	for round := 0; b.Loop(); round++ {
		check(b, w.do(b.Context(), newWorkload(200, 5, 4, 160, round)))
	}
}

// BenchmarkSettled measures how fast the embedded stack settles events. One operation is 20,000
// events, and waits once for the quiet window, which settled/s leaves out. On a busy machine, use
// cpu-us/event.
func BenchmarkSettled(b *testing.B) {
	const events = 20_000
	for _, burst := range []int{10, 1} {
		for _, name := range []string{"memory", "bleve"} {
			b.Run(fmt.Sprintf("%s/bursts-of-%d", name, burst), func(b *testing.B) {
				to := inMemory()
				if name == "bleve" {
					onDisk, err := blevesink.Open(filepath.Join(b.TempDir(), "bleve"))
					check(b, err)
					b.Cleanup(func() { _ = onDisk.Close() })
					to = onDisk
				}
				var took, cpu time.Duration
				for round := 0; b.Loop(); round++ {
					in := EmbeddedIntake(b, Intake{Sink: name, Burst: burst, Events: events}, to, round*events)
					took, cpu = took+in.Took, cpu+in.CPU
				}
				b.ReportMetric(float64(b.N)*events/took.Seconds(), "settled/s")
				b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/event")
			})
		}
	}
}

// TestEveryDocumentOfAWorkloadIsCommitted: a flight that does not find its manifest costs almost
// nothing, which would make lull look too cheap.
func TestEveryDocumentOfAWorkloadIsCommitted(t *testing.T) {
	t.Parallel()
	l := newLullWorker(t, true)
	for round := range 2 { // several flights each; the second round finds the rows and objects of the first
		check(t, l.do(t.Context(), newWorkload(40, 5, 4, 10, round)))
	}
}
