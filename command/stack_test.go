// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/roundtrip"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

func TestCommandsPublishWaitAndShow(t *testing.T) {
	t.Parallel()
	s := start(t, nil, "--events", write(t), "--speed", "100")
	sent := parsed[operate.Published](t, lull(t, put("a", "1", `{"t":1}`)+"\n"+put("a", "2", `{"t":2}`), "publish",
		"--dev", s.url, "-o", "json"))
	if sent.Messages != 2 || sent.Events != 2 || len(sent.Refused) != 0 {
		t.Errorf("publish: %+v", sent)
	}
	a := lull(t, `{"after_ms":5,"body":`+put("b", "1", "{}")+"}\nnot JSON\n"+put("c", "1", "[]"), "publish", "-",
		"--dev", s.url)
	a.want(t, "publish bad messages", exitRefused, "refused: message 2:", "refused: message 3: contract: data")
	if !strings.Contains(a.out, "1 messages with 1 events sent, 2 refused") {
		t.Errorf("publish said %q", a.out)
	}
	refused := parsed[operate.Published](t, lull(t, "not JSON\n"+put("c", "1", "[]"), "publish", "--dev", s.url,
		"-o", "json"))
	if len(refused.Refused) != 2 || refused.Refused[0].Message != 1 || refused.Refused[1].Message != 2 {
		t.Errorf("refused %+v, want messages 1 and 2, as on standard error", refused.Refused)
	}
	s.ask("publish", "testdata/govuk", "--source", "native").want(t, "publish what is not native", exitRefused,
		"message 1 and 9 more: contract: subject")
	s.ask("wait", "content#a", "--version", "2").want(t, "wait", exitOK, "It is fresh: version 2 is in the sink")
	s.ask("wait", "content#a", "--version", "1").want(t, "wait for an older version", exitOK)
	s.ask("wait", "content#a", "--version", "3", "--timeout", "1ms").want(t, "wait for what does not come", exitMissing,
		"was not committed within 1ms")
	s.ask("wait", "content#a", "--version", "latest").want(t, "wait for no version", exitUsage, "--version", "latest")
	doc := parsed[operate.Document](t, s.ask("get", "content#a", "-o", "json"))
	if doc.Version != "2" || doc.ID != "a" || doc.Collection != "content" || doc.Fence == 0 {
		t.Errorf("get: %+v", doc)
	}
	s.ask("get", "content#a").want(t, "get", exitOK, "version    2", `{"t":2}`)
	s.ask("get", "content#nothing").want(t, "get what is not there", exitMissing, "content#nothing", "not found")
	status := parsed[operate.Status](t, s.ask("status", "-o", "json"))
	if len(status.Queues) != 3 || len(status.Sinks) != 1 || status.Sinks[0].Open {
		t.Errorf("status: %+v", status)
	}
	s.ask("status").want(t, "status", exitOK, "search-live", "healthy", "0 dead letters parked")
	x := parsed[operate.Explanation](t, s.ask("explain", "content#a", "-o", "json"))
	if !x.Known || x.Version != "2" || x.InSink != "2" || len(x.Decisions) == 0 {
		t.Errorf("explain: %+v", x)
	}
	s.ask("explain", "content#a").want(t, "explain", exitOK, "ROW", "committed", "SINK", "DECISIONS", "SETTLE",
		"It is fresh")
	a = s.ask("explain", "content#nothing")
	a.want(t, "explain what is not known", exitMissing, "nothing is known about this key")
	if !strings.Contains(a.out, "No event of this document was ever judged") {
		t.Errorf("explain said %q", a.out)
	}
}

