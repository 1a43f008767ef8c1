// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
)

// publishLines returns events as lines that `lull publish` reads.
func publishLines(events ...ground.Event) string {
	var text strings.Builder
	for _, e := range events {
		text.WriteString(e.Body() + "\n")
	}
	return text.String()
}

// A publisher and an operator use a stack with the command line: publish, wait, get, status and
// explain.
func TestCommandsPublishWaitAndShow(t *testing.T) {
	s := express(t)
	c := s.Collection("commands")
	file := ground.File(t, "events.ndjson", publishLines(
		ground.Event{Collection: c, ID: "a", Version: 1}, ground.Event{Collection: c, ID: "a", Version: 2},
		ground.Event{Collection: c, ID: "b", Version: 1},
	))
	var published operate.Published
	s.JSON(t, &published, "publish", file)
	if published.Messages != 3 || published.Events != 3 || len(published.Refused) != 0 {
		t.Errorf("publish a file: %+v", published)
	}
	s.SaysTo(t, nil, publishLines(ground.Event{Collection: c, ID: "c", Version: 9}), 0,
		"1 messages with 1 events sent, 0 refused", "publish", "--source", "events", "-")
	var status operate.Status
	s.JSON(t, &status, "status")
	waiting := 0
	for _, q := range status.Queues {
		waiting += q.Visible + q.InFlight
	}
	if waiting == 0 || len(status.Queues) != 3 || len(status.Sinks) != 1 || status.Sinks[0].Open {
		t.Errorf("status while messages wait: %+v", status)
	}

	key, nothing := string(ground.Key(c, "a")), string(ground.Key(c, "nothing"))
	s.Says(t, 0, "It is fresh: version 2 is in the sink", "wait", key, "--version", "2", "--timeout", "2m")
	s.Says(t, 0, "", "wait", string(ground.Key(c, "c")), "--version", "7", "--timeout", "2m") // 9 is newer
	s.Says(t, 4, "was not committed within 2s", "wait", key, "--version", "3", "--timeout", "2s")
	var doc operate.Document
	s.JSON(t, &doc, "get", key)
	if doc.Version != "2" || doc.Collection != c || !strings.Contains(string(doc.Document), "version 2") {
		t.Errorf("get: %+v", doc)
	}
	s.Says(t, 4, "", "get", nothing)
	s.Says(t, 4, "No event of this document was ever judged", "explain", nothing)
	s.Settled(t, c, map[string]int{"a": 2, "b": 1, "c": 9})
}

// doctor examines the stack and sends an event through it.
func TestDoctor(t *testing.T) {
	s := express(t)
	if a := s.Lull(t, "doctor", "--collection", s.Collection("doctor")); a.Code != 0 ||
		strings.Contains(a.Out, "BAD") || !strings.Contains(a.Out, "the delete is committed") {
		t.Errorf("exit %d:\n%s%s", a.Code, a.Out, a.Errors)
	}
	s.Drained(t)
}

// `lull resync` publishes a collection again through the bulk lane. lull writes an equal version
// again, but not an older version.
func TestResyncGoesThroughTheBulkLane(t *testing.T) {
	s := express(t)
	c := s.Collection("resync")
	s.Direct(t, ground.Event{Collection: c, ID: "same", Version: 2},
		ground.Event{Collection: c, ID: "newer", Version: 5})
	s.Settled(t, c, map[string]int{"same": 2, "newer": 5})
	writes := s.Search.Writes(t, s.Index(c))
	file := ground.File(t, "all.ndjson", publishLines(
		ground.Event{Collection: c, ID: "same", Version: 2, Data: map[string]any{"title": "again"}},
		ground.Event{Collection: c, ID: "newer", Version: 4}, ground.Event{Collection: c, ID: "missing", Version: 1},
	))
	s.Says(t, 0, "3 messages sent in resync run", "resync", file, "--rate", "100")
	s.Settled(t, c, map[string]int{"same": 2, "newer": 5, "missing": 1})
	if got := s.Search.Documents(t, s.Index(c))["same"].Fields["title"]; got != "again" {
		t.Errorf("the resync's document was not written: title %q", got)
	}
	s.Wrote(t, c, writes, 2) // one of the three events is stale
	// The export may also be an object in a bucket.
	object := s.Object(t, c+"/export.ndjson", publishLines(ground.Event{Collection: c, ID: "exported", Version: 3}))
	s.Says(t, 0, "1 messages sent in resync run", "resync", object)
	s.Committed(t, ground.Key(c, "exported"), 3)
	s.Drained(t)
}

