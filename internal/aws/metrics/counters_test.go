// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"reflect"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/seam/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var base = Base{Stack: "lull", Sink: "search", Function: "index"}

var now = time.UnixMilli(1_777_888_800_000).UTC()

// at returns the value at a path of field names and list indexes in decoded JSON.
func at[T any](t *testing.T, v any, path ...any) T {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				t.Fatalf("path %v: the list has only %d elements", path, len(list))
			}
			v = list[step]
		}
	}
	out, ok := v.(T)
	if !ok {
		t.Fatalf("%v: got %T", path, v)
	}
	return out
}

func TestNotesAreCountedUnderTheirNames(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := New(&out, base)
	for range 3 {
		j.Note(journal.Note{Step: journal.Held, Lane: "live"})
	}
	j.Note(journal.Note{Step: journal.Received, Count: 1000, Lane: "live"})
	j.Note(journal.Note{Step: journal.LeaseLost, Sink: "other"})
	j.Count(RowReads, 7)
	j.Count(InvalidEvents, 2)
	j.Count(RowReads, 0)
	j.Count(Panics, 0)
	j.Flush(now, "request-1")
	got := awstest.Lines(t, &out)
	if len(got) != 3 {
		t.Fatalf("got %d lines, want one each for the sink other, the sink search, and its lane live: %s", len(got), out.String())
	}
	for i, want := range []map[string]any{
		{"Sink": "other", "LeaseLost": 1.0},
		{"Sink": "search", "RowReads": 7.0, "InvalidEvents": 2.0},
		{"Sink": "search", "Lane": "live", "Held": 3.0, "Received": 1000.0},
	} {
		if stamp := at[float64](t, got[i], "_aws", "Timestamp"); stamp != float64(now.UnixMilli()) {
			t.Errorf("timestamp %v", stamp)
		}
		directive := at[map[string]any](t, got[i], "_aws", "CloudWatchMetrics", 0)
		delete(got[i], "_aws")
		if directive["Namespace"] != "lull" || !reflect.DeepEqual(directive["Dimensions"],
			[]any{[]any{"Stack", "Sink"}}) {
			t.Errorf("got %v", directive)
		}
		for _, m := range at[[]any](t, directive, "Metrics") {
			if name := at[string](t, m, "Name"); want[name] == nil {
				t.Errorf("line %d: metric %s has no value", i, name)
			} else if name == RowReads || name == "Held" {
				t.Errorf("line %d: %s is a metric; want none, because a metric costs money and no alarm uses this one", i, name)
			}
		}
		want["Stack"], want["Function"], want["RequestId"] = "lull", "index", "request-1"
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("line %d: got %v, want %v", i, got[i], want)
		}
	}
	out.Reset()
	if j.Flush(now, "request-2"); out.Len() != 0 {
		t.Errorf("flushed twice: %s", out.String())
	}
}

func TestFreshnessIsMeasuredPerLane(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := New(&out, base)
	const n = 250
	for i := range n {
		j.Note(journal.Note{
			Step: journal.Committed, Lane: "live", Sent: now,
			At: now.Add(time.Duration(i) * time.Millisecond),
		})
	}
	// the clock of the sender is ahead
	j.Note(journal.Note{Step: journal.Committed, Lane: "bulk", Sent: now, At: now.Add(-time.Second)})
	j.Flush(now, "")
	var live, bulk []float64
	committed := 0.0
	for _, line := range awstest.Lines(t, &out) {
		values := at[[]any](t, line, "Freshness")
		if len(values) > 100 {
			t.Errorf("a line has %d values of a metric, CloudWatch allows 100", len(values))
		}
		directives := at[[]any](t, line, "_aws", "CloudWatchMetrics")
		last := at[map[string]any](t, directives, len(directives)-1)
		if !reflect.DeepEqual(last["Dimensions"], []any{[]any{"Stack", "Sink", "Lane"}}) {
			t.Errorf("got %v", last)
		}
		for _, v := range values {
			if line["Lane"] == "live" {
				live = append(live, at[float64](t, v))
			} else {
				bulk = append(bulk, at[float64](t, v))
			}
		}
		if line["Committed"] != nil {
			committed += at[float64](t, line, "Committed")
		}
	}
	if len(live) != n || live[n-1] != n-1 || len(bulk) != 1 || bulk[0] != 0 {
		t.Errorf("got %d values of the lane live and the values %v of the lane bulk", len(live), bulk)
	}
	if committed != n+1 {
		t.Errorf("all lines together count %v commits, want %d", committed, n+1)
	}
}

// OldestMessage counts every message. The metric ApproximateAgeOfOldestMessage of SQS leaves out
// messages that were received three times or more.
func TestTheOldestMessageIsMeasuredPerLane(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := New(&out, base)
	for _, n := range []journal.Note{
		{Step: journal.Received, Lane: "live", Count: 2, Sent: now.Add(-time.Minute)},
		{Step: journal.Received, Lane: "live", Count: 1, Sent: now.Add(-90 * time.Minute)},
		{Step: journal.Received, Lane: "live", Count: 1, Sent: now.Add(time.Second)}, // the clock of the sender is ahead
		{Step: journal.Received, Lane: "bulk", Count: 1, Sent: now.Add(time.Second)},
	} {
		n.At = now
		j.Note(n)
	}
	j.Flush(now, "")
	got := map[any]any{}
	for _, line := range awstest.Lines(t, &out) {
		got[line["Lane"]] = line[OldestAge]
		directives := at[[]any](t, line, "_aws", "CloudWatchMetrics")
		if last := at[map[string]any](t, directives, len(directives)-1); !reflect.DeepEqual(last["Dimensions"],
			[]any{[]any{"Stack", "Sink", "Lane"}}) {
			t.Errorf("got %v", last)
		}
	}
	if want := (map[any]any{"live": 5400.0, "bulk": 0.0}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNotesFromManyGoroutinesAreAllCounted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := New(&out, base)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 50 {
				j.Note(journal.Note{Step: journal.Failed, Detail: "x"})
			}
		})
	}
	wg.Wait()
	out.Reset()
	j.Flush(now, "")
	all := awstest.Lines(t, &out)
	if got := all[len(all)-1]["Failed"]; got != 1000.0 {
		t.Errorf("got %v, want 1000", got)
	}
}

// Alarms watch these metric names. If a step has another name, its alarm never fires.
func TestTheNamesThatAlarmsWatch(t *testing.T) {
	t.Parallel()
	for step, want := range map[journal.Step]string{
		journal.SinkNewer: "SinkNewer", journal.LeaseLost: "LeaseLost", journal.Stuck: "Stuck",
		journal.Blocked: "BlockedByUnknown", journal.ClockOff: "ClockOff",
		journal.Dropped: "Dropped", journal.Conflict: "VersionConflict", journal.Schema: "UnknownSchema",
		journal.OutageWrite: "OutageWrite",
		journal.Parked:      "Parked", journal.LaunchLost: "LaunchLost", journal.Failed: "Failed",
		journal.DeadKept: "DeadKept", journal.Returned: "Returned", journal.Unreachable: "Unreachable",
	} {
		if got := Name(step); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
