// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// The tests of this file play flows of docs/faults.md: clocks that differ, and requests that the
// sink applies after the caller has hung up.

// lagging is a sink that sometimes applies a request only after the caller has hung up, as late as
// applyDelay allows.
type lagging struct {
	sink.Sink
	settle time.Duration

	mu    sync.Mutex
	rnd   *rand.Rand
	late  int
	wrong []string
	last  map[shard.DocID]sink.Op
}

func (l *lagging) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	l.mu.Lock()
	lags, by := l.rnd.IntN(4) == 0, time.Duration(l.rnd.Int64N(int64(l.settle)))
	if lags {
		l.late++
	}
	l.mu.Unlock()
	if !lags {
		time.Sleep(50 * time.Millisecond)
		return l.apply(ops)
	}
	<-ctx.Done()
	time.AfterFunc(by, func() { l.apply(ops) })
	out := make([]sink.Outcome, len(ops))
	for i := range out {
		out[i] = sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}
	}
	return out
}

// apply writes the ops. The method checks that neither the version nor the fence of a document
// becomes smaller.
func (l *lagging) apply(ops []sink.Op) []sink.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, op := range ops {
		if was := l.last[op.Doc]; op.Key < was.Key || op.Fence < was.Fence {
			l.wrong = append(l.wrong, fmt.Sprintf("%s: version %s of %s was applied after version %s of %s", op.Doc,
				op.Version, op.At, was.Version, was.At))
		}
		l.last[op.Doc] = op
	}
	return l.Sink.Write(context.Background(), ops)
}

// This test plays the lines 5, 30 and 36 of docs/faults.md all at once, with the whole engine.
// Clocks differ as much as the guard allows. Invocations are killed at any I/O, flights run twice,
// answers are lost, and the sink applies requests late. The sink has no versions, so the last write
// wins.
func TestASinkWithoutVersionsNeverGoesBack(t *testing.T) {
	t.Parallel()
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			guard := config.Default().Index.Guard
			const killedLate = 2 * time.Second // the part of the guard for invocations that are killed late
			mix := fault.NewMix(fault.Rates{
				DeliverTwice: 0.05, Reorder: 0.1, ReorderBy: 5 * time.Second, FlightLost: 0.02, FlightTwice: 0.2,
				Kill:         0.1,
				IOFailBefore: 0.01, IOFailAfter: 0.02, IOThrottle: 0.01, Skew: (guard - killedLate) / 2,
			}, seed)
			stage{noVers: true, faults: mix, pollers: 3}.play(t, func(s *scene) {
				search := &lagging{
					Sink: s.sink, settle: s.e.cfg.Sinks["search"].Capabilities().ApplyDelay,
					rnd: rand.New(rand.NewPCG(seed, 30)), last: map[shard.DocID]sink.Op{},
				}
				s.p.sink = search
				// each document has ten versions within a minute, so several bursts
				arrivals := publishing(seed, 20, time.Minute, 2*time.Minute)
				s.arrive(arrivals)
				s.settle()
				time.Sleep(search.settle) // the sink may still apply the last request
				for _, w := range search.wrong {
					t.Error(w)
				}
				s.holdsAll(expected(t, arrivals))
				if search.late == 0 {
					t.Error("no request landed late: nothing was put to the test")
				}
			})
		})
	}
}
