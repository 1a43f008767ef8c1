package sim

import "testing"

// BenchmarkSwarm runs one world after the other under drawn faults. The figures that matter are its own: I/O decisions a second and how many times
// faster than the world's own clock it runs.
func BenchmarkSwarm(b *testing.B) { benchmark(b, Swarm) }

// BenchmarkStandard is the same under the standard fault mix.
func BenchmarkStandard(b *testing.B) { benchmark(b, Standard) }

func benchmark(b *testing.B, level Level) {
	var decisions int
	var virtual float64
	seed := uint64(1)
	for b.Loop() {
		r := build(b, seed, level).Run()
		if len(r.Violations) > 0 {
			b.Fatalf("seed %d: %s", seed, r.Violations[0])
		}
		decisions += r.Decisions
		virtual += r.Virtual.Seconds()
		seed++
	}
	b.ReportMetric(float64(decisions)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(virtual/b.Elapsed().Seconds(), "times-real-time")
}
