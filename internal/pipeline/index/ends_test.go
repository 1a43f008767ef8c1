// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/sink"
)

func TestWriteSendsWhatCanBeBuilt(t *testing.T) {
	stage(t, nil, []string{put("a", 1), put("b", 1)}, func(p *parts) {
		docs := p.claimed()
		docs[0].body, docs[1].fault = []byte(`{"title":"v1"}`), "it cannot be built"
		s := writer{p.f, p.engine(), p.budget()}
		r := s.write(p.Context(), docs)
		p.count("sent", len(r.ops), 1)
		p.count("broken", len(r.broken), 1)
		if !r.answered() || r.outcomes[0].Kind != sink.Applied {
			p.Errorf("outcomes %v, want the first one applied", r.outcomes)
		}
	})
}

func TestTheVerdictOnACollectionDecidesAboutItsRefusals(t *testing.T) {
	for said, want := range map[verdict]sink.OutcomeKind{
		takes: sink.Rejected, noKnownGood: sink.Rejected, refuses: sink.Configuration, unclear: sink.Throttled,
	} {
		t.Run(want.String(), func(t *testing.T) {
			stage(t, nil, []string{put("a", 1)}, func(p *parts) {
				r := answering(p.claimed(), sink.Outcome{Kind: sink.Rejected, Status: 400})
				known := map[shard.Collection]verdict{"content": said}
				s := refusals{p.f.invocation, p.engine(), p.budget(), known, false}
				if s.explain(p.Context(), r); r.outcomes[0].Kind != want {
					p.Errorf("outcome %v, want %v", r.outcomes[0], want)
				}
			})
		})
	}
}

func TestHealthOpensTheCircuitIfNoDocumentIsAnswered(t *testing.T) {
	for kind, open := range map[sink.OutcomeKind]bool{sink.Applied: false, sink.Rejected: false, sink.Unknown: true} {
		t.Run(kind.String(), func(t *testing.T) {
			stage(t, nil, []string{put("a", 1)}, func(p *parts) {
				h := p.health()
				if h.judge(p.Context(), answering(p.claimed(), sink.Outcome{Kind: kind})); h.tripped != open {
					p.Errorf("tripped %v, want %v", h.tripped, open)
				}
			})
		})
	}
}

// An engine that queues requests answers late, then not at all. lull slows down at the first late
// answer, and gently, because a healthy engine may pause once. A late answer sets no speed below
// the speed after an outage, because some sinks are always slow.
func TestHealthSlowsDownForALateAnswer(t *testing.T) {
	const late = 3100 * time.Millisecond // the deadline is six seconds
	for name, c := range map[string]struct {
		took time.Duration
		pace int64         // before the answer
		paid time.Duration // how much time flights took, of the four seconds since the last cut
		bulk int           // documents in a request; there are three documents
		want int64         // the speed after the answer, 0 if it is not cut
	}{
		"in time":                       {took: 3 * time.Second, bulk: 500},
		"late":                          {took: late, bulk: 500, want: 1000 * lateFirst},
		"late for one of two requests":  {took: late, bulk: 2},
		"late for each of two requests": {took: 2 * late, bulk: 2, want: 1000 * lateFirst},
		"slow already":                  {took: late, bulk: 500, pace: shard.RestartPace - 1000},
		"late again":                    {took: late, bulk: 500, pace: 100_000, want: 85_085},
		"late, and near the least":      {took: late, bulk: 500, pace: 17_000, want: shard.RestartPace},
		"late, and hardly used": {
			took: late, bulk: 500, pace: 100_000, paid: 100 * time.Millisecond, want: shard.RestartPace,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, nil, []string{put("a", 1), put("b", 1), put("c", 1)}, func(p *parts) {
				set := p.f.config.Sinks["search"]
				set.BulkDocuments = c.bulk
				p.f.config.Sinks["search"] = set
				if c.pace > 0 {
					cutAt := p.f.now().Add(-4 * time.Second)
					p.Write(shardtest.Put(shard.Row{
						Doc: shard.HealthRow("search"), RateAt: cutAt, Rate: c.pace, RateTop: c.pace,
						Paid: c.paid.Microseconds(),
					}))
				}
				h := p.health()
				h.read(p.Context())
				r := answering(p.claimed(), sink.Outcome{Kind: sink.Applied})
				r.took = c.took
				h.judge(p.Context(), r)
				if c.want == 0 {
					p.Noted(journal.Slowed, 0)
					return
				}
				if p.Noted(journal.Slowed, 1); h.row.Rate != c.want || h.tripped {
					p.Errorf("the speed is %d, want %d; the circuit opened: %t", h.row.Rate, c.want, h.tripped)
				}
			})
		})
	}
}