// `lull cancel` makes the pending version a dead letter before the version is written. The audit
// records the cancellation.
func TestCancel(t *testing.T) {
	s := express(t)
	flights := len(flightIDs(t, s))
	c := s.Collection("cancel")
	key := ground.Key(c, "doc")
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1})
	s.Settled(t, c, map[string]int{"doc": 1})
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 2})
	s.Pending(t, key, 2)
	var cancelled operate.Letter
	s.Says(t, 0, `"audit":true`, "cancel", string(key), "-o", "json")
	s.Settled(t, c, map[string]int{"doc": 1})
	s.JSON(t, &cancelled, "dead", "show", deadLetters(t, s, c, 1)[0].ID)
	if cancelled.Reason != deadletter.Cancelled || cancelled.Version != "2" ||
		!s.SameBody(cancelled.Body, ground.Event{Collection: c, ID: "doc", Version: 2}.Body()) {
		t.Errorf("got dead letter %+v", cancelled)
	}
	s.Says(t, 0, "", "dead", "drop", cancelled.ID)
	deadLetters(t, s, c, 0)
	// The flight still waits for the cancelled version. It must end before the next test starts.
	ground.Until(t, "the flights of this test have ended", func() (bool, string) {
		n := len(flightIDs(t, s)) - flights
		return n <= 0, fmt.Sprint(n, " are left")
	})
}

// A command with a wrong argument prints a clear error and changes nothing.
func TestCommandsRefuseWhatIsWrong(t *testing.T) {
	s := express(t)
	c := s.Collection("wrong")
	before := s.Counts(t)
	elsewhere := ground.File(t, "lull.yaml",
		"stack: not-deployed\nsources: {events: {kind: native}}\nsinks: {search: {kind: opensearch, url: "+
			"'http://127.0.0.1:1', index: 'x-{collection}'}}\n")
	for name, ask := range map[string]struct {
		args []string
		in   string
		code int
		says string
	}{
		"no stack": {
			[]string{"status", "--config", elsewhere},
			"", 2,
			"find queue not-deployed-search-live",
		},
		"no settings":            {[]string{"status", "--config", elsewhere + ".missing"}, "", 2, "open settings"},
		"a key without id":       {[]string{"explain", "content"}, "", 2, ""},
		"an unknown reason":      {[]string{"dead", "list", "--reason", "bad-luck"}, "", 2, "bad-luck"},
		"an unknown dead letter": {[]string{"dead", "show", "0123456789abcdef"}, "", 4, ""},
		"an unknown flight":      {[]string{"rescue", "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "", 4, ""},
		"nothing selected":       {[]string{"dead", "redrive"}, "", 2, "nothing is selected"},
		"nothing pending":        {[]string{"cancel", string(ground.Key(c, "doc"))}, "", 4, "nothing is pending"},
		"a broken contract": {[]string{"publish"}, `{"subject":"x","collection":"` + c +
			`","type":"doc.changed","data":{}}` + "\n", 3, "refused: message 1: "},
		"a missing file":     {[]string{"publish", elsewhere + ".missing"}, "", 2, ""},
		"a broken rate":      {[]string{"resync", elsewhere, "--rate", "0"}, "", 2, "--rate"},
		"an unknown command": {[]string{"reindex"}, "", 2, "reindex"},
	} {
		a := s.LullAs(t, nil, ask.in, ask.args...)
		if a.Code != ask.code || !strings.Contains(a.Errors, ask.says) || a.Errors == "" {
			t.Errorf("%s: exit %d, want %d; %q, want it to say %q", name, a.Code, ask.code, a.Errors, ask.says)
		}
	}
	s.Drained(t)
	s.Never(t, before, "Received")
}
