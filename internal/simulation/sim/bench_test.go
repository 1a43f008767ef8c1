// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"sync/atomic"
	"testing"
)

// The important figures of these benchmarks are I/O decisions a second, and how many times faster
// than real time the simulation runs. Each benchmark runs simulations with new seeds, on one
// processor or on all processors.

func BenchmarkSwarmOnOneProcessor(b *testing.B) { oneByOne(b, ofLevel(b, Swarm)) }

func BenchmarkStandardOnOneProcessor(b *testing.B) { oneByOne(b, ofLevel(b, Standard)) }

// BenchmarkBursts simulates many changes: 20 documents with twenty versions each.
func BenchmarkBursts(b *testing.B) {
	oneByOne(b, func(seed uint64) *World {
		up, _ := bursts(seed, 20)
		return build(b, 14, Standard, func(o *Options) { o.Seed, o.Upstream = seed, up })
	})
}

func BenchmarkSwarm(b *testing.B) { together(b, ofLevel(b, Swarm)) }

func BenchmarkStandard(b *testing.B) { together(b, ofLevel(b, Standard)) }

func ofLevel(b *testing.B, level Level) func(seed uint64) *World {
	return func(seed uint64) *World { return build(b, seed, level) }
}

func oneByOne(b *testing.B, world func(seed uint64) *World) {
	var ran tally
	for b.Loop() {
		ran.add(world(uint64(ran.seed.Add(1))).Run())
	}
	ran.report(b)
}

func together(b *testing.B, world func(seed uint64) *World) {
	var ran tally
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			ran.add(world(uint64(ran.seed.Add(1))).Run())
		}
	})
	ran.report(b)
}

// tally adds up the results of several simulated runs.
type tally struct{ seed, decisions, virtual atomic.Int64 }

func (n *tally) add(r Result) {
	n.decisions.Add(int64(r.Decisions))
	n.virtual.Add(int64(r.Virtual.Seconds()))
}

func (n *tally) report(b *testing.B) {
	b.ReportMetric(float64(n.decisions.Load())/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(n.virtual.Load())/b.Elapsed().Seconds(), "times-real-time")
}