func TestExplainShowsWhatIsHeld(t *testing.T) {
	t.Parallel()
	// The window is long, so that a slow machine does not write the document before it is cancelled.
	s := start(t, strings.NewReader(put("a", "1", "{}")), "--events", "-", "-v", "--quiet", "2m", "--max-wait", "5m")
	s.out.await(t, `HOLD +content#a v1`)
	s.until("HELD in flight", "explain", "content#a"). // the row is written before the manifest
								want(t, "explain", exitOK, "v1", "put", "live", "Version 1 waits for the lull")
	letter := parsed[operate.Letter](t, s.ask("cancel", "content#a", "-o", "json"))
	if letter.Version != "1" || letter.Reason != "cancelled" {
		t.Errorf("cancel: %+v", letter)
	}
	s.ask("cancel", "content#a").want(t, "cancel again", exitMissing, "nothing is pending")
	if a := s.ask("explain", "content#a"); a.code != exitRefused || !strings.Contains(a.out, "DEAD LETTERS") ||
		!strings.Contains(a.out, "version 1 is a dead letter (cancelled)") {
		t.Errorf("explain: exit %d: %s", a.code, a.out)
	}
	s.ask("wait", "content#a", "--version", "1").want(t, "wait for a dead letter", exitRefused, "cancelled")
}

func TestDeadLettersAreListedRedrivenAndDropped(t *testing.T) {
	t.Parallel()
	s := start(t, nil, "--events", write(t, put("a", "1", "[]"), put("b", "x", "{}"), "not JSON"), "--speed", "100")
	s.out.await(t, "everything has settled")
	list := func(args ...string) []operate.Letter {
		t.Helper()
		return parsed[[]operate.Letter](t, s.ask(append([]string{"dead", "list", "-o", "json"}, args...)...))
	}
	for name, want := range map[string]struct {
		args []string
		n    int
	}{
		"all": {nil, 3}, "by reason": {[]string{"--reason", "version_invalid"}, 1},
		"by collection": {[]string{"--collection", "content"}, 2},
		"by key":        {[]string{"--key", "content#a"}, 1}, "by an unknown key": {[]string{"--key", "content#z"}, 0},
		"by state": {[]string{"--state", "redriven"}, 0},
		"by time":  {[]string{"--after", "1h"}, 3}, "by another time": {
			[]string{"--before", "2020-01-01T00:00:00Z"},
			0,
		},
	} {
		if got := list(want.args...); len(got) != want.n {
			t.Errorf("%s: %d dead letters, want %d", name, len(got), want.n)
		}
	}
	s.ask("dead", "list").want(t, "list", exitOK, "REASON", "version_invalid", "content#b")
	id := list("--key", "content#a")[0].ID
	s.ask("dead", "show", id).want(t, "show", exitOK, put("a", "1", "[]"), "contract")
	shown := parsed[operate.Letter](t, s.ask("dead", "show", id, "-o", "json"))
	if shown.Body != put("a", "1", "[]") || shown.State != deadletter.Parked {
		t.Errorf("show: %+v", shown)
	}
	for _, tt := range []struct {
		name string
		args []string
		code exitCode
		says string
	}{
		{"an unknown dead letter", []string{"show", "0123"}, exitMissing, "0123"},
		{"an unknown reason", []string{"list", "--reason", "bad-luck"}, exitUsage, "bad-luck"},
		{"an unknown state", []string{"list", "--state", "lost"}, exitUsage, "lost"},
		{"a bad key", []string{"list", "--key", "content"}, exitUsage, "<collection>#<id>"},
		{"a bad time", []string{"list", "--after", "yesterday"}, exitUsage, "--after"},
		{"nothing selected", []string{"redrive"}, exitUsage, "nothing is selected"},
		{"nothing selected to drop", []string{"drop"}, exitUsage, "nothing is selected"},
		{"everything and something", []string{"drop", id, "--all"}, exitUsage, "--all"},
		{"a variable that was never set", []string{"redrive", ""}, exitUsage, "argument 1 is empty"},
		{"a rate below zero", []string{"redrive", "--all", "--rate", "-1"}, exitUsage, "--rate"},
		{"a rate without end", []string{"redrive", "--all", "--rate", "Inf"}, exitUsage, "--rate"},
		{
			"a dead letter and a filter",
			[]string{"redrive", id, "--reason", "contract"},
			exitUsage,
			"an ID and a filter exclude each other",
		},
		{
			"a filter that was not said",
			[]string{"drop", "--reason", "contract", "--key", ""},
			exitUsage,
			`--key: key ""`,
		},
		{"everything to drop, and nobody to ask", []string{"drop", "--all"}, exitUsage, "give --yes"},
		{"a filter to drop, and nobody to ask", []string{"drop", "--key", "content#b"}, exitUsage, "give --yes"},
		{"an unknown dead letter to redrive", []string{"redrive", "0123"}, exitMissing, "0123"},
		{"an unknown dead letter to drop", []string{"drop", "0123"}, exitMissing, "0123"},
		{"an unknown key to redrive", []string{"redrive", "--key", "content#z"}, exitMissing, "content#z"},
		{"an unknown reason to drop", []string{"drop", "--reason", "bad-luck", "--yes"}, exitUsage, "bad-luck"},
		{"two letters", []string{"redrive", id, id}, exitUsage, "is one argument too many"},
		{"an unknown verb", []string{"bury"}, exitUsage, "bury"},
	} {
		s.ask(append([]string{"dead"}, tt.args...)...).want(t, tt.name, tt.code, tt.says)
	}
	if got := list(); len(got) != 3 || got[0].State != deadletter.Parked {
		t.Errorf("something was changed: %+v", got)
	}
	s.ask("dead", "redrive", "--key", "content#a", "--dry-run").want(t, "dry run", exitOK, id, "would_send: 1",
		"nothing was changed")
	s.ask("dead", "redrive", "--all", "--rate", "1000").want(t, "redrive", exitOK, id, "content#a", "message ",
		"sent: 3")
	undecodable := list("--reason", "undecodable")[0].ID
	again := s.ask("dead", "redrive", undecodable)
	again.want(t, "redrive of one", exitOK, "sent: 1")
	if !strings.Contains(again.errors, "`lull dead show "+undecodable+"`") {
		t.Errorf("it does not say how to follow it: %q", again.errors)
	}
	res := parsed[operate.LetterResult](t, s.ask("dead", "drop", "--key", "content#b", "--yes", "-o", "json"))
	if res.Outcomes["dropped"] != 1 || len(res.Lines) != 1 {
		t.Errorf("drop: %+v", res)
	}
	s.ask("dead", "drop", "--reason", "payload", "--yes").want(t, "drop of none", exitOK, "no dead letter is selected")
}

