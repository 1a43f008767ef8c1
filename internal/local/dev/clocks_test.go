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

// The flows of docs/faults.md: clocks that disagree, and requests that land when nobody waits for
// them any more.

// lagging is a sink that now and then applies a request only after its caller has hung up, as late
// as applyDelay allows.
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

// apply writes and checks that the document does not go back: by the version, which is what
// matters, and by the claim.
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

// Faults, lines 5, 30 and 36, all at once and by the whole engine: clocks differ by what the guard
// allows besides a late kill. Invocations die at any I/O, flights run twice, answers are lost and
// requests land late. The sink takes whatever comes last.
func TestASinkWithoutVersionsNeverGoesBack(t *testing.T) {
	t.Parallel()
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			guard := config.Default().Index.Guard
			const killedLate = 2 * time.Second // the platform's share of the guard
			mix := fault.NewMix(fault.Rates{
				DeliverTwice: 0.05, Reorder: 0.1, ReorderBy: 5 * time.Second, FlightLost: 0.02, FlightTwice: 0.2,
				Kill:         0.1,
				IOFailBefore: 0.01, IOFailAfter: 0.02, IOThrottle: 0.01, Skew: (guard - killedLate) / 2,
			}, seed)
			stage{noVers: true, faults: mix, pollers: 3}.play(t, func(s *scene) {
				search := &lagging{
					Sink: s.sink, settle: s.e.cfg.ApplyDelay("search"), rnd: rand.New(rand.NewPCG(seed, 30)),
					last: map[shard.DocID]sink.Op{},
				}
				s.p.sink = search
				// ten versions each, over a minute: several bursts
				arrivals := publishing(seed, 20, time.Minute, 2*time.Minute)
				s.arrive(arrivals)
				s.settle()
				time.Sleep(search.settle) // the last one may still land
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
