// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	docevent "github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/source"
)

// origin is the source from which documents are fetched. An origin has faults until the injected
// failures end.
type origin struct {
	lag      time.Duration // the largest lag of a replica
	lags     float64       // for each load: the probability that a lagging replica answers
	slow     float64       // for each load: the probability that the load takes up to twice the time-out
	from, to time.Duration // the source is down in this period
	ask      time.Duration // how long the source asks callers to wait while it is down; 0 for no such answer
	states   map[string][]Object
}

type originClient struct {
	objectClient
	o *origin
}

// Fetch returns the source's current state of a document. If a replica answers, the state may be
// older.
func (c originClient) Fetch(ctx context.Context, from, ref string) (body []byte, err error) {
	w, o := c.v.w, c.o
	if w.calm {
		return c.objectClient.Fetch(ctx, from, ref)
	}
	var behind, wait time.Duration
	if w.dice.chance(o.lags) {
		behind = w.dice.upTo(o.lag)
	}
	if limit := w.cfg.Sources[from].Fetch.Timeout; w.dice.chance(o.slow) {
		if wait = w.dice.upTo(2 * limit); wait > limit {
			w.coverage[point{aLoad, "slow", ""}]++
			if failed := c.v.request(ctx, fault.Bucket, limit, func() {}); failed != nil {
				return nil, failed
			}
			return nil, &source.Unavailable{Problem: "the source did not answer in time"}
		}
	}
	failed := c.v.request(ctx, fault.Bucket, wait, func() {
		if w.now >= o.from && w.now < o.to {
			w.coverage[point{aLoad, "down", ""}]++
			err = &source.Unavailable{Problem: "the source answered 503", RetryAfter: o.ask}
			return
		}
		shown := Object{Removed: true}
		for _, s := range o.states[ref] {
			if s.At+behind <= w.now {
				shown = s
			}
		}
		if shown.Version < w.objects[ref].Version {
			w.coverage[point{aLoad, "behind", ""}]++
		}
		if shown.Removed {
			err = w.notThere("fetch", "the source answered 404")
			return
		}
		body = w.answer(from, shown.Version)
	})
	if failed != nil {
		return nil, failed
	}
	return body, err
}

// fetching returns a simulated run whose documents are fetched. The source has lagging replicas, is
// slow, and is down for a while. Some deletes are sent as changes of documents that no longer
// exist.
func fetching(t testing.TB, seed uint64, change func(*index.Handler)) *World {
	t.Helper()
	w, _ := fetchingFrom(t, seed, change)
	return w
}

// fetchingFrom is fetching. It also returns the source, and changes the options.
func fetchingFrom(t testing.TB, seed uint64, change func(*index.Handler), options ...func(*Options)) (*World, *origin) {
	t.Helper()
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) {
		vary(seed, cfg)
		s := cfg.Sources["native"]
		s.Fetch = &source.Fetch{URL: "https://cms.example.org/{id}", Version: state, Missing: source.MissingDelete}
		if seed%3 == 0 {
			s.Fetch.Missing = source.MissingDeadLetter
		}
		cfg.Sources["native"] = s
		cfg.Payload.MissingWait = 90 * time.Second
	})
	d := newDice(seed, 0x6f726967)
	up := write(seed, sourcesOf(t, cfg), shape{quiet: cfg.Sources["native"].Fetch.Missing == source.MissingDelete})
	o := origin{lag: d.upTo(80 * time.Second), lags: 0.3 * d.Float64(), slow: 0.2 * d.Float64()}
	if d.chance(0.4) {
		o.from = d.upTo(up.Calm)
		o.to = o.from + d.upTo(time.Minute)
		o.ask = d.upTo(20 * time.Second)
	}
	w := begin(t, Options{Config: cfg, Seed: seed, Faults: Swarm, Upstream: up, Hooks: Hooks{
		Index: func(h *index.Handler) {
			if v, ok := h.Journal.(*invocation); ok {
				h.Fetcher = originClient{objectClient{v}, &o}
			}
			hooked(change, h)
		},
	}}, options...)
	w.lags, o.states = true, map[string][]Object{}
	for _, s := range up.Objects {
		w.after(s.At, func() {
			if ref := s.ref(); w.objects[ref] == s { // the source had no newer state before
				o.states[ref] = append(o.states[ref], s)
			}
		})
	}
	return w, &o
}

// believing makes index accept every fetched document that exists.
type believing struct{ index.Source }

func (b believing) Document(m docevent.Message, e docevent.Event) ([]byte, error) {
	doc, err := b.Source.Document(m, e)
	var stale *docevent.Invalid
	if errors.As(err, &stale) && stale.Stale {
		return []byte(e.Data), nil
	}
	return doc, err
}

// TestBrokenWaysToFetchAreFound removes one rule after the other. Each missing rule must break its
// own promise.
func TestBrokenWaysToFetchAreFound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(h *index.Handler)
		rule   string
	}{
		"an answer that is older than its event is written": {
			func(h *index.Handler) { h.Sources = believing{h.Sources} }, "no content is older than its version",
		},
		"what is not there is deleted at once": {
			func(h *index.Handler) {
				cfg := *h.Config
				cfg.Payload.MissingWait = -time.Hour
				h.Config = &cfg
			}, "the sink holds what its source shows",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 200; seed++ {
				for _, v := range fetching(t, seed, tt.change).Run().Violations {
					if strings.Contains(v.Rule, tt.rule) {
						t.Logf("seed %d: %s", seed, v)
						return
					}
				}
			}
			t.Errorf("no seed finds it: want %q", tt.rule)
		})
	}
}
