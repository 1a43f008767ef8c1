// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/aws/decisionlog"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// search is the part of a request that the tests check.
type search struct {
	LogGroupName, FilterPattern, NextToken string
	StartTime                              int64
}

// logged returns the log line that a function writes for a note.
func logged(t *testing.T, n journal.Note) string {
	t.Helper()
	var out bytes.Buffer
	decisionlog.New(&out, slog.LevelDebug, "search", "stack", "lull", "function", "index").Note(n)
	return out.String()
}

// page returns an answer with those log lines, whose times are a second apart.
func page(next string, lines ...string) awstest.Reply {
	events := make([]map[string]any, len(lines))
	for i, l := range lines {
		events[i] = map[string]any{"message": l, "timestamp": began.Add(time.Duration(i) * time.Second).UnixMilli()}
	}
	body := map[string]any{"events": events}
	if next != "" {
		body["nextToken"] = next
	}
	return awstest.Reply{Body: body}
}

// at returns a log line about a document, written that many seconds after began.
func at(seconds int, doc, step string) string {
	return fmt.Sprintf(`{"timestamp":%q,"level":"INFO","msg":%q,"stack":"lull","function":"index","doc":%q}`,
		began.Add(time.Duration(seconds)*time.Second).Format(time.RFC3339Nano), step, doc)
}

func TestWhatFunctionsLogIsRead(t *testing.T) {
	t.Parallel()
	v, err := shard.ParseVersion(shard.ClassInt, "7")
	if err != nil {
		t.Fatal(err)
	}
	key, err := shard.NewOrderKey(shard.Parts{Version: v})
	if err != nil {
		t.Fatal(err)
	}
	line := logged(t, journal.Note{
		Step: journal.Released, Doc: "content#a", Key: key, Op: shard.Put, Lane: "live", Flight: "f1", Message: "m1",
		Letter: "l1", Until: began, Detail: "throttled: http 429",
	})
	logs := New(awstest.JSON(t, func(awstest.Call) awstest.Reply { return page("", line) }))
	got, err := logs.History(awstest.Context(t), []string{"/aws/lambda/lull-search-index"}, "content#a", began)
	if err != nil || len(got) != 1 || got[0].Step != "released" || time.Since(got[0].At) > time.Minute {
		t.Fatalf("got %v, %v", got, err)
	}
	if want := "index, live, put, version 7, flight f1, message m1, dead letter l1, throttled: http 429, until 2026-11-20T12:00:00Z"; got[0].Text != want {
		t.Errorf("got %q, want %q", got[0].Text, want)
	}
}

func TestHistoryIsOneDocumentsInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	var asked []search
	logs := New(awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		var s search
		c.Into(t, &s)
		asked = append(asked, s)
		switch {
		case c.Operation != "FilterLogEvents":
			t.Errorf("asked %s", c.Operation)
		case s.LogGroupName == "receive":
			return page("", at(1, "content#a", "held"), at(9, "content#ab", "held"),
				at(5, "content#a", "dead_lettered"))
		case s.NextToken == "":
			return page("2") // the first page has no lines
		}
		return page("", `START RequestId: content#a`, at(3, "content#a", "released"), `{"doc":"content#a"}`,
			`{"_aws":{},"Committed":1}`)
	}))
	got, err := logs.History(awstest.Context(t), []string{"receive", "index"}, "content#a", began)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, d := range got {
		steps = append(steps, d.Step)
	}
	if want := "held released dead_lettered"; strings.Join(steps, " ") != want {
		t.Errorf("got %v, want %s", steps, want)
	}
	want := []search{
		{"receive", `{ $.doc = "content#a" }`, "", began.UnixMilli()},
		{"index", `{ $.doc = "content#a" }`, "", began.UnixMilli()},
		{"index", `{ $.doc = "content#a" }`, "2", began.UnixMilli()},
	}
	if fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("the requests were %v, want %v", asked, want)
	}
}

// An id may contain characters that have a meaning in a filter pattern. Such a character becomes a
// wildcard. History leaves out lines of other documents that match the wildcard.
func TestNoIDEndsThePattern(t *testing.T) {
	t.Parallel()
	for doc, want := range map[shard.DocID]string{
		`content#a"b`:             `{ $.doc = "content#a*b" }`,
		`content#a\" || $.x = "*`: `{ $.doc = "content#a*.x*" }`,
		"content#größer":          `{ $.doc = "content#gr*er" }`,
		"content#/en/a_b-c.html":  `{ $.doc = "content#/en/a_b-c.html" }`,
	} {
		if got := pattern(doc); got != want {
			t.Errorf("%s: got %s, want %s", doc, got, want)
		}
	}
	mine, other := at(1, "content#größer", "held"), at(2, "content#grober", "held")
	logs := New(awstest.JSON(t, func(awstest.Call) awstest.Reply { return page("", mine, other) }))
	got, err := logs.History(awstest.Context(t), []string{"index"}, "content#größer", began)
	if err != nil || len(got) != 1 {
		t.Errorf("got %v, %v, want one line", got, err)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	var pages atomic.Int64
	logs := New(awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		var asked struct{ NextToken string }
		c.Into(t, &asked)
		n, _ := strconv.Atoi(asked.NextToken) // the first request has no token; a repeated request gets the same page
		lines := make([]string, 30)
		for i := range lines {
			lines[i] = at(30*n+i, "content#a", "waiting")
		}
		pages.Store(int64(n) + 1)
		return page(strconv.Itoa(n+1), lines...)
	}))
	got, err := logs.History(awstest.Context(t), []string{"index"}, "content#a", began)
	if err != nil || pages.Load() != maxPages || len(got) != maxDecisions+1 {
		t.Fatalf("got %d lines of %d pages, %v", len(got), pages.Load(), err)
	}
	if last := got[len(got)-1]; last.Step != "logs" || !strings.Contains(last.Text, "shorter") {
		t.Errorf("got the last line %v, want a line that says that not all lines were searched", last)
	}
	if want := began.Add((30*maxPages - 1) * time.Second); !got[len(got)-2].At.Equal(want) {
		t.Errorf("the last decision is of %s, want the newest one, of %s", got[len(got)-2].At, want)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for code, tt := range map[string]struct {
		says  string
		calls int
	}{
		"ResourceNotFoundException": {"log group /aws/lambda/x does not exist", 1},
		"AccessDeniedException":     {"grant logs:FilterLogEvents", 1},
		"InvalidParameterException": {"refuses the search", 1},
		"ThrottlingException":       {"ThrottlingException", 4},
		"ServiceUnavailable":        {"log group /aws/lambda/x", 4},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			calls := 0
			logs := New(awstest.JSON(t, func(awstest.Call) awstest.Reply {
				calls++
				return awstest.Failure(400, code,
					"no")
			}))
			got, err := logs.History(awstest.Context(t), []string{"/aws/lambda/x"}, "content#a", began)
			if err == nil || !strings.Contains(err.Error(), tt.says) || calls != tt.calls || got != nil {
				t.Errorf("got %v, %v after %d requests, want %q after %d", got, err, calls, tt.says, tt.calls)
			}
		})
	}
}

// A log may contain any line, and no line may make the reader panic.
func FuzzDecision(f *testing.F) {
	f.Add(at(1, "content#a", "held"))
	f.Add(`{"doc":"content#a","msg":1}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := decision(text, "content#a", began)
		if ok && (d.Step == "" || d.At.IsZero() || !json.Valid([]byte(text))) {
			t.Errorf("%q: got %v", text, d)
		}
	})
}
