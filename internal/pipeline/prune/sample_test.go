// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// started is a launcher that records the executions.
type started struct {
	states []flight.State
	err    error
}

func (s *started) Start(_ context.Context, state flight.State) error {
	s.states = append(s.states, state)
	return s.err
}

// sampled does a run, and returns the documents that the run samples.
func (b *bench) sampled() []shard.DocID {
	b.Helper()
	p, l := b.pruner(), &started{}
	p.Launcher = l
	time.Sleep(b.Config.Lifecycle.PruneEvery)
	if _, err := p.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	if len(l.states) == 0 {
		return nil
	}
	s := l.states[0]
	if len(l.states) > 1 || s.Flight == "" || s.Wake().IsZero() || !s.Remaining.Empty() {
		b.Errorf("the run started %+v, want one execution at most", l.states)
	}
	return s.Sample
}

func TestASampleIsAFewCommittedRowsOfThisSinkAtRandom(t *testing.T) {
	play(t, func(b *bench) {
		b.Config.Sinks["other"] = config.Sink{}
		b.Config.Collections["far"] = config.Collection{Sink: "other"}
		const n = 3000
		for i := range n {
			b.commit(doc(i), 1, shard.Put)
		}
		b.Change("far#1", func(r *shard.Row) { r.Committed = "x" })
		b.admit(doc("waiting"), 1)
		seen := map[shard.DocID]bool{}
		for range 20 {
			got := b.sampled()
			if len(got) != b.Config.Lifecycle.DriftSample {
				t.Fatalf("%d documents, want %d", len(got), b.Config.Lifecycle.DriftSample)
			}
			for _, d := range got {
				if d.Collection() != "content" || d == doc("waiting") {
					t.Errorf("%s is sampled, want no other sink's document and no uncommitted one", d)
				}
				seen[d] = true
			}
		}
		if len(seen) < 150 {
			t.Errorf("20 samples contain %d documents: they are not random", len(seen))
		}
	})
}

func TestNoSampleIsTakenWhereItCannotBeCompared(t *testing.T) {
	usecasetest.Table(t, play, map[string]func(b *bench){
		"the setting is off":      func(b *bench) { b.Config.Lifecycle.DriftSample = 0 },
		"the table is empty":      func(b *bench) { b.Write(shard.Write{Doc: doc(1), Drop: true}) },
		"the sink is paused":      func(b *bench) { b.Write(shard.Pause("search", now(), "ann", "")) },
		"the sink is not healthy": func(b *bench) { b.Write(shard.Trip("search", now(), now().Add(time.Hour), 1)) },
		"nothing is committed": func(b *bench) {
			b.Write(shard.Write{Doc: doc(1), Drop: true})
			b.admit(doc(1), 1)
		},
		"the row belongs to another sink": func(b *bench) { b.Config.Sinks["x"] = config.Sink{}; b.Config.DefaultSink = "x" },
	}, func(b *bench, change func(b *bench)) {
		b.commit(doc(1), 1, shard.Put)
		change(b)
		if got := b.sampled(); len(got) > 0 {
			b.Errorf("got the sample %v, want none", got)
		}
	})
}

func TestASampleThatCannotBeStartedFailsItsSegmentOnly(t *testing.T) {
	play(t, func(b *bench) {
		b.commit(doc(1), 1, shard.Put)
		p := b.pruner()
		p.Launcher = &started{err: errors.New("no such state machine")}
		rep, err := p.Run(b.Context())
		if err == nil || err.Error() != "sample: start the comparison: no such state machine" || rep.Rows.Read == 0 {
			t.Errorf("got %v, %+v", err, rep)
		}
	})
}

// unreadable is a sink from which no document can be read.
type unreadable struct{ *memorysink.Sink }

func (unreadable) Get(context.Context, shard.DocID) (sink.Stored, bool, error) {
	return sink.Stored{}, false, errors.New("403: secret")
}

func (unreadable) Marks(context.Context, []shard.DocID) ([]sink.Stored, error) {
	return nil, errors.New("403: secret")
}

