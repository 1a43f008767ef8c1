// SPDX-License-Identifier: Apache-2.0

package decisionlog

import (
	"bytes"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.UnixMilli(1_777_888_800_000).UTC()

func newLog() (*Log, *bytes.Buffer) {
	var out bytes.Buffer
	return New(&out, slog.LevelInfo, "search", "stack", "lull", "function", "index"), &out
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
	l, out := newLog()
	l.Note(note)
	quiet := note
	quiet.Step = journal.Held
	l.Note(quiet)
	got := awstest.Lines(t, out)
	if len(got) != 1 {
		t.Fatalf("got %d lines, want one line with the error: %s", len(got), out.String())
	}
	stamp, _ := got[0]["timestamp"].(string)
	if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil {
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
	l, out := newLog()
	for range 3 {
		out.Reset()
		for range 1000 {
			l.Note(journal.Note{Step: journal.Failed, Detail: "no"})
			l.Note(journal.Note{Step: journal.Held}) // below the level of the log: does not count as left out
		}
		l.Note(journal.Note{Step: journal.Unreachable})
		l.Flush()
		byText := map[string]int{}
		for _, line := range awstest.Lines(t, out) {
			text, _ := line["msg"].(string)
			byText[text]++
			if text == "lines left out" && (line["step"] != "failed" || line["count"] != 980.0) {
				t.Errorf("got %v", line)
			}
		}
		if byText["failed"] != maxLines || byText["unreachable"] != 1 || byText["lines left out"] != 1 {
			t.Errorf("got %v", byText)
		}
	}
}

func TestWhatIsAuditedIsNeverLeftOut(t *testing.T) {
	t.Parallel()
	l, out := newLog()
	for _, step := range audited {
		for range 100 {
			l.Note(journal.Note{Step: step})
		}
	}
	if got := len(awstest.Lines(t, out)); got != 100*len(audited) {
		t.Errorf("got %d lines, want %d", got, 100*len(audited))
	}
}

// At DEBUG, the log has every decision about every document. A flood of other notes stays limited.
func TestWhatIsAtDebugIsNeverLeftOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := New(&out, slog.LevelDebug, "search")
	for range 100 {
		l.Note(journal.Note{Step: journal.Held})
		l.Note(journal.Note{Step: journal.Failed})
	}
	if got := len(awstest.Lines(t, &out)); got != 100+maxLines {
		t.Errorf("got %d lines, want 100 decisions about documents and %d lines of the flood", got, maxLines)
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
