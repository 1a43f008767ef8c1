// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

var (
	put  = usecasetest.Put
	docA = usecasetest.Doc("a")
)

// stage runs one stage on a flight of the given events.
func stage(t *testing.T, change func(*config.Config), bodies []string, story func(p *parts)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) { story(flying(t, change, bodies...)) })
}

func TestLoadGroupsWhatRemainsByDocument(t *testing.T) {
	stage(t, nil, []string{put("a", 1), put("a", 2), put("b", 1)}, func(p *parts) {
		p.count("documents", len(p.f.docs), 2)
		p.count("versions of a", len(p.f.docs[0].held), 2)
		if got, want := p.f.docs[0].newest().Key, p.EventOf(put("a", 2)).Key; got != want {
			p.Errorf("newest version %s, want %s", got, want)
		}
	})
}

func TestExtendHoldsTheMessagesThatRemain(t *testing.T) {
	stage(t, nil, []string{put("a", 1)}, func(p *parts) {
		until := p.f.now().Add(time.Hour)
		p.messages().extend(p.Context(), until)
		if p.Noted(journal.Extended, 1); p.f.state.VisibleUntil != until {
			p.Errorf("visible at %s, want %s", p.f.state.VisibleUntil.Time(), until.Time())
		}
	})
}

func TestReadHealthFindsAPausedSink(t *testing.T) {
	stage(t, nil, nil, func(p *parts) {
		p.Change(shard.HealthRow("search"), func(r *shard.Row) { r.PausedAt = p.f.now() })
		h := p.health()
		if h.read(p.Context()); h.circuit != shard.CircuitOpen || !strings.Contains(h.whyClosed(), "paused") {
			p.Errorf("circuit %v: %s", h.circuit, h.whyClosed())
		}
	})
}

func TestDecideSaysWhatToDoWithEachRow(t *testing.T) {
	for name, row := range map[string]struct {
		change         func(p *parts, r *shard.Row)
		claims, behind int
		left           int
	}{
		"pending":   {func(*parts, *shard.Row) {}, 1, 0, 1},
		"committed": {func(_ *parts, r *shard.Row) { r.Committed, r.CommittedOp, r.Pending = r.Pending, shard.Put, "" }, 0, 0, 0},
		"leased": {func(p *parts, r *shard.Row) {
			r.Owner, r.Claimed, r.LeaseUntil = "another", r.Pending, p.f.now().Add(time.Minute)
		}, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, nil, []string{put("a", 1)}, func(p *parts) {
				p.Change(docA, func(r *shard.Row) { row.change(p, r) })
				s := decider{p.f}
				claims, behind := s.decide(p.Context())
				p.count("claims", len(claims), row.claims)
				p.count("to admit", len(behind), row.behind)
				p.count("entries", p.f.left.Count(), row.left)
			})
		})
	}
}

func TestAdmitMakesAVersionPending(t *testing.T) {
	stage(t, nil, []string{put("a", 1)}, func(p *parts) {
		p.Change(docA, func(r *shard.Row) { *r = shard.Row{Doc: docA} })
		s := admitter{p.messages()}
		p.count("claims", len(s.admit(p.Context(), p.read())), 1)
		if got, want := p.Row(docA).Pending, p.f.docs[0].newest().Key; got != want {
			p.Errorf("pending %q, want %q", got, want)
		}
	})
}

func TestWhatAlwaysPanicsIsParked(t *testing.T) {
	stage(t, nil, []string{put("a", 1), put("b", 1)}, func(p *parts) {
		p.Change(docA, func(r *shard.Row) { r.Claimed, r.Attempts = r.Pending, panicAttempts })
		p.f.state.Panicked.Put(0)
		p.count("claims", len(parkPanics(p.Context(), p.closer(), p.read())), 1)
		p.WantLetters(p.dead, 1)
		p.Noted(journal.DeadLettered, 1)
	})
}

func TestPayTakesASlotOfABusySink(t *testing.T) {
	rate := setting.Rate(2 * float64(setting.OncePerSecond))
	limit := func(c *config.Config) {
		s := c.Sinks["search"]
		s.MaxDocumentsPerSecond = &rate
		c.Sinks["search"] = s
	}
	for name, row := range map[string]struct {
		change func(*config.Config)
		ahead  time.Duration // time that other flights have taken
		want   int
	}{
		"no limit": {nil, 0, 2}, "free": {limit, 0, 2}, "taken": {limit, 30 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, row.change, []string{put("a", 1), put("b", 1)}, func(p *parts) {
				b := p.budget()
				b.sink.row.PaidUntil, b.sink.row.SentUntil = p.f.now().Add(row.ahead), p.f.now().Add(row.ahead)
				p.count("paid", len(b.claimsInSlot(p.Context(), p.read())), row.want)
				p.Noted(journal.Waiting, 2-row.want)
			})
		})
	}
}

