// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	_ "github.com/lullhq/lull/sink/builtin"
)

// A long debounce window alone fires no alarm: the thresholds grow with the window.
func TestTimesOfAlarmsFollowTheWindows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change          func(*config.Config)
		freshness, aged time.Duration
	}{
		"the defaults":                     {func(*config.Config) {}, time.Minute, 5 * time.Minute},
		"a window of ten seconds":          {func(c *config.Config) { c.SetQuiet(10 * time.Second) }, time.Minute, 5 * time.Minute},
		"a window of a minute":             {func(c *config.Config) { c.SetQuiet(time.Minute) }, 2*time.Minute + 4*time.Second, 8*time.Minute + 10*time.Second},
		"a window of a quarter of an hour": {func(c *config.Config) { c.SetQuiet(15 * time.Minute) }, 16*time.Minute + 4*time.Second, 64*time.Minute + 10*time.Second},
		"a minimum interval of an hour":    {func(c *config.Config) { c.Debounce.MinInterval = time.Hour }, 61*time.Minute + 4*time.Second, 64*time.Minute + 10*time.Second},
		"a longer recovery":                {func(c *config.Config) { c.Recovery = 3 * time.Minute }, 3 * time.Minute, 5 * time.Minute},
		"a collection of another sink": {func(c *config.Config) {
			quiet := 5 * time.Minute
			c.Sinks["other"] = c.Sinks["search"]
			c.DefaultSink = "search"
			c.Collections["slow"], c.Collections["news"] = config.Collection{Quiet: &quiet, Sink: "other"}, config.Collection{}
		}, time.Minute, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config.Default()
			c.change(&cfg)
			s := Sink{Config: &cfg, Name: "search"}
			if got := s.Promise(); got != c.freshness {
				t.Errorf("Promise returned %s, want %s", got, c.freshness)
			}
			for _, a := range s.Alarms() {
				if a.Kind == "live-age" && a.Threshold != c.aged.Seconds() {
					t.Errorf("the alarm live-age has the threshold %v s, want %v s", a.Threshold, c.aged.Seconds())
				}
			}
		})
	}
}

// The URL's alarms exist only with the URL. An answer 503 is not an error of the function, so the
// alarm watches the answers.
func TestTheURLHasAlarms(t *testing.T) {
	t.Parallel()
	c := config.Default()
	if all := OfSearchable(&c); len(all) > 0 {
		t.Errorf("without the URL: got %+v", all)
	}
	calls := 20
	c.SearchableCalls = &calls
	watched := map[string]string{}
	for _, a := range OfSearchable(&c) {
		for _, m := range a.Metrics() {
			watched[a.Kind] += m.Namespace + " " + m.Name + " " + m.Dimensions["FunctionName"]
		}
	}
	if len(watched) != 2 || watched["function-errors"] != "AWS/Lambda Url5xxCount lull-searchable" ||
		watched["throttles"] != "AWS/Lambda Throttles lull-searchable" {
		t.Errorf("got %v", watched)
	}
}
