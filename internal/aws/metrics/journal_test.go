package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var base = Base{Stack: "lull", Sink: "search", Function: "index"}

var now = time.UnixMilli(1_777_888_800_000).UTC()

// lines decodes what was written.
func lines(t *testing.T, out *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, m)
	}
	return all
}

// at walks into decoded JSON by names and numbers.
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
				t.Fatalf("%v: there are %d", path, len(list))
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
	j := New(&out, slog.LevelError+1, base)
	for range 3 {
		j.Note(journal.Note{Step: journal.Held, Lane: "live"})
	}
	j.Note(journal.Note{Step: journal.Received, Count: 1000, Lane: "live"})
	j.Note(journal.Note{Step: journal.LeaseLost, Sink: "other"})
	j.Count(RowReads, 7)
	j.Count(RowReads, 0)
	j.Count(Panics, 0)
	j.Flush(now, "request-1")
	got := lines(t, &out)
	if len(got) != 3 {
		t.Fatalf("got %d lines, want one each for other, search, search live: %s", len(got), out.String())
	}
	for i, want := range []map[string]any{
		{"Sink": "other", "LeaseLost": 1.0},
		{"Sink": "search", "RowReads": 7.0},
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
	j := New(&out, slog.LevelError+1, base)
	const n = 250
	for i := range n {
		j.Note(journal.Note{
			Step: journal.Committed, Lane: "live", Sent: now,
			At: now.Add(time.Duration(i) * time.Millisecond),
		})
	}
	j.Note(journal.Note{Step: journal.Committed, Lane: "bulk", Sent: now, At: now.Add(-time.Second)}) // clocks differ
	j.Flush(now, "")
	var live, bulk []float64
	committed := 0.0
	for _, line := range lines(t, &out) {
		values := at[[]any](t, line, "Freshness")
		if len(values) > 100 {
			t.Errorf("%d values in a line, 100 are allowed", len(values))
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
		t.Errorf("got %d live and bulk %v", len(live), bulk)
	}
	if committed != n+1 {
		t.Errorf("committed %v times, want %d: more lines must not count twice", committed, n+1)
	}
}

func TestALineHasAtMostAHundredMetricsInADirective(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := New(&out, slog.LevelError+1, base)
	for i := range 150 {
		j.Count(fmt.Sprintf("M%d", i), 1)
	}
	j.Flush(now, "")
	got := 0
	for _, d := range at[[]any](t, lines(t, &out)[0], "_aws", "CloudWatchMetrics") {
		n := len(at[[]any](t, d, "Metrics"))
		if n > 100 {
			t.Errorf("a directive with %d metrics", n)
		}
		got += n
	}
	if got != 150 {
		t.Errorf("got %d metrics, want 150", got)
	}
}

func TestWhatMustBeSeenIsALine(t *testing.T) {
	t.Parallel()
	v, err := shard.ParseVersion(shard.ClassInt, "42")
	if err != nil {
		t.Fatal(err)
	}
	k, err := shard.NewOrderKey(shard.Parts{Version: v})
	if err != nil {
		t.Fatal(err)
	}
	note := journal.Note{
		Step: journal.SinkNewer, At: now.Add(1500 * time.Millisecond), Doc: "content#a", Key: k, Op: shard.Put,
		Lane: "live", Flight: "f",
		Message: "m", Event: 2, Sent: now, Until: now.Add(time.Minute), Count: 3, Detail: "newer: 409",
	}
	var out bytes.Buffer
	j := New(&out, slog.LevelInfo, base)
	j.Note(note)
	quiet := note
	quiet.Step = journal.Held
	j.Note(quiet)
	got := lines(t, &out)
	if len(got) != 1 {
		t.Fatalf("got %d lines, want the error alone: %s", len(got), out.String())
	}
	if _, err := time.Parse(time.RFC3339Nano, at[string](t, got[0], "timestamp")); err != nil {
		t.Errorf("timestamp: %v", err)
	}
	delete(got[0], "timestamp")
	want := map[string]any{
		"level": "ERROR", "msg": "sink_newer", "stack": "lull", "function": "index", "sink": "search", "lane": "live",
		"flight": "f",
		"doc":    "content#a", "version": k.String(), "op": "put", "message": "m", "event": 2.0, "count": 3.0,
		"until": "2026-05-04T10:01:00Z", "age_ms": 1500.0, "detail": "newer: 409",
	}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("got  %v\nwant %v", got[0], want)
	}
}

func TestAnOutageDoesNotFloodTheLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := New(&out, slog.LevelInfo, base)
	for range 3 {
		out.Reset()
		for range 1000 {
			j.Note(journal.Note{Step: journal.Failed, Detail: "no"})
			j.Note(journal.Note{Step: journal.Held}) // below the level: not left out either
		}
		j.Note(journal.Note{Step: journal.Unreachable})
		j.Flush(now, "")
		byText := map[string]int{}
		for _, line := range lines(t, &out) {
			text, _ := line["msg"].(string)
			byText[text]++
			if text == "lines left out" && (line["step"] != "failed" || line["count"] != 980.0) {
				t.Errorf("got %v", line)
			}
			if line["Failed"] != nil && line["Failed"] != 1000.0 {
				t.Errorf("counted %v, want all of them", line["Failed"])
			}
		}
		if byText["failed"] != maxLines || byText["unreachable"] != 1 || byText["lines left out"] != 1 {
			t.Errorf("got %v", byText)
		}
	}
}

func TestWhatIsAuditedIsNeverLeftOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := New(&out, slog.LevelInfo, base)
	for step := range audited {
		for range 100 {
			j.Note(journal.Note{Step: step})
		}
	}
	if got := len(lines(t, &out)); got != 100*len(audited) {
		t.Errorf("got %d lines, want %d", got, 100*len(audited))
	}
}

func TestLevelsAreLambdas(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]slog.Level{
		"TRACE": slog.LevelDebug, "debug": slog.LevelDebug, "INFO": slog.LevelInfo, "": slog.LevelInfo,
		"?":    slog.LevelInfo,
		"WARN": slog.LevelWarn, "ERROR": slog.LevelError, "FATAL": slog.LevelError,
	} {
		if got := Level(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestNotesFromManyGoroutinesAreAllCounted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	j := New(&out, slog.LevelInfo, base)
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
	all := lines(t, &out)
	if got := all[len(all)-1]["Failed"]; got != 1000.0 {
		t.Errorf("got %v, want 1000", got)
	}
}

// A note that counted nothing would be an alarm that never rings.
func TestTheNamesThatAlarmsWatch(t *testing.T) {
	t.Parallel()
	for step, want := range map[journal.Step]string{
		journal.SinkNewer: "SinkNewer", journal.LeaseLost: "LeaseLost", journal.Stuck: "Stuck",
		journal.Blocked: "BlockedByUnknown",
		journal.Dropped: "Dropped", journal.Conflict: "VersionConflict", journal.Schema: "UnknownSchema",
		journal.OutageWrite: "OutageWrite",
		journal.Parked:      "Parked", journal.LaunchLost: "LaunchLost", journal.Unreachable: "Unreachable",
	} {
		if got := Name(step); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