// index counts a difference as drift only if a second comparison still finds it, because most
// differences are writes in progress.
func TestDriftIsCountedOnTheSecondLook(t *testing.T) {
	write := func(b *bench, s *memorysink.Sink, version int) {
		b.Helper()
		e := b.version(doc(1), version)
		out := s.Write(b.Context(), []sink.Op{{
			Doc: e.Doc, Kind: shard.Put, Fence: shard.Fence(now()), Key: e.Key, Version: fmt.Sprint(version),
			Document: []byte(`{"title":"secret"}`),
		}})
		if out[0].Kind != sink.Applied {
			b.Fatal(out)
		}
	}
	for _, tt := range []struct {
		name    string
		before  func(b *bench, s *memorysink.Sink)
		between func(b *bench, s *memorysink.Sink)
		change  func(h *index.Handler, s *memorysink.Sink)
		want    string
		fails   int
	}{
		{name: "the sink has the version", before: func(b *bench, s *memorysink.Sink) { write(b, s, 3) }},
		{name: "the sink lost the document", want: "missing: the sink has nothing, the row e010,i013,-"},
		{
			name: "the sink has an older version", before: func(b *bench, s *memorysink.Sink) { write(b, s, 2) },
			want: "older: the sink has e010,i012,-",
		},
		{
			name: "the row is older", before: func(b *bench, s *memorysink.Sink) { write(b, s, 4) },
			want: "behind: the sink has e010,i014,-",
		},
		{
			name:    "another program repaired the document in between",
			between: func(b *bench, s *memorysink.Sink) { write(b, s, 3) },
		},
		{
			name:   "the document is being written",
			before: func(b *bench, _ *memorysink.Sink) { b.admit(doc(1), 4); b.claim(doc(1), 4) },
		},
		{
			name: "the answer of a write was lost, and a newer version was claimed since",
			before: func(b *bench, s *memorysink.Sink) {
				b.admit(doc(1), 4)
				b.claim(doc(1), 4)
				write(b, s, 4)
				time.Sleep(10 * time.Minute)
				b.admit(doc(1), 5)
				b.claim(doc(1), 5)
				time.Sleep(10 * time.Minute)
			},
		},
		{
			name: "the document was written, the answer was lost, and the version waits for its next try",
			before: func(b *bench, s *memorysink.Sink) {
				b.admit(doc(1), 4)
				b.claim(doc(1), 4)
				write(b, s, 4)
				time.Sleep(10 * time.Minute)
			},
		},
		{
			name:   "a newer version waits",
			before: func(b *bench, _ *memorysink.Sink) { b.admit(doc(1), 4) },
		},
		{
			name: "the sink cannot be read", fails: 1,
			change: func(h *index.Handler, s *memorysink.Sink) { h.Reader = unreadable{s} },
		},
		{name: "the sink has no reader", change: func(h *index.Handler, _ *memorysink.Sink) { h.Reader = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			play(t, func(b *bench) {
				s := memorysink.New(clock.System{}, memorysink.Settings{Versions: true})
				b.commit(doc(1), 3, shard.Put)
				time.Sleep(10 * time.Minute)
				if tt.before != nil {
					tt.before(b, s)
				}
				h := b.indexing(s)
				h.Reader = s
				if tt.change != nil {
					tt.change(h, s)
				}
				ops := s.Counts().Ops
				state := flight.State{Schema: 1, Flight: "sample", Sample: []shard.DocID{doc(1), doc("unknown")}}
				for turns := 0; !state.Done; turns++ {
					if turns == 3 {
						t.Fatal("the comparison never ends")
					}
					var err error
					if state, err = h.Turn(b.Context(), state); err != nil {
						t.Fatal(err)
					}
					if tt.between != nil && turns == 0 {
						tt.between(b, s)
						ops++
					}
					if !state.Done {
						time.Sleep(time.Until(state.Wake()))
					}
				}
				var got []string
				for _, n := range b.Notes.Of(journal.Drift) {
					got = append(got, n.Detail)
				}
				if want := tt.want != ""; want != (len(got) == 1) || want && !strings.HasPrefix(got[0], tt.want) {
					t.Errorf("got the note %q, want %q", got, tt.want)
				}
				b.Noted(journal.CallFailed, tt.fails)
				if n := s.Counts().Ops; n != ops {
					t.Errorf("a comparison wrote %d documents", n-ops)
				}
			})
		})
	}
}
