// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/searchability"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/searchable"
	"github.com/lullhq/lull/sink"
)

// refreshEvery is the refresh interval of the engines in these runs.
const refreshEvery = time.Second

// questions asks a run whether versions are searchable, by the rows alone. It knows what a search
// of each engine would find: an engine shows its documents as they were at its last refresh.
type questions struct {
	w       *World
	phase   map[string]time.Duration // when each engine refreshes, after each full interval
	applied map[shard.DocID][]applied
	change  func(*searchability.Service) // a mutant; may be nil
	yes     map[bool]int                 // the answers yes, by whether the question waited
	no      int
	failed  int
}

// applied is an item that an engine applied.
type applied struct {
	at  time.Duration
	key shard.OrderKey
}

// asking returns the run of a seed in which random questions are asked, and its questions. Half of
// the runs have a second sink.
func asking(t testing.TB, seed uint64, ask int, change func(*searchability.Service)) (*World, *questions) {
	t.Helper()
	d := newDice(seed, 0x66726573)
	q := &questions{
		phase: map[string]time.Duration{}, applied: map[shard.DocID][]applied{}, change: change, yes: map[bool]int{},
	}
	q.w = build(t, seed, Swarm, func(o *Options) {
		o.Config.TableOutage = config.TableOutageClosed
		if seed%4 < 2 {
			fanOut(o.Config)
		}
		for name, s := range o.Config.Sinks {
			interval := refreshEvery
			s.Refresh = &interval
			o.Config.Sinks[name] = s
		}
		o.Config.Complete()
		o.Watch = q.see
	})
	for _, p := range q.w.pipes {
		q.phase[p.name] = d.upTo(refreshEvery)
	}
	for range ask {
		q.w.operator++ // the run does not end before the answer
		q.w.after(d.upTo(q.w.options.Upstream.Calm+time.Minute), func() { q.ask(&d) })
	}
	return q.w, q
}

// see records what the engines apply.
func (q *questions) see(s Step) {
	if s.What == Answered && s.Outcome.Kind == sink.Applied {
		q.applied[s.Op.Doc] = append(q.applied[s.Op.Doc], applied{s.At, s.Op.Key})
	}
}

// finds returns the version of a row's document that a search finds now. It is empty if the engine
// had not applied any version before its last refresh.
func (q *questions) finds(sink string, row shard.DocID) (found shard.OrderKey) {
	last := (q.w.now - q.phase[sink]).Truncate(refreshEvery) + q.phase[sink]
	for _, a := range q.applied[row] {
		if a.at < last {
			found = a.key
		}
	}
	return found
}

// ask asks about a random version of a random document.
func (q *questions) ask(d *dice) {
	w := q.w
	docs := slices.DeleteFunc(slices.Sorted(maps.Keys(w.oracle.docs)), func(doc shard.DocID) bool {
		return !doc.IsDocument() || len(w.oracle.docs[doc].keys) == 0
	})
	if len(docs) == 0 {
		w.operator--
		return
	}
	doc := oneOf(*d, docs...)
	about := searchable.Question{
		Key: string(doc.Plain()), Version: oneOf(*d, w.oracle.docs[doc].keys...).VersionText(),
		Wait: oneOf(*d, 0, 500*time.Millisecond, 5*time.Second, searchable.MaxWait),
	}
	w.invoke(operators, 28*time.Second, func(ctx context.Context, v *invocation) {
		cfg := *w.cfg
		s := searchability.Service{Shards: w.shards(v), Config: &cfg, Clock: v.clock}
		hooked(q.change, &s)
		a, err := s.Answer(ctx, about)
		if err != nil {
			q.failed++
			return
		}
		q.judge(about, a)
	}, func(error) { w.operator-- })
}

// judge compares an answer with what a search finds at the time of the answer.
func (q *questions) judge(about searchable.Question, a searchable.Answer) {
	if a.Searchable == searchable.No {
		q.no++
	}
	for _, in := range a.Sinks {
		if in.Searchable != searchable.Yes {
			continue
		}
		q.yes[about.Wait > 0]++
		row, _ := q.w.cfg.RowAt(shard.DocID(about.Key), in.Sink)
		found := q.finds(in.Sink, row)
		p, err := found.Parts()
		want, bad := shard.ParseVersion(shard.ClassInt, about.Version)
		if err != nil || bad != nil || p.Version.Compare(want) < 0 {
			q.w.oracle.always("no yes before a search finds it", fmt.Sprintf("%s in %s: version %s is searchable (%s), a search finds %s",
				row, in.Sink, about.Version, in.How, found))
		}
	}
}

// TestNoAnswerIsYesBeforeASearchFindsIt asks 1,000 random questions, ten in each run.
func TestNoAnswerIsYesBeforeASearchFindsIt(t *testing.T) {
	t.Parallel()
	yes, no, failed := map[bool]int{}, 0, 0
	for seed := uint64(1); seed <= seeds(100); seed++ {
		w, q := asking(t, seed, 10, nil)
		report(t, w.Run(), Swarm)
		yes[true] += q.yes[true]
		yes[false] += q.yes[false]
		no, failed = no+q.no, failed+q.failed
	}
	t.Logf("yes: %d after a wait, %d at once; no: %d; failed: %d", yes[true], yes[false], no, failed)
	if yes[true] == 0 || yes[false] == 0 || no == 0 {
		t.Error("not every kind of answer was given")
	}
}

// otherRow reads the rows of the first sink for every sink.
type otherRow struct{ shard.Store }

func (o otherRow) Read(ctx context.Context, docs []shard.DocID, how shard.Consistency) ([]shard.Row, error) {
	docs = slices.Clone(docs)
	for i, doc := range docs {
		if strings.Contains(string(doc), "@") && doc.IsDocument() {
			docs[i] = doc.Plain()
		}
	}
	return o.Store.Read(ctx, docs, how)
}

// sleepless is a clock that does not sleep.
type sleepless struct{ *skewed }

func (s sleepless) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func TestAnAnswerThatIsYesTooEarlyIsCaught(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*searchability.Service){
		"the refresh interval is ignored": func(s *searchability.Service) {
			s.Config.Sinks = maps.Clone(s.Config.Sinks)
			for name, of := range s.Config.Sinks {
				of.Refresh = new(time.Duration)
				s.Config.Sinks[name] = of
			}
		},
		"the row of another sink is read": func(s *searchability.Service) { s.Shards = otherRow{s.Shards} },
		"pending counts as committed": func(s *searchability.Service) {
			s.Shards = seenStore{s.Shards, func(r *shard.Row) { r.Committed = max(r.Committed, r.Pending) }}
		},
		"a claim counts as a commit": func(s *searchability.Service) {
			s.Shards = seenStore{s.Shards, func(r *shard.Row) { r.Committed = max(r.Committed, r.Claimed) }}
		},
		"the clock that wrote the row is believed": func(s *searchability.Service) {
			s.Config.Index.Timeout, s.Config.Index.Guard = 0, 0
		},
		"a pause of a poll counts before it is over": func(s *searchability.Service) {
			if c, ok := s.Clock.(*skewed); ok {
				s.Clock = sleepless{c}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := caught(t, 100, func(seed uint64) *World {
				w, _ := asking(t, seed, 60, change)
				return w
			})
			if r.Violations[0].Rule != "no yes before a search finds it" {
				t.Errorf("another rule was broken: %s", r.Violations[0])
			}
		})
	}
}
