// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
)

// measuredOutages is a meter that knows only outages.
type measuredOutages []Outage

func (m measuredOutages) Measure(context.Context) (Measured, error) { return Measured{Outages: m}, nil }

// still is a clock that stands still.
type still struct {
	clock.System
	at time.Time
}

func (s still) Now() time.Time { return s.at }

// The time at which an outage began does not move with the probes, nor after a pause.
func TestTheBeginningOfAnOutageStays(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(1_000_000, 0).UTC().Add(time.Duration(s) * time.Second) }
	status := operate.Status{}
	c := &console{Options: Options{Clock: still{}, API: operate.API{
		Status: func(context.Context) (operate.Status, error) {
			s := status
			s.Sinks = append([]operate.SinkStatus{}, status.Sinks...)
			return s, nil
		},
	}}}
	since := func(now int, open bool, estimate int) time.Time {
		t.Helper()
		c.Clock = still{at: at(now)}
		status.Sinks = []operate.SinkStatus{{Sink: "other"}, {Sink: "search", Open: open}}
		if open {
			status.Sinks[1].Since = at(estimate)
		}
		got := c.tick(t.Context()).Status.Sinks
		if !got[0].Since.IsZero() {
			t.Errorf("the healthy sink is unhealthy since %s", got[0].Since)
		}
		return got[1].Since
	}
	for _, tt := range []struct {
		why                 string
		now, estimate, want int
		healthy             bool
	}{
		{"the first estimate", 10, 3, 3, false},
		{"a probe later", 12, 5, 3, false},
		{"after a pause", 40, 39, 3, false},
		{"healthy", 41, 0, 0, true},
		{"the next outage", 60, 50, 50, false},
		{"an outage after a time without a page", 1000, 900, 900, false},
	} {
		want := at(tt.want)
		if tt.healthy {
			want = time.Time{}
		}
		if got := since(tt.now, !tt.healthy, tt.estimate); !got.Equal(want) {
			t.Errorf("%s: since %s, want %s", tt.why, got, want)
		}
	}
	c.Meter = measuredOutages{
		{Sink: "search", From: at(1), To: at(2)},
		{Sink: "search", From: at(880)},
		{Sink: "search", Paused: true, From: at(890)},
		{Sink: "other", From: at(5)},
	}
	if got := since(1010, true, 905); !got.Equal(at(880)) {
		t.Errorf("since %s, want what the chart shows, %s", got, at(880))
	}
}
