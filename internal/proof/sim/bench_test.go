package sim

import (
	"sync/atomic"
	"testing"
)

// The figures that matter are the benchmarks' own: I/O decisions a second and how many times faster
// than the worlds' own clocks they run. Each goes through worlds with new seeds, on one processor
// and on all of them.

func BenchmarkSwarmOnOneProcessor(b *testing.B) { oneByOne(b, Swarm) }

func BenchmarkStandardOnOneProcessor(b *testing.B) { oneByOne(b, Standard) }

func BenchmarkSwarm(b *testing.B) { together(b, Swarm) }

func BenchmarkStandard(b *testing.B) { together(b, Standard) }

// BenchmarkBursts is a busy world: 20 documents of twenty versions each.
func BenchmarkBursts(b *testing.B) {
	var decisions int
	var virtual float64
	seed := uint64(0)
	for b.Loop() {
		seed++
		up, _ := bursts(seed, 20)
		r := build(b, 14, Standard, func(o *Options) { o.Seed, o.Upstream = seed, up }).Run()
		decisions += r.Decisions
		virtual += r.Virtual.Seconds()
	}
	rates(b, decisions, virtual)
}

func oneByOne(b *testing.B, level Level) {
	var decisions int
	var virtual float64
	seed := uint64(0)
	for b.Loop() {
		seed++
		r := build(b, seed, level).Run()
		decisions += r.Decisions
		virtual += r.Virtual.Seconds()
	}
	rates(b, decisions, virtual)
}

func together(b *testing.B, level Level) {
	var seed, decisions, virtual atomic.Int64
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r := build(b, uint64(seed.Add(1)), level).Run()
			decisions.Add(int64(r.Decisions))
			virtual.Add(int64(r.Virtual.Seconds()))
		}
	})
	rates(b, int(decisions.Load()), float64(virtual.Load()))
}

func rates(b *testing.B, decisions int, virtual float64) {
	b.ReportMetric(float64(decisions)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(virtual/b.Elapsed().Seconds(), "times-real-time")
}