func TestDoctorSendsAnEventThrough(t *testing.T) {
	t.Parallel()
	s := start(t, nil, "--events", write(t), "--speed", "100")
	s.ask("doctor").want(t, "doctor", exitOK, "it is committed", "the sink holds it", "the delete is committed")
	checks := parsed[[]roundtrip.Check](t, s.ask("doctor", "-o", "json", "--collection", "other", "--source", "native"))
	for _, c := range checks {
		if !c.OK {
			t.Errorf("%+v", c)
		}
	}
	s.ask("get", "content#lull-doctor").want(t, "the synthetic document", exitMissing)
	s.ask("doctor", "--collection", "No").want(t, "doctor of no collection", exitFailed, "1 of")
}

func TestWrongQuestionsHaveClearAnswers(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	gone := "http://" + away()
	file := write(t, put("a", "1", "{}"))
	for _, tt := range []struct {
		name string
		args []string
		code exitCode
		says string
	}{
		{"nobody there", []string{"status", "--dev", gone}, exitFailed, "is `lull dev` running there?"},
		{"something else", []string{"status", "--dev", other.URL}, exitFailed, "it is not a `lull dev`"},
		{"nobody to publish to", []string{"publish", file, "--dev", gone}, exitFailed, "after 0 messages"},
		{
			"nobody to wait for",
			[]string{"wait", "content#a", "--version", "1", "--dev", gone},
			exitFailed,
			"running there",
		},
		{"nobody to examine", []string{"doctor", "--dev", gone}, exitFailed, "1 of 1 checks"},
		{"no address", []string{"status", "--dev", "there"}, exitUsage, "--dev there"},
		{"two stacks", []string{"status", "--aws", "--dev", gone}, exitUsage, "choose one"},
		{"an unknown format", []string{"status", "-o", "xml"}, exitUsage, "-o xml"},
		{"no settings", []string{"status", "--aws", "--config", "missing.yaml"}, exitUsage, "missing.yaml"},
		{"no key", []string{"get", "content"}, exitUsage, "<collection>#<id>"},
		{"logs without functions", []string{"explain", "content#a", "--logs", "1h"}, exitUsage, "--aws"},
		{"no key to explain", []string{"explain", "#a"}, exitUsage, "#a"},
		{"no key to cancel", []string{"cancel", "content#"}, exitUsage, "content#"},
		{"no key to wait for", []string{"wait", "content", "--version", "1"}, exitUsage, "<collection>#<id>"},
		{"no version", []string{"wait", "content#a"}, exitUsage, "--version"},
		{"no time", []string{"wait", "content#a", "--version", "1", "--timeout", "-1s"}, exitUsage, "--timeout"},
		{"nothing to get", []string{"get"}, exitUsage, "write lull get KEY"},
		{"a missing file", []string{"publish", file + ".missing"}, exitUsage, "missing"},
		{"an unknown lane", []string{"publish", file, "--lane", "fast"}, exitUsage, "--lane fast"},
		{"an unknown command", []string{"reindex"}, exitUsage, "reindex"},
		{"help about nothing", []string{"help", "reindex"}, exitUsage, "reindex"},
		{"help about nothing below", []string{"help", "dead", "bury"}, exitUsage, "bury"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lull(t, "", tt.args...).want(t, tt.name, tt.code, tt.says)
		})
	}
}

