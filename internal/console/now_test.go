// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
)

// meter answers with fixed values.
type meter struct {
	m   Measured
	err error
}

func (m meter) Measure(context.Context) (Measured, error) { return m.m, m.err }

func TestNowTellsWhatBecameOfEventsAndWhatIsPromised(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	want := s.Config.Debounce.Quiet + s.Config.Queues.Live.Window + time.Second
	var got struct {
		Promise time.Duration `json:"promise_ns"`
		Total   *Counts
		Points  []Point
	}
	told := Measured{Total: Counts{Events: 3, Written: 2}, Points: []Point{{Counts: Counts{Dead: 1}}}}
	s.options.Meter = meter{m: told}
	if s.into(&got, "/console/now", ""); got.Total.Written != 2 || len(got.Points) != 1 || got.Points[0].Dead != 1 ||
		got.Promise != want {
		t.Errorf("got %+v, want a promise of %s", got, want)
	}
	s.options.Meter = meter{err: deniedError{}}
	s.refused(http.StatusForbidden, "dynamodb:Query", "/console/now", "")
}

// A range selects the points of its time, in long steps if the range is long. Other ranges are
// refused.
func TestARangeSelectsThePointsOfItsTime(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	now := time.Now()
	at := func(ago time.Duration) Point { return Point{At: now.Add(-ago), Counts: Counts{Events: 1}} }
	told := Measured{
		Step: time.Second, Ranges: []time.Duration{10 * time.Minute, time.Hour, 24 * time.Hour},
		Points: []Point{at(9 * time.Minute), at(time.Second)},
		Long: func() History {
			return History{time.Minute, []Point{at(5 * time.Hour), at(50 * time.Minute), at(time.Minute)}}
		},
	}
	s.options.Meter = meter{m: told}
	for query, want := range map[string]struct {
		points int
		step   time.Duration
	}{
		"": {2, time.Second}, "?range=10m": {2, time.Second}, "?range=1h": {2, time.Minute},
		"?range=60m": {2, time.Minute}, "?range=24h": {3, time.Minute},
	} {
		var got Measured
		if s.into(&got, "/console/now"+query, ""); len(got.Points) != want.points || got.Step != want.step ||
			len(got.Ranges) != 3 {
			t.Errorf("%q: got %+v, want %+v", query, got, want)
		}
	}
	for _, hostile := range []string{"1m", "-1h", "999999999h", "%3Cscript%3E", "1h%00", "0", "NaN"} {
		s.refused(http.StatusBadRequest, "range: use one of 10m0s 1h0m0s 24h0m0s", "/console/now?range="+hostile, "")
	}
}

// If collections have different windows, each promise names its collections.
func TestPromisesNameTheirCollections(t *testing.T) {
	t.Parallel()
	quiet := func(d time.Duration) config.Collection { return config.Collection{Quiet: &d} }
	c := config.Default()
	c.Sinks = map[string]config.Sink{"search": {Kind: "memory"}}
	c.Collections = map[string]config.Collection{"a": {}, "b": {}}
	c.DefaultCollection = "a"
	c.Complete()
	if got := promises(&c); len(got) != 1 || len(got[0].Collections) != 0 || got[0].Fresh != c.LongestFresh() {
		t.Errorf("got %+v, want one promise for all", got)
	}
	for i := range 6 {
		c.Collections[fmt.Sprint("c", i)] = quiet(time.Second)
		c.Collections[fmt.Sprint("d", i)] = quiet(time.Duration(i+10) * time.Minute)
	}
	got := promises(&c)
	if len(got) != maxNamed || len(got[0].Collections) != maxNamed || got[0].More != 2 ||
		got[0].Fresh >= got[1].Fresh ||
		!slices.Equal(got[1].Collections, []string{"a", "b"}) ||
		got[3].Fresh != c.LongestFresh() ||
		!slices.Equal(got[3].Collections, []string{"d5"}) {
		t.Errorf("got %+v", got)
	}
}

// Only the steps within the span count. The median of a busy step has more weight than the median
// of an idle step.
func TestFlowSumsUpTheLatestSteps(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	at := func(ago int, c Counts) Point { return Point{now.Add(-time.Duration(ago) * time.Second), c} }
	m := Measured{Oldest: now.Add(-time.Hour), Points: []Point{
		at(60, Counts{Events: 1000, Written: 1000, P50: time.Hour, P99: time.Hour}),
		at(30, Counts{Events: 100, Written: 2, P50: 9 * time.Second, P99: 10 * time.Second}),
		at(20, Counts{Events: 20, Written: 50, Deleted: 8, P50: 5 * time.Second, P99: 6 * time.Second}),
		at(10, Counts{}),
	}}
	got := m.Flow(now, time.Minute)
	want := operate.Flow{
		Span: time.Minute, In: 2, Written: 1, P50: 5 * time.Second, P99: 10 * time.Second, Oldest: m.Oldest,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := m.Flow(now.Add(time.Hour), time.Minute); got.P50 != 0 || got.In != 0 {
		t.Errorf("an idle minute: %+v", got)
	}
}