func TestAFlightRequeuesOnlyForASinkThatThrottles(t *testing.T) {
	later := func(b *budget) { b.sink.row.PaidUntil = b.now().Add(30 * time.Second) }
	for name, tt := range map[string]struct {
		change   func(*budget)
		requeues bool
		must     bool
	}{
		"a healthy sink":                   {func(b *budget) { b.sink.row = shard.Row{} }, false, false},
		"it throttles":                     {later, true, true},
		"a slot is in reach":               {func(b *budget) { b.sink.row.PaidUntil = b.now().Add(3 * time.Second) }, true, false},
		"the flight has a slot":            {func(b *budget) { later(b); b.state.Slot = b.now() }, true, false},
		"the sink starts slowly":           {func(b *budget) { later(b); b.sink.row.RateTop = 0 }, false, false},
		"the circuit is open":              {func(b *budget) { later(b); b.sink.circuit = shard.CircuitOpen }, false, false},
		"this turn has opened the circuit": {func(b *budget) { later(b); b.sink.tripped = true }, false, false},
		"the flight was rescued": {func(b *budget) {
			later(b)
			b.state.VisibleUntil = shard.MicrosOf(b.manifest.Received.Add(queue.MaxHold))
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			stage(t, nil, []string{put("a", 1)}, func(p *parts) {
				b := p.budget()
				b.sink.row = shard.Row{Rate: 7000, RateTop: 8000, RateAt: b.now()}
				tt.change(b)
				if got := b.requeues(); got != tt.requeues {
					p.Errorf("requeues: %v, want %v", got, tt.requeues)
				}
				if got := b.mustRequeue(); got != tt.must {
					p.Errorf("must requeue: %v, want %v", got, tt.must)
				}
			})
		})
	}
}

// Newer versions may replace the documents of all slots. Then the time of the sink is taken, but
// the sink is idle.
func TestAFlightWritesToAnIdleSinkWithoutASlot(t *testing.T) {
	rate := setting.Rate(2 * float64(setting.OncePerSecond))
	stage(t, func(c *config.Config) {
		s := c.Sinks["search"]
		s.MaxDocumentsPerSecond = &rate
		c.Sinks["search"] = s
	}, []string{put("a", 1)}, func(p *parts) {
		b := p.budget()
		b.sink.row = shard.Row{PaidUntil: b.now().Add(30 * time.Second), SentUntil: b.now().Add(-time.Second)}
		if b.mustRequeue() {
			p.Error("the message went back to the queue, want it written")
		}
		if b.sink.row.SentUntil = b.now(); !b.mustRequeue() {
			p.Error("the flight waits for the sink, want it to write without a slot")
		}
	})
}

func TestRoundsPutSuspectsApart(t *testing.T) {
	t.Parallel()
	var claims []*document
	for i, attempts := range []int64{0, 1, 2, 3, 5} {
		d := &document{held: []*heldEntry{{item: i}}}
		d.row.Attempts = attempts
		claims = append(claims, d)
	}
	var panicked flight.Remaining
	panicked.Put(1)
	got := rounds(claims, &flight.State{Panicked: panicked}, false, false)
	var items [][]int
	for _, group := range got {
		var of []int
		for _, d := range group {
			of = append(of, d.newest().item)
		}
		items = append(items, of)
	}
	if want := [][]int{{0}, {2}, {1}, {3}, {4}}; !slices.EqualFunc(items, want, slices.Equal) {
		t.Errorf("groups %v, want %v", items, want)
	}
}

func TestPrepareBuildsBodies(t *testing.T) {
	stage(t, nil, []string{put("a", 1)}, func(p *parts) {
		s := preparer{p.builder(), p.origins(nil), map[int]*decoded{}}
		ready, rest := s.prepare(p.Context(), p.read())
		p.count("ready", len(ready), 1)
		if p.count("left for later", len(rest), 0); string(ready[0].body) != `{"title":"v1"}` {
			p.Errorf("body %s", ready[0].body)
		}
	})
}

// unchangedContent sets the setting with which lull does not write unchanged documents.
func unchangedContent(c *config.Config) {
	s := c.Sinks["search"]
	s.Unchanged = sink.Keep
	c.Sinks["search"] = s
}