func TestUnknownFlightsAreNotRescued(t *testing.T) {
	t.Parallel()
	s := start(t, strings.NewReader(put("a", "1", "{}")), "--events", "-", "-v", "--quiet", "10s")
	s.ask("rescue", "01ARZ3NDEKTSV4RRFFQ69G5FAV").want(t, "rescue", exitMissing, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	s.out.await(t, `HOLD +content#a v1`)
	x := parsed[operate.Explanation](t, s.until(`"held"`, "explain", "content#a", "-o", "json"))
	rescued := parsed[struct{ Flight string }](t, s.ask("rescue", x.Flight, "-o", "json"))
	if rescued.Flight == "" || rescued.Flight == x.Flight {
		t.Errorf("rescue: %+v, want a new flight", rescued)
	}
}

// With -o json, standard output is exactly one JSON value.
func TestEveryAnswerIsJSONOnRequest(t *testing.T) {
	t.Parallel()
	s := start(t, nil, "--events", write(t, put("a", "1", "{}"), "not JSON"), "--speed", "100")
	s.out.await(t, "everything has settled")
	file := write(t, put("b", "1", "{}"))
	for _, args := range [][]string{
		{"publish", file},
		{"status"},
		{"get", "content#a"},
		{"explain", "content#a"},
		{"explain", "content#z"},
		{"wait", "content#a", "--version", "1"},
		{"dead", "list"},
		{"dead", "redrive", "--all", "--dry-run"},
		{"dead", "drop", "--all", "--yes"},
		{"resync", file},
		{"doctor"},
	} {
		a := s.ask(append(args, "-o", "json")...)
		if !json.Valid([]byte(a.out)) {
			t.Errorf("%v printed %q (%s)", args, a.out, a.errors)
		}
	}
}

func TestNobodyPrintsThePasswordOfAnAddress(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /operate/redrive", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{") })
	mux.HandleFunc("POST /operate/status", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "[") })
	server := httptest.NewServer(mux)
	defer server.Close()
	gone := away()
	host := strings.TrimPrefix(server.URL, "http://")
	events := write(t, put("a", "1", "{}"))
	for _, tt := range []struct {
		name, dev string
		args      []string
	}{
		{"nobody there", "http://user:hunter2@" + gone, []string{"status"}},
		{"an answer that is cut off", "http://user:hunter2@" + host, []string{"status"}},
		{"a redrive that is cut off", "http://user:hunter2@" + host, []string{"dead", "redrive", "--all"}},
		{"another program", "http://user:hunter2@" + host, []string{"explain", "content#a"}},
		{"another scheme", "ftp://user:hunter2@" + host, []string{"status"}},
		{"no scheme", "user:hunter2@" + host, []string{"status"}},
		{"a port that is none", "http://user:hunter2@localhost:http", []string{"status"}},
		{"a character that no address has", "http://user:hunter2@local\x7fhost", []string{"status"}},
		{"a job", "http://user:hunter2@" + gone, []string{"resync", events}},
	} {
		a := lull(t, "", append(tt.args, "--dev", tt.dev)...)
		if a.code == exitOK || a.errors == "" || strings.Contains(a.out+a.errors, "hunter") {
			t.Errorf("%s: exit %d: %s%s", tt.name, a.code, a.out, a.errors)
		}
	}
}