// While answers are missing, the sink does not count as healthy: the circuit opens for longer each
// time, although each request waits longer than the circuit was open.
func TestTheLevelRisesWhileNoRequestIsAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		took time.Duration
		want int64
	}{
		"refused at once":    {took: time.Millisecond, want: 1},
		"after the deadline": {took: 6 * time.Second, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, nil, []string{put("a", 1)}, func(p *parts) {
				// The circuit closed ten seconds ago, at a level whose time is four seconds.
				p.Write(shardtest.Put(shard.Row{
					Doc: shard.HealthRow("search"), Level: 3, LastWrite: p.f.now().Add(-10 * time.Second),
				}))
				h := p.health()
				h.read(p.Context())
				r := answering(p.claimed(), sink.Outcome{Kind: sink.Unknown, Reason: "time-out"})
				r.took, r.began = c.took, p.f.now().Add(-c.took)
				if h.judge(p.Context(), r); h.row.Level != c.want {
					p.Errorf("level %d, want %d", h.row.Level, c.want)
				}
			})
		})
	}
}

func TestMirrorWritesOnlyWhatIsBeingRebuilt(t *testing.T) {
	for of, missed := range map[string]int{"content": 1, "news": 0} {
		t.Run(of, func(t *testing.T) {
			stage(t, nil, []string{put("a", 1)}, func(p *parts) {
				h := p.health()
				h.rebuild.RebuildOf, h.rebuild.RebuildAt = of, 1
				r := answering(p.claimed(), sink.Outcome{Kind: sink.Applied})
				s := mirror{p.engine(), h}
				s.write(p.Context(), r.ops, r.outcomes)
				p.Noted(journal.Missed, missed) // this sink has no new index, so every copy is missed
			})
		})
	}
}

func TestEachOutcomeEndsItsClaim(t *testing.T) {
	for kind, want := range map[sink.OutcomeKind]struct {
		step        journal.Step
		left        int
		stillLeased bool
	}{
		sink.Applied: {journal.Committed, 0, false}, sink.Throttled: {journal.Released, 1, false},
		sink.Rejected: {journal.Rejected, 0, false}, sink.Unknown: {journal.OutcomeUnknown, 1, true},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			stage(t, nil, []string{put("a", 1)}, func(p *parts) {
				carryOut(p.Context(), p.closer(), answering(p.claimed(), sink.Outcome{Kind: kind}))
				p.Noted(want.step, 1)
				p.count("entries", p.f.left.Count(), want.left)
				if leased := p.Row(docA).Owner != ""; leased != want.stillLeased {
					p.Errorf("leased %v, want %v", leased, want.stillLeased)
				}
			})
		})
	}
}

func TestDeleteTakesOnlyTheMessagesThatAreDone(t *testing.T) {
	stage(t, nil, []string{put("a", 1), put("b", 1)}, func(p *parts) {
		p.f.drop(p.f.docs[0].newest())
		p.messages().deleteDone(p.Context())
		p.Noted(journal.Deleted, 1)
		p.count("messages", p.live.Counts().Total(), 1)
	})
}

func TestFinishEndsOrWakes(t *testing.T) {
	stage(t, nil, []string{put("a", 1)}, func(p *parts) {
		s := p.planner()
		p.f.wait(p.f.docs[0], p.f.now().Add(20*time.Second), "a reason")
		next := s.finish(p.Context())
		if wait := time.Until(next.Wake()); next.Done || wait < 19*time.Second || wait > 21*time.Second {
			p.Errorf("state %+v, want a wake in 20 s", next)
		}
		p.f.drop(p.f.docs[0].newest())
		if next = s.finish(p.Context()); !next.Done {
			p.Errorf("state %+v, want it done", next)
		}
		p.Noted(journal.Ended, 1)
	})
}

func TestOnlyOneTurnContinuesAFlight(t *testing.T) {
	stage(t, nil, []string{put("a", 1)}, func(p *parts) {
		var started launched
		x := execution{p.f.invocation, p.flights, &started, 0}
		usecasetest.OK(p, p.flights.Put(p.Context(), p.f.manifest))
		for range 2 {
			if !x.continueFlight(p.Context(), p.f.state, mustGo) {
				p.Error("the flight was not continued")
			}
		}
		p.count("executions", int(started), 1)
	})
}

func TestReassertDeletesAgainWhatTheRowDeleted(t *testing.T) {
	stage(t, nil, []string{put("a", 1)}, func(p *parts) {
		newer := p.EventOf(put("a", 2)).Key
		p.Change(docA, func(r *shard.Row) { r.Committed, r.CommittedOp, r.Pending = newer, shard.Delete, "" })
		p.read()
		s := reasserter{p.f, p.token, p.closer(), p.engine(), &mirror{p.engine(), p.health()}}
		s.reassert(p.Context())
		p.Noted(journal.Reasserted, 1)
		p.count("entries", p.f.left.Count(), 0)
	})
}
