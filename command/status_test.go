// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
)

func TestStatusSaysWhyASinkIsUnhealthyAndWhatWaits(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const cause = "configuration: undefined_column: column fence: table k-content"
	for name, c := range map[string]struct {
		k     operate.SinkStatus
		wants []string
		not   string
	}{
		"away": {
			operate.SinkStatus{Open: true, OpenUntil: until, Level: 3, Cause: cause, PutOff: 7},
			[]string{"unhealthy", "(opened 3 times in a row); last reason: " + cause + "; at most 7 messages are put off"},
			"again",
		},
		"back, with messages to come": {
			operate.SinkStatus{Growing: true, Rate: 8, Cause: cause, PutOff: 6582, PutOffUntil: until},
			[]string{"takes documents again: 8.0 documents/s", cause, "at most 6582 messages are put off, and come back by 2026-11-23T12:00:00Z"},
			"healthy",
		},
		"back":      {operate.SinkStatus{Growing: true, Rate: 8}, []string{"healthy again: 8.0 documents/s"}, "put off"},
		"throttles": {operate.SinkStatus{Rate: 8, Cause: cause}, []string{"throttles: 8.0 documents/s; last reason: " + cause}, "put off"},
		"hostile":   {operate.SinkStatus{Open: true, Cause: "a\x1b[31m\nb"}, []string{"last reason: a"}, "\x1b[31m\n"},
	} {
		var out strings.Builder
		showStatus(&out, operate.Status{Sinks: []operate.SinkStatus{c.k}})
		for _, want := range c.wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in %s", name, want, out.String())
			}
		}
		if strings.Contains(out.String(), c.not) {
			t.Errorf("%s: %q in %s", name, c.not, out.String())
		}
	}
}

func TestStatusSaysWhatWaitsLongestAndHowFreshDocumentsAre(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	flow := operate.Flow{
		Span: time.Minute, In: 12.34, Written: 3, P50: 5800 * time.Millisecond, P99: 8 * time.Second,
		Oldest: now.Add(-23 * time.Second), Promise: 9 * time.Second, Late: 34 * time.Second,
	}
	for name, c := range map[string]struct {
		change func(*operate.Flow)
		want   string
	}{
		"waits": {func(*operate.Flow) {}, "oldest waiting: 23s; the promise is 9s after the last change\n" +
			"freshness: median 5.8s, p99 8s, 12.3 events/s in, 3.0 documents/s written (last 1m0s)\n"},
		"idle": {func(f *operate.Flow) { f.Oldest, f.P50 = time.Time{}, 0 }, "nothing waits; the promise is 9s after the " +
			"last change\nnothing was written, "},
		"unknown": {func(f *operate.Flow) { f.Unknown = "denied" }, "unknown: denied; the promise is 9s"},
	} {
		f := flow
		c.change(&f)
		var out strings.Builder
		showFlow(&out, &f, now)
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: no %q in %q", name, c.want, out.String())
		}
	}
	var out strings.Builder
	showStatus(&out, operate.Status{Sinks: []operate.SinkStatus{{Open: true, Since: now}}, Flow: &flow})
	for _, want := range []string{"oldest waiting", "unhealthy since about 2026-11-23T12:00:00Z"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}
