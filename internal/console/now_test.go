package console

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// meter answers as it is told.
type meter struct {
	m   Measured
	err error
}

func (m meter) Measure(context.Context) (Measured, error) { return m.m, m.err }

func TestNowTellsWhatBecameOfEventsAndWhatIsPromised(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.options.Config = s.Config
	want := s.Config.Debounce.Quiet + s.Config.Queues.Live.Window + time.Second
	var got struct {
		Promise time.Duration `json:"promise_ns"`
		Total   *Counts
		Points  []Point
	}
	if s.into(&got, "/console/now", ""); got.Promise != want || got.Total != nil {
		t.Errorf("nobody counts: %+v, want a promise of %s", got, want)
	}
	told := Measured{Total: Counts{Events: 3, Written: 2}, Points: []Point{{Counts: Counts{Dead: 1}}}}
	s.options.Meter = meter{m: told}
	if s.into(&got, "/console/now", ""); got.Total.Written != 2 || len(got.Points) != 1 || got.Points[0].Dead != 1 {
		t.Errorf("got %+v", got)
	}
	s.options.Meter = meter{err: deniedError{}}
	s.refused(http.StatusForbidden, "dynamodb:Query", "/console/now", "")
}