// Scripts act on the exit code: each state has one.
func TestExplainHasAnExitCodeForEveryState(t *testing.T) {
	t.Parallel()
	codes := map[operate.State]exitCode{
		operate.StateDead: exitRefused, operate.StateNobody: exitMissing, operate.StateBlocked: exitWrong,
		operate.StateFarAhead: exitWrong, operate.StateReset: exitWrong, operate.StateSinkLost: exitWrong,
		operate.StateSinkOlder: exitWrong,
		operate.StateSinkNewer: exitWrong, operate.StateSinkKept: exitWrong, operate.StateUnreadable: exitWrong,
		operate.StateConfigured: exitWrong,
	}
	for _, m := range operate.States() {
		x := operate.Explanation{Key: "content#a", State: m.State, Known: m.State != operate.StateNobody, Sentence: m.Text}
		server := httptest.NewServer(operate.Handler(operatetest.API(operate.API{}, one{x: x})))
		t.Cleanup(server.Close)
		if a := lull(t, "", "explain", "content#a", "--dev", server.URL); a.code != codes[m.State] ||
			!strings.Contains(a.out, string(m.State)+": "+m.Text) {
			t.Errorf("%s: exit %d, want %d: %s%s", m.State, a.code, codes[m.State], a.out, a.errors)
		}
	}
}

// one is a stack with one explanation.
type one struct{ x operate.Explanation }

func (o one) Explain(context.Context, shard.DocID) (operate.Explanation, error) { return o.x, nil }

// A misspelt collection is an error, which names the collections of the settings.
func TestAnUnknownCollectionIsAnErrorWithTheKnownOnes(t *testing.T) {
	t.Parallel()
	file := settings(t, "\nsources: {cms: {kind: native}}\ncollections: {content: {}, pages: {}}\ndefaultCollection: content")
	s := start(t, nil, "--config", file, "--local")
	if got := s.out.String(); !strings.Contains(got, "GET /search?q=WORD&field=FIELD&collection=content,") {
		t.Errorf("the start names no search in a collection of the settings: %s", got)
	}
	const known = `the settings name no collection "contents", they name content, pages`
	s.ask("list", "--collection", "contents").want(t, "list", exitUsage, "collection: "+known)
	s.ask("get", "contents#a").want(t, "get", exitMissing, "not found in sink search: "+known)
	s.ask("list", "--cursor", "zzz").want(t, "an invented cursor", exitUsage, `cursor "zzz": want the cursor that`)
	if got := s.ask("list", "--collection", "pages"); got.code != exitOK {
		t.Errorf("a collection of the settings: %+v, want an empty list", got)
	}
}
