// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/queue"
	_ "github.com/lullhq/lull/source/builtin"
)

func TestATraceHasTheShapeThatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, s := range []Shape{
		{Rate: 50, Burst: 1, For: time.Minute, Seed: 1},
		{Rate: 500, Burst: 5, Spread: 2 * time.Second, For: time.Minute, Seed: 2},
		{Rate: 500, Burst: 100, Spread: 2 * time.Second, For: time.Minute, Seed: 3},
		{Rate: 500, Burst: 5, Spread: 2 * time.Second, For: time.Minute, Docs: 2000, Seed: 4},
		{Rate: 100, Hot: true, For: time.Minute, Seed: 5},
	} {
		tr := NewTrace(s)
		want := s.Rate * s.For.Seconds()
		if got := float64(len(tr.Events)); got < 0.7*want || got > 1.3*want {
			t.Errorf("%+v: %v events, want about %v", s, got, want)
		}
		if !slices.IsSortedFunc(tr.Events, func(a, b Event) int { return int(a.At - b.At) }) {
			t.Errorf("%+v: events are not in order", s)
		}
		if s.Docs == 0 && tr.Debounced(5*time.Second, time.Hour) != tr.Bursts {
			t.Errorf("%+v: a debouncer sees %d bursts, %d were made", s, tr.Debounced(5*time.Second, time.Hour),
				tr.Bursts)
		}
		last := map[int]int{}
		for _, e := range tr.Events {
			if e.Version <= last[e.Doc] {
				t.Fatalf("%+v: version %d of document %d after %d", s, e.Version, e.Doc, last[e.Doc])
			}
			last[e.Doc] = e.Version
		}
		if again := NewTrace(s); !slices.Equal(again.Events, tr.Events) {
			t.Errorf("%+v: drawn again it differs", s)
		}
	}
}

func TestDisorderSendsTwiceAndLate(t *testing.T) {
	t.Parallel()
	s := Shape{Rate: 500, Burst: 5, Spread: 2 * time.Second, For: time.Minute, Seed: 1}
	plain := len(NewTrace(s).Events)
	s.Disorder = true
	tr := NewTrace(s)
	twice, old := len(tr.Events)-plain, 0
	last := map[int]int{}
	for _, e := range tr.Events {
		if e.Version < last[e.Doc] {
			old++
		}
		last[e.Doc] = max(last[e.Doc], e.Version)
	}
	if share := float64(twice) / float64(plain); share < 0.015 || share > 0.025 {
		t.Errorf("%.3f of the events are sent twice, want 0.02", share)
	}
	if old == 0 {
		t.Error("no event comes after a newer one")
	}
}

// TestBodiesAreWhatLullDecodes: peers read a body by position, and lull decodes it. Peers and lull
// must get the same event.
func TestBodiesAreWhatLullDecodes(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	set := newSources(t, &cfg)
	for _, e := range []Event{
		{Doc: 0, Version: 1, Rank: 3},
		{Doc: 1234567, Version: 987654},
		{Doc: 5, Version: 2, Delete: true, Rank: 2},
	} {
		if got := parse(e.body()); got != e {
			t.Errorf("parse: %+v, want %+v", got, e)
		}
		r := set.Decode(queue.Message{Body: e.body()})[0]
		if n, err := strconv.Atoi(r.Event.Version); r.Invalid != nil || docOf(r.Event.Doc.ID()) != e.Doc ||
			err != nil || n != e.Version || r.Event.Op == event.Delete != e.Delete {
			t.Errorf("decode: document %s version %q, fault %v", r.Event.Doc, r.Event.Version, r.Invalid)
		}
	}
}
