// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	"github.com/lullhq/lull/source"
)

// scene is a running stack in virtual time, for stories of a few messages.
type scene struct {
	t      *testing.T
	ctx    context.Context
	e      *Engine
	sink   *memorysink.Sink
	p      *pipe
	notes  *usecasetest.Notes
	inject *scripted
	start  time.Time
	about  string // the document to explain; empty means the document a
}

// stage describes a scene.
type stage struct {
	cfg     func(*config.Config)
	sink    memorysink.Settings
	noVers  bool
	faults  *fault.Mix
	inject  fault.Injector  // replaces the failures that the story injects
	journal journal.Journal // replaces the notes of the scene, because a long run makes millions of notes
	pollers int
	objects payload.Objects // the objects of buckets; nil for none
}

// play runs a story in a synctest bubble.
func (st stage) play(t *testing.T, story func(s *scene)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := config.Default()
		versions := !st.noVers
		cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
		if st.cfg != nil {
			st.cfg(&cfg)
		}
		cfg.Complete()
		st.sink.Versions, st.sink.RememberOps = versions, true
		s := &scene{t: t, notes: &usecasetest.Notes{}, inject: &scripted{}, start: time.Now()}
		s.sink = memorysink.New(clock.System{}, st.sink)
		o := Options{
			Config: &cfg, Clock: clock.System{}, Sinks: map[string]sink.Sink{"search": s.sink}, Journal: s.notes,
			Faults: st.faults, Pollers: st.pollers,
			Objects: st.objects,
		}
		if st.faults == nil {
			o.Inject = s.inject
		}
		if st.inject != nil {
			o.Inject = st.inject
		}
		if st.journal != nil {
			o.Journal = st.journal
		}
		var err error
		if s.e, err = New(o); err != nil {
			t.Fatal(err)
		}
		s.p = s.e.pipes["search"]
		ctx, cancel := context.WithCancel(t.Context())
		s.ctx = ctx
		s.e.Start(ctx)
		story(s)
		cancel()
		s.e.Stop()
	})
}

// arrive publishes messages at their times.
func (s *scene) arrive(messages []feed.Timed) {
	s.t.Helper()
	if err := s.e.Play(s.ctx, &slice{messages}); err != nil {
		s.t.Fatal(err)
	}
}

// holdsAll checks that the sink has exactly the given versions of all documents.
func (s *scene) holdsAll(want map[string]string) {
	s.t.Helper()
	got := map[string]string{}
	err := s.sink.All(s.ctx, func(d sink.Stored) error {
		got[string(d.Doc)] = d.Version
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	diff(s.t, got, want)
}

// send publishes messages now, and ignores their times.
func (s *scene) send(messages ...feed.Timed) {
	s.t.Helper()
	for _, m := range messages {
		if err := s.e.take(s.ctx, m.Outgoing); err != nil {
			s.t.Fatal(err)
		}
	}
}

// wait lets virtual time pass.
func (s *scene) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// settle waits until no message is left, and checks the counters.
func (s *scene) settle() ledger.Report {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, 80*24*time.Hour)
	defer cancel()
	if err := s.e.Settle(ctx); err != nil {
		s.t.Fatalf("not settled: %v", err)
	}
	r, err := s.e.Report(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		s.t.Error(err)
	}
	return r
}

// holds checks the version of a document in the sink, "" for none.
func (s *scene) holds(id, want string) {
	s.t.Helper()
	got, _, err := s.sink.Get(s.ctx, doc(id))
	if err != nil {
		s.t.Fatal(err)
	}
	if got.Version != want {
		s.t.Errorf("%s: version %q in the sink, want %q", id, got.Version, want)
	}
}

// writes checks how many writes of the document the sink applied.
func (s *scene) writes(id string, want int) {
	s.t.Helper()
	if got := len(s.sink.History(doc(id))); got != want {
		s.t.Errorf("%s: %d writes applied, want %d", id, got, want)
	}
}

// neverBack checks that the sink never replaced a document with an older version.
func (s *scene) neverBack(doc shard.DocID) {
	s.t.Helper()
	var last shard.OrderKey
	for _, op := range s.sink.History(doc) {
		if op.Key < last {
			s.t.Errorf("%s went back to version %s", doc, op.Version)
		}
		last = op.Key
	}
}

func (s *scene) row(id string) shard.Row {
	s.t.Helper()
	rows, err := s.e.Shards.Read(s.ctx, []shard.DocID{doc(id)}, shard.Consistent)
	if err != nil {
		s.t.Fatal(err)
	}
	return rows[0]
}

func doc(id string) shard.DocID { return shard.DocID("content#" + id) }

func (s *scene) noted(step journal.Step, want int) {
	s.t.Helper()
	if got := len(s.notes.Of(step)); got != want {
		s.t.Errorf("%d notes %q, want %d", got, step, want)
	}
}

// scripted injects faults into named calls.
type scripted struct {
	mu    sync.Mutex
	plans []plan
	rule  func(op fault.Op) (fault.Verdict, bool)
}

type plan struct {
	call  string
	times int
	what  fault.Verdict
	then  func()
}

// next makes the next calls with the given name fail in the given way.
func (s *scripted) next(call string, what fault.Verdict, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans = append(s.plans, plan{call: call, what: what, times: times})
}

// when runs f before the next call with the given name.
func (s *scripted) when(call string, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans = append(s.plans, plan{call: call, times: 1, then: f})
}

// follow sets the rule, even while the engine runs.
func (s *scripted) follow(rule func(op fault.Op) (fault.Verdict, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rule = rule
}

func (s *scripted) Decide(_ context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	s.mu.Lock()
	for i := range s.plans {
		p := &s.plans[i]
		if p.times == 0 || p.call != op.Call {
			continue
		}
		p.times--
		then, what := p.then, p.what
		s.mu.Unlock()
		if then != nil {
			then()
		}
		return what
	}
	rule := s.rule
	s.mu.Unlock()
	if rule != nil {
		if v, yes := rule(op); yes {
			return v
		}
	}
	return fault.OK
}

// key returns the order key of an event that put() has made.
func (s *scene) key(m feed.Timed) shard.OrderKey {
	s.t.Helper()
	r := s.e.sources.Decode(queue.Message{Body: m.Body})
	if r[0].Invalid != nil {
		s.t.Fatal(r[0].Invalid)
	}
	return r[0].Event.Key
}

// startAgain starts another execution of a flight.
func (s *scene) startAgain(id flight.ID) {
	s.t.Helper()
	m, err := s.e.Flights.Get(s.ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	err = s.p.lane(flight.Live).machine.Start(s.ctx, flight.State{
		Schema: flight.SchemaVersion, Flight: id, Remaining: flight.AllRemaining(m.Items()),
		WakeAt:       flight.WakeText(m.Records[0].Events[0].Due.Time()),
		VisibleUntil: shard.MicrosOf(time.Now().Add(30 * time.Second)),
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// withEpoch returns the sources of the engine after an operator has raised the epoch.
func (e *Engine) withEpoch(t *testing.T, epoch uint32) *source.Set {
	t.Helper()
	cfg := *e.cfg
	cfg.Sources = map[string]config.Source{}
	for name, s := range e.cfg.Sources {
		s.Epoch = epoch
		cfg.Sources[name] = s
	}
	set, err := source.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