func TestKeepCommitsWhatTheSinkHas(t *testing.T) {
	for body, others := range map[string]int{`{"title":"v2"}`: 0, `{"title":"other"}`: 1} {
		t.Run(body, func(t *testing.T) {
			stage(t, unchangedContent, []string{put("a", 2)}, func(p *parts) {
				old := p.EventOf(put("a", 1)).Key
				p.Change(docA, func(r *shard.Row) {
					r.Committed, r.CommittedOp, r.Content = old, shard.Put, shard.ContentOf("g", old, []byte(body))
				})
				s := keeper{p.f, p.store, map[shard.Collection]string{"content": "g"}}
				docs := p.read()
				docs[0].body = []byte(`{"title":"v2"}`)
				p.count("others", len(s.keep(p.Context(), docs)), others)
				p.Noted(journal.Kept, 1-others)
			})
		})
	}
}

func TestEnrichableTakesOneServiceAtATime(t *testing.T) {
	two := func(c *config.Config) {
		e := &config.Enrich{Kind: config.EnrichHTTP, URL: "https://example.org/", Inputs: []string{""}}
		c.Collections = map[string]config.Collection{"content": {Enrich: e}, "news": {Enrich: e}, "plain": {}}
	}
	stage(t, two, nil, func(p *parts) {
		var docs []*document
		for _, id := range []shard.DocID{"plain#a", "news#a", "content#a"} {
			docs = append(docs, &document{id: id, held: []*heldEntry{{Entry: &flight.Entry{Op: shard.Put}}}})
		}
		s := &enrichers{p.f, nil, map[shard.Collection]*enricher{}}
		ready, later := enrichable(p.Context(), s, docs)
		if !slices.Equal(ready, docs[:2]) || !slices.Equal(later, docs[2:]) {
			p.Errorf("%d ready and %d later, want the first two ready", len(ready), len(later))
		}
	})
}

func TestClaimTakesTheLeaseOnce(t *testing.T) {
	stage(t, nil, []string{put("a", 1)}, func(p *parts) {
		p.claimed()
		if r := p.Row(docA); r.Owner != "token" || r.LeaseUntil != p.f.leaseEnd() {
			p.Errorf("row %+v, want the lease of this turn", r)
		}
		s := claimer{p.f, func() shard.Token { return "another" }}
		p.count("claimed twice", len(s.claim(p.Context(), p.f.docs)), 0)
	})
}

type loads func(ref string) ([]byte, error)

func (l loads) Load(_ context.Context, ref string) ([]byte, error) { return l(ref) }

func TestFetchLoadsOrReleases(t *testing.T) {
	for name, err := range map[string]error{"loaded": nil, "away": errors.New("away")} {
		t.Run(name, func(t *testing.T) {
			stage(t, nil, []string{put("a", 1)}, func(p *parts) {
				docs := p.claimed()
				ev := p.EventOf(put("a", 1))
				ev.DataRef = "s3://open/a"
				docs[0].reference = &ev
				from := loads(func(string) ([]byte, error) { return []byte(`{"title":"x"}`), err })
				l := loader{p.builder(), p.origins(from)}
				ready := fetch(p.Context(), &l, p.budget(), p.closer(), docs)
				if err == nil {
					p.count("ready", len(ready), 1)
					return
				}
				p.count("ready", len(ready), 0)
				p.Noted(journal.Released, 1)
			})
		})
	}
}

func TestUnchangedCommitsWithoutAWrite(t *testing.T) {
	stage(t, unchangedContent, []string{put("a", 2)}, func(p *parts) {
		d := p.claimed()[0]
		old := p.EventOf(put("a", 1)).Key
		d.body, d.generation, d.reference = []byte(`{"title":"x"}`), "g", &event.Event{}
		d.before.Committed, d.before.CommittedOp, d.before.Content = old, shard.Put, shard.ContentOf("g", old, d.body)
		p.count("others", len(unchanged(p.Context(), p.closer(), []*document{d})), 0)
		p.Noted(journal.Kept, 1)
		p.Noted(journal.Committed, 0)
	})
}

type asks func() ([]byte, error)

func (a asks) Call(context.Context, []byte) ([]byte, error) { return a() }

func TestEnrichReleasesWhatItCannotEnrich(t *testing.T) {
	services := func(c *config.Config) {
		c.Collections = map[string]config.Collection{"content": {Enrich: &config.Enrich{
			Kind: config.EnrichHTTP, URL: "https://example.org/", Inputs: []string{""},
		}}}
	}
	stage(t, services, []string{put("a", 1)}, func(p *parts) {
		docs := p.claimed()
		docs[0].body = []byte(`{"title":"v1"}`)
		fails := map[shard.Collection]enrich.Caller{"content": asks(func() ([]byte, error) { return nil, errors.New("away") })}
		s := enriching{&enrichers{p.f, fails, map[shard.Collection]*enricher{}}, p.closer()}
		p.count("ready", len(s.enrich(p.Context(), docs)), 0)
		p.Noted(journal.EnrichFailed, 1)
		p.Noted(journal.Released, 1)
	})
}
