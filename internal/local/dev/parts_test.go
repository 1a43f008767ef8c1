// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// spread is several stacks, each with a part of the documents, that share one sink.
type spread struct {
	t       *testing.T
	seed    uint64
	sink    *memorysink.Sink
	configs []*config.Config
	engines []*Engine

	mu      sync.Mutex
	writers map[shard.DocID]map[int]bool // the parts that have sent a document to the sink
}

// writer is the shared sink as one stack reaches it.
type writer struct {
	*memorysink.Sink
	s    *spread
	part int
}

func (w writer) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	w.s.mu.Lock()
	for _, op := range ops {
		if w.s.writers[op.Doc] == nil {
			w.s.writers[op.Doc] = map[int]bool{}
		}
		w.s.writers[op.Doc][w.part] = true
	}
	w.s.mu.Unlock()
	return w.Sink.Write(ctx, ops)
}

// add starts the stack of another part.
func (s *spread) add(ctx context.Context) {
	s.t.Helper()
	part := len(s.engines) + 1
	cfg := config.Default()
	versions := true
	cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
	cfg.Stack, cfg.Parts = "lull-"+strconv.Itoa(part), config.Parts{This: part}
	cfg.Complete()
	e, err := New(Options{
		Config: &cfg, Clock: clock.System{}, Sinks: map[string]sink.Sink{"search": writer{s.sink, s, part}},
		Faults: fault.NewMix(fault.Standard(), s.seed+uint64(part)), Pollers: 2,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.configs, s.engines = append(s.configs, &cfg), append(s.engines, e)
	synctest.Wait()
	for _, c := range s.configs {
		c.Parts.Of = part
	}
	e.Start(ctx)
}

// into is an ingest queue of a stack as a sender reaches it.
type into struct {
	queue.Queue
	e    *Engine
	lane flight.Lane
}

func (q into) Send(ctx context.Context, out []queue.Outgoing) []error {
	errs := make([]error, len(out))
	for i := range out {
		errs[i] = q.e.publish(ctx, out[i], q.lane, "search")
	}
	return queue.Answer(errs)
}

// publish sends messages with the settings of one part, and returns how many each part got.
func (s *spread) publish(ctx context.Context, bodies ...string) map[int]int {
	s.t.Helper()
	from := len(bodies) % len(s.engines) // the settings of any part give the same result
	o := s.engines[from].Operator(nil)
	o.Others = func(part int) operate.Other {
		return operate.Other{Queue: func(_ context.Context, _ string, lane flight.Lane) (queue.Queue, error) {
			return into{e: s.engines[part-1], lane: lane}, nil
		}}
	}
	var p operate.Publication
	for _, body := range bodies {
		p.Messages = append(p.Messages, queue.Outgoing{Body: body})
	}
	done, err := o.API().Publish(ctx, p)
	if err != nil || len(done.Refused) > 0 || done.Messages != len(bodies) {
		s.t.Fatalf("published %+v: %v", done, err)
	}
	return done.Parts
}

// settle waits until every stack is idle, and expects no dead letter.
func (s *spread) settle(ctx context.Context) {
	s.t.Helper()
	for i, e := range s.engines {
		if err := e.Settle(ctx); err != nil {
			s.t.Fatalf("part %d is not settled: %v", i+1, err)
		}
		r, err := e.Report(ctx)
		if err != nil || r.Dead > 0 {
			s.t.Errorf("part %d: %d dead letters, %v", i+1, r.Dead, err)
		}
	}
	time.Sleep(5 * time.Minute) // a repair does not touch what was just written
}

// repair does what `lull index repair` does without an export, in each part.
func (s *spread) repair(ctx context.Context) {
	s.t.Helper()
	for _, e := range s.engines {
		for o := (operate.ReconcileOrder{Collection: "content", By: "ann"}); ; {
			p, err := e.Operator(nil).API().Reconcile(ctx, o)
			if err != nil {
				s.t.Fatal(err)
			}
			if p.Next == nil {
				break
			}
			o.From = *p.Next
		}
	}
}

// back counts the documents that the sink has replaced with an older version.
func (s *spread) back(docs []shard.DocID) (n int) {
	for _, doc := range docs {
		older := func(a, b sink.Op) int { return cmp.Compare(a.Key, b.Key) }
		if !slices.IsSortedFunc(s.sink.History(doc), older) {
			n++
		}
	}
	return n
}

// grown runs two parts under the standard failures, adds a third one, and sends old versions late.
// It returns how many documents went back.
func grown(t *testing.T, seed uint64, repair bool) (back int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &spread{t: t, seed: seed, writers: map[shard.DocID]map[int]bool{}}
		s.sink = memorysink.New(clock.System{}, memorysink.Settings{Versions: true, RememberOps: true})
		s.add(ctx)
		s.add(ctx)
		const documents, versions = 40, 5
		var bodies []string
		var docs []shard.DocID
		for i := range documents {
			docs = append(docs, doc(strconv.Itoa(i)))
			for v := range versions {
				bodies = append(bodies, put(0, strconv.Itoa(i), v+1).Body)
			}
		}
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(bodies), func(i, j int) {
			bodies[i], bodies[j] = bodies[j], bodies[i]
		})
		got := map[int]int{}
		for part := range slices.Chunk(bodies, 23) {
			for n, sent := range s.publish(ctx, part...) {
				got[n] += sent
			}
			time.Sleep(700 * time.Millisecond)
		}
		s.settle(ctx)
		want := map[int]int{}
		for _, doc := range docs {
			want[shard.Part(doc, 2)] += versions
		}
		if !maps.Equal(got, want) {
			t.Errorf("the parts got %v messages, want %v", got, want)
		}
		s.check(docs, 2, "5")
		if n := s.back(docs); n > 0 {
			t.Errorf("%d documents went back before the growth", n)
		}

		s.add(ctx) // everything is settled: nothing waits in the first two parts
		if repair {
			s.repair(ctx)
		}
		clear(s.writers)
		var late []string
		for i := range documents {
			late = append(late, put(0, strconv.Itoa(i), 2).Body)
		}
		s.publish(ctx, late...)
		s.settle(ctx)
		if back = s.back(docs); repair {
			s.check(docs, 3, "5")
		}
		var newer []string
		for i := range documents {
			newer = append(newer, put(0, strconv.Itoa(i), 6).Body)
		}
		s.publish(ctx, newer...)
		s.settle(ctx)
		s.check(docs, 3, "6")
		cancel()
		for _, e := range s.engines {
			e.Stop()
		}
	})
	return back
}

// check checks that the sink has this version of every document, and that only its own part has
// sent it.
func (s *spread) check(docs []shard.DocID, parts int, version string) {
	s.t.Helper()
	for _, doc := range docs {
		if got, _, err := s.sink.Get(s.t.Context(), doc); err != nil || got.Version != version {
			s.t.Errorf("%s: version %q in the sink, want %s (%v)", doc, got.Version, version, err)
		}
		part := event.Part(doc.Collection(), doc.ID(), parts)
		for other := range s.writers[doc] {
			if other != part {
				s.t.Errorf("%s of part %d was written by part %d", doc, part, other)
			}
		}
	}
}

func TestPartsThatShareASinkHoldTheirPromisesAndGrow(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			if n := grown(t, seed, true); n > 0 {
				t.Errorf("%d documents went back", n)
			}
		})
	}
}

// The fences of the sink do not replace the rows: an old version that comes late gets a newer
// fence.
func TestWithoutARepairADocumentThatMovedMayGoBack(t *testing.T) {
	t.Parallel()
	if n := grown(t, 1, false); n == 0 {
		t.Error("no document went back: the page says that a growth needs the repair")
	}
}
