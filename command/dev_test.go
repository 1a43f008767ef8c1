// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDevRefusesWhatIsWrongBeforeItReadsAnything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		save(t, path, text)
		return path
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	unreachable := "http://" + away()
	theirs := filepath.Dir(file("theirs/thesis.txt", "x"))
	broken := filepath.Join(dir, "broken")
	lull(t, "", "dev", "--events", "-", "--exit-when-idle", "--data", broken).want(t, "make a data folder", exitOK)
	file("broken/rows.ndjson", "{\n")
	own, linked, events := filepath.Join(dir, "own"), filepath.Join(dir, "linked"), file("events.ndjson", "{}\n")
	lull(t, "", "dev", "--events", "-", "--exit-when-idle", "--data", own).want(t, "make a data folder", exitOK)
	if err := os.Symlink(dir, linked); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		says []string
	}{
		{"an unknown flag", []string{"--bogus"}, []string{"unknown flag --bogus"}},
		{"an argument", []string{"events.ndjson"}, []string{"events.ndjson"}},
		{"a flag for stacks", []string{"--aws"}, []string{"--aws", "not talk to a stack"}},
		{"no duration", []string{"--quiet", "soon"}, []string{"--quiet"}},
		{"a quiet window below zero", []string{"--quiet", "-1s"}, []string{"debounce.quiet"}},
		{
			"quiet above max wait",
			[]string{"--quiet", "3s", "--max-wait", "2s"},
			[]string{"debounce.quiet (3s)", "debounce.maxWait of 2s"},
		},
		{"a wait that breaks a promise", []string{"--max-wait", "2s"}, []string{"debounce.maxWait"}},
		{"no speed", []string{"--speed", "0"}, []string{"--speed 0"}},
		{"an infinite speed", []string{"--speed", "Inf"}, []string{"--speed"}},
		{"a speed that is not a number", []string{"--speed", "NaN"}, []string{"--speed"}},
		{
			"a speed at which a week passes at once",
			[]string{"--speed", "1e9"},
			[]string{"--speed 1e+09", "at most 1000000"},
		},
		{
			"a missing settings file",
			[]string{"--config", filepath.Join(dir, "missing.yaml")},
			[]string{"--config", "missing.yaml", "correct the path, or write new settings with `lull new`"},
		},
		{
			"an unknown setting",
			[]string{"--config", file("unknown.yaml", "debounce: {silence: 5s}\n")},
			[]string{"silence", "is not a setting"},
		},
		{
			"contradictory settings, all of them",
			[]string{"--config", file("contradictory.yaml", "debounce: {quiet: 40s, maxWait: 20s}\nindex: {timeout: 2s}\n")},
			[]string{"debounce.quiet", "index.timeout"},
		},
		{"an unknown source", []string{"--source", "telepathy"}, []string{"--source telepathy", "native or govuk"}},
		{"a source that the settings do not name", []string{
			"--config", file("plain.yaml", "stack: x\n"), "--source",
			"govuk",
		}, []string{"names no such source"}},
		{"a bad collection", []string{"--collection", "No"}, []string{"--collection", `"No"`}},
		{"missing events", []string{"--events", filepath.Join(dir, "missing.ndjson")}, []string{
			"missing.ndjson", "name a file of messages",
		}},
		{
			"a tab",
			[]string{"--config", file("tab.yaml", "sinks:\n\tsearch: {kind: bleve}\n")},
			[]string{"line 2: a tab cannot indent YAML: use spaces"},
		},
		{"a folder without events", []string{"--events", theirs}, []string{"*.json"}},
		{"a foreign folder", []string{"--data", theirs}, []string{"--data", "theirs"}},
		{"a file for a folder", []string{"--data", file("file", "")}, []string{"--data", "is a file"}},
		{"a broken data folder", []string{"--data", broken}, []string{"rows.ndjson line 1"}},
		{
			"a foreign folder, with a remote sink",
			[]string{"--sink", unreachable, "--data", theirs},
			[]string{"--data", "theirs"},
		},
		{"no address", []string{"--sink", "elsewhere"}, []string{"elsewhere", "address"}},
		{"a sink that does not answer", []string{"--sink", unreachable}, []string{
			"--sink " + unreachable, "refused", "start the engine there, or correct the address",
		}},
		{
			"settings whose sink does not answer",
			[]string{"--config", file("away.yaml", "sinks: {search: {kind: opensearch, url: '"+unreachable+"', index: i}}\n")},
			[]string{"sinks.search.url", "refused", "--local"},
		},
		{"a port in use", []string{"--listen", taken.Addr().String()}, []string{"--listen", "in use"}},
		{
			"a report in no folder",
			[]string{"--report", filepath.Join(dir, "no", "report.json")},
			[]string{"--report", "no folder"},
		},
		{"a dump into a folder", []string{"--dump", theirs}, []string{"--dump", "is a folder"}},
		{"one file for two, by two names", []string{
			"--dump", filepath.Join(linked, "x"), "--report",
			filepath.Join(dir, "x"),
		}, []string{"same file"}},
		{
			"a dump over the events",
			[]string{"--events", events, "--dump", filepath.Join(linked, "events.ndjson")},
			[]string{"--events and --dump", "same file"},
		},
		{"a report over the settings", []string{
			"--config", file("mine.yaml", "stack: x\n"), "--report",
			filepath.Join(dir, "mine.yaml"),
		}, []string{"--config and --report"}},
		{"a dump into the data folder", []string{
			"--data", filepath.Join(dir, "new"), "--dump",
			filepath.Join(dir, "new", "index.ndjson"),
		}, []string{"--dump", "no folder"}},
		{
			"a dump over lull's own",
			[]string{"--data", own, "--dump", filepath.Join(own, "rows.ndjson")},
			[]string{"--dump", "data folder"},
		},
		{"a device", []string{"--dump", os.DevNull}, []string{"--dump", "not a regular file"}},
		{"a folder that takes no files", []string{"--report", "/proc/self/report.json"}, []string{"--report"}},
		{"empty events", []string{"--events", ""}, []string{"--events", "is empty"}},
		{"an empty address", []string{"--listen", ""}, []string{"--listen", "is empty"}},
		{"no port", []string{"--listen", "localhost"}, []string{"--listen", "missing port"}},
		{
			"one file for two",
			[]string{"--dump", filepath.Join(dir, "x"), "--report", filepath.Join(dir, ".", "x")},
			[]string{"same file"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := strings.NewReader(put("a", "1", "{}"))
			var out, errs strings.Builder
			args := []string{"dev", "--exit-when-idle", "--speed", "100"}
			if !slices.Contains(tt.args, "--events") {
				args = append(args, "--events", "-")
			}
			code := newApp(in, &out, &errs).run(t.Context(), append(args, tt.args...))
			answer{code, out.String(), errs.String()}.want(t, tt.name, exitUsage, tt.says...)
			if in.Len() != int(in.Size()) {
				t.Error("the input was read")
			}
			if strings.Contains(errs.String(), "panic") {
				t.Error(errs.String())
			}
		})
	}
	t.Cleanup(func() { // after the subtests
		if left, err := os.ReadDir(theirs); err != nil || len(left) != 1 {
			t.Errorf("the foreign folder now has %v, error %v", left, err)
		}
	})
}

func TestDevSettlesPublishingMessages(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", "testdata/govuk", "--source", "govuk", "--speed", "100")
	found := get[struct{ Hits []dumped }](t, s.url+"/search?field=title&q="+url.QueryEscape("Vienna"))
	if len(found.Hits) != 1 || !strings.Contains(string(found.Hits[0].Document), `"locale":"en"`) {
		t.Errorf("titles with Vienna: %+v, want one, in English", found.Hits)
	}
	s.stopped().want(t, "Ctrl-C when everything is settled", exitOK)

	p := play(t, "", "--events", "testdata/govuk", "--source", "govuk")
	r := p.report
	if p.code != exitOK || r.Messages != 10 || r.Events != 10 || r.Written != 7 || r.Deleted != 2 || r.Skipped != 1 ||
		r.Bursts != 9 || r.SinkItems != 9 {
		t.Errorf("exit %d, %+v; want seven documents, two deletes, one skip", p.code, r)
	}
	if !slices.IsSortedFunc(p.dump, func(a, b dumped) int { return strings.Compare(a.ID, b.ID) }) || len(p.dump) != 7 {
		t.Errorf("dump %+v", p.dump)
	}
	if v := p.versions()["content#00000000-0000-4000-8000-000000000008"]; v != "9007199254740993" {
		t.Errorf("version %s, want every digit", v)
	}
}

func get[A any](t *testing.T, address string) A {
	t.Helper()
	return decode[A](t, do(t, ask(t, http.MethodGet, address, ""), http.StatusOK))
}

func ask(t *testing.T, method, address, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// do sends a request on a new connection, and wants JSON with this status.
func do(t *testing.T, req *http.Request, status int) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status || !json.Valid(text) {
		t.Fatalf("%s: %s, error %v: %s", req.URL, resp.Status, err, text)
	}
	return string(text)
}

func TestDevPutsBadMessagesAsideAndNothingElse(t *testing.T) {
	t.Parallel()
	huge := put("huge", "1", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)
	events := write(t,
		"not JSON", "", "   ", `{}`, `[1]`, `"text"`, `42`, huge, `{"after_ms":5}`,
		`{"type":"doc.changed","sequence":"1","data":{}}`,
		`{"type":"doc.changed","subject":"missing","data":{}}`,
		put("negative", "-1", "{}"), put("long", strings.Repeat("9", 41), "{}"),
		`{"type":"doc.changed","subject":"float","sequence":1.5,"data":{}}`,
		put("letters", "abc", "{}"),
		`{"type":"doc.changed","subject":"class","sequence":"5","sequencetype":"lex","data":{}}`,
		put("fine", "1", `{"n":1.10,"big":123456789012345678901234567890,"exp":1E+2,"text":"é\u0001<&>"}`),
		put("number", "2", "{}"), del("number", "3"),
	)
	p := play(t, "", "--events", events)
	if p.code != exitRefused || p.report.Messages != 17 || p.report.Events != 17 || p.report.Dead != 14 ||
		p.report.Rejected != 14 || p.report.Written != 1 || p.report.Superseded+p.report.Deleted != 2 {
		t.Errorf("exit %d, %+v", p.code, p.report)
	}
	reasons := map[string]int{}
	for _, d := range p.report.DeadLetters {
		reasons[d.Reason]++
		if d.MessageID == "" {
			t.Errorf("%+v has no message id", d)
		}
	}
	want := map[string]int{"undecodable": 3, "contract": 5, "version_invalid": 5, "version_class_mismatch": 1}
	if !maps.Equal(reasons, want) {
		t.Errorf("reasons %v, want %v", reasons, want)
	}
	if len(p.dump) != 1 ||
		string(p.dump[0].Document) != `{"n":1.10,"big":123456789012345678901234567890,"exp":1E+2,"text":"é\u0001<&>"}` {
		t.Errorf("dump %+v, want every digit", p.dump)
	}
}

// A message that nests too deep is refused, and does not end the process. A recursive reader would
// overflow the stack.
func TestNestingEndsNoCommand(t *testing.T) {
	t.Parallel()
	open, closed := strings.Repeat("[", 4<<20), strings.Repeat("]", 4<<20)
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	events := write(t, open+closed, `{"body":`+open+closed+`}`, `{"body":`+deep+`}`, put("a", "1", deep), put("b", "1", "{}"))
	p := play(t, "", "--events", events)
	if got := p.versions(); p.report.Dead != 4 || len(got) != 1 || got["content#b"] != "1" {
		t.Errorf("dev: %d dead letters and %v, want 4 and only b", p.report.Dead, got)
	}
	s := start(t, strings.NewReader(""), "--events", "-", "--speed", "100")
	s.ask("publish", events).want(t, "publish", exitRefused, "message 2: ", "message 3 and 1 more: ",
		"nests objects or arrays more than 256 deep")
	alarming(t, exitRefused, s.ask("resync", events, "--rate", "1e6"), "message 2: ", "nests objects or arrays more than 256 deep")
	do(t, ask(t, http.MethodPost, s.url+"/publish", open+closed), http.StatusBadRequest)
	config := filepath.Join(t.TempDir(), "lull.yaml")
	save(t, config, open)
	lull(t, "", "dev", "--config", config).want(t, "settings", exitUsage, "--config")
}

func TestDevStopsAtABrokenInput(t *testing.T) {
	t.Parallel()
	events := write(t, put("a", "1", "{}"), `{"after_ms":-5,"body":{}}`)
	report := filepath.Join(t.TempDir(), "report.json")
	a := lull(t, "", "dev", "--events", events, "--exit-when-idle", "--speed", "100", "--report", report)
	a.want(t, "a time before the start", exitFailed, "line 2", "after_ms")
	absent(t, report)
}

// published returns shuffled events: ten versions of each document, within two seconds. want has
// the version of each document that must remain. internal/local/dev also tests repeated messages
// and deletes.
func published(seed uint64, docs int) (lines []string, want map[string]string) {
	r := rand.New(rand.NewPCG(seed, 7))
	want = map[string]string{}
	for d := range docs {
		id := fmt.Sprintf("doc-%03d", d)
		want["content#"+id] = "10"
		for v := 1; v <= 10; v++ {
			body := put(id, fmt.Sprint(v), fmt.Sprintf(`{"v":%d}`, v))
			lines = append(lines, fmt.Sprintf(`{"after_ms":%d,"body":%s}`, r.IntN(2000), body))
		}
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines, want
}

func TestDevWritesEachBurstOnceAtAnySpeedAndUnderFaults(t *testing.T) {
	t.Parallel()
	lines, want := published(1, 200)
	events := write(t, lines...)
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"fast", []string{"--speed", "50"}},
		{"very fast", []string{"--speed", "1000"}},
		{"under faults", []string{"--faults", "--seed", "3", "--speed", "100"}},
		{"shorter waits", []string{"--quiet", "2s", "--max-wait", "10s"}},
		{"no quiet window at all", []string{"--quiet", "0s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := play(t, "", append([]string{"--events", events}, tt.args...)...)
			if p.code != exitOK || !maps.Equal(p.versions(), want) {
				t.Errorf("exit %d, %d documents, want %d at their newest version", p.code, len(p.dump), len(want))
			}
			if p.report.Messages != len(lines) || p.report.Written+p.report.Deleted > int(p.report.SinkItems) {
				t.Errorf("%+v", p.report)
			}
		})
	}
}

func TestDevFitsTheWindowToAShortQuietWindowAndSaysSo(t *testing.T) {
	t.Parallel()
	for quiet, says := range map[string]string{
		"500ms": "--quiet 500ms: for this run batches gather for 0s, and a burst may spread over 500ms",
		"2s":    "--quiet 2s: for this run batches gather for 1s, and a burst may spread over 1s",
		"6s":    "",
	} {
		p := play(t, put("a", "1", "{}"), "--events", "-", "--quiet", quiet)
		if fitted := strings.Contains(p.out, "for this run"); fitted != (says != "") || !strings.Contains(p.out, says) {
			t.Errorf("--quiet %s said %q, want %q", quiet, p.out, says)
		}
	}
	settings := write(t, "stack: x")
	lull(t, "", "dev", "--events", "-", "--exit-when-idle", "--config", settings, "--quiet", "2s").want(t,
		"a file says otherwise", exitUsage, "burstSpread")
}

func TestDevKnowsCollectionsAndSources(t *testing.T) {
	t.Parallel()
	p := play(t, put("a", "1", "{}")+"\n"+
		`{"type":"doc.changed","collection":"other","subject":"b","sequence":"1","data":{}}`, "--events", "-",
		"--collection", "news")
	if got, want := p.versions(), map[string]string{"news#a": "1", "other#b": "1"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	settings := write(t,
		"sources: {pages: {kind: govuk, collection: pages}, mine: {kind: native, collection: mine, match: [{named: true}]}}",
		"defaultSource: pages", "sinks: {a: {kind: bleve}, b: {kind: bleve}}", "defaultSink: a",
		"collections: {mine: {sink: b}, pages: {}}", "defaultCollection: pages")
	p = play(t, put("a", "1", "{}"), "--events", "-", "--config", settings, "--source", "mine")
	if got, want := p.versions(), map[string]string{"mine#a": "1"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	data := filepath.Join(t.TempDir(), "data")
	for range 2 {
		p = play(t, put("a", "1", "{}"), "--events", "-", "--config", settings, "--source", "mine", "--data", data)
	}
	if p.report.Duplicates != 1 || p.report.Written != 0 {
		t.Errorf("several sinks, again: %+v, want a duplicate", p.report)
	}
}

func TestADataFolderIsUsedAgain(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	first := play(t, strings.Join([]string{put("a", "5", `{"v":5}`), put("gone", "5", "{}"), put("poison", "1", "[]")},
		"\n"), "--events", "-", "--data", data, "--speed", "1000")
	if first.code != exitRefused || first.report.Written != 2 {
		t.Fatalf("%+v", first.report)
	}
	second := play(t, strings.Join([]string{put("a", "4", `{"v":4}`), put("a", "5", `{"v":5}`), del("gone", "6")},
		"\n"), "--events", "-", "--data", data)
	if r := second.report; second.code != exitRefused || r.Stale != 1 || r.Duplicates != 1 || r.Deleted != 1 ||
		r.Dead != 0 || len(r.DeadLetters) != 1 {
		t.Errorf("exit %d, %+v; want one stale, one duplicate, one delete and the dead letter of the first run", second.code,
			r)
	}
	third := play(t, put("gone", "5", "{}"), "--events", "-", "--data", data)
	if got, want := third.versions(), map[string]string{"content#a": "5"}; third.report.Stale != 1 ||
		!maps.Equal(got, want) {
		t.Errorf("%+v, %v; want the older put refused", third.report, got)
	}
	s := start(t, strings.NewReader(""), "--events", "-", "--data", data)
	lull(t, "", "dev", "--exit-when-idle", "--data", data).want(t, "a folder in use", exitUsage, "in use")
	s.stopped().want(t, "Ctrl-C with a dead letter parked", exitRefused)
}

// The clock of a run begins where the last run ended. It must not run ahead of the machine because
// of a restart.
func TestARestartDoesNotMoveTheClockAhead(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	for n := range 3 {
		p := play(t, put(fmt.Sprintf("doc-%d", n), "1", "{}"), "--events", "-", "--data", data, "--speed", "1")
		if p.report.Written != 1 || strings.Contains(p.out, "ahead of this machine") {
			t.Errorf("run %d: %+v\n%s\nwant a write, and a clock that is not ahead", n, p.report, p.out)
		}
	}
	play(t, put("a", "1", "{}")+"\n"+put("a", "2", "{}"), "--events", "-", "--data", data, "--speed", "1000",
		"--quiet", "2m", "--max-wait", "5m")
	p := play(t, put("b", "1", "{}"), "--events", "-", "--data", data, "--speed", "1")
	if !strings.Contains(p.out, "ahead of this machine") {
		t.Errorf("after a fast run: %s\nwant a line that says that the clock is ahead", p.out)
	}
}

func TestAKilledRunLosesNothingThatTheSinkHas(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	cmd := program(t, "dev", "--events", "-", "--exit-when-idle", "--data", data, "--speed", "100", "-v")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := launch(t, cmd)
	if _, err := io.WriteString(in, put("a", "5", `{"v":5}`)+"\n"+put("gone", "5", "{}")+"\n"); err != nil {
		t.Fatal(err)
	}
	out.await(t, `SETTLE +content#gone v5`)
	out.await(t, `SETTLE +content#a v5`)
	if _, err := io.WriteString(in, del("gone", "6")+"\n"); err != nil {
		t.Fatal(err)
	}
	out.await(t, `SETTLE +content#gone v6`)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	p := play(t, strings.Join([]string{put("a", "4", `{"v":4}`), put("gone", "5", "{}"), put("b", "1", "{}")}, "\n"),
		"--events", "-", "--data", data)
	if got, want := p.versions(), map[string]string{"content#a": "5", "content#b": "1"}; p.report.Stale != 2 ||
		!maps.Equal(got, want) {
		t.Errorf("%+v, %v; want %v and both older versions refused", p.report, got, want)
	}
}

// A run is killed. At the end of the next run, every message is written, parked or scheduled.
func TestAKilledRunGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	for _, at := range []string{`ADMIT +content#a`, `HOLD +content#b`, `CLAIM +content#a`, `SETTLE +content#b`, `PARK `} {
		t.Run(strings.Fields(at)[0], func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			cmd := program(t, "dev", "--events", "-", "--exit-when-idle", "--data", data, "--speed", "50", "-v")
			later := time.Now().Add(20 * 24 * time.Hour).UTC().Format(time.RFC3339)
			cmd.Stdin = strings.NewReader(strings.Join([]string{
				put("a", "1", "{}"), put("a", "2", "{}"), put("b", "1", "{}"), put("poison", "1", "[]"),
				`{"type":"doc.changed","subject":"later","sequence":"1","notbefore":"` + later + `","data":{}}`,
				`{"after_ms":600000,"body":` + put("late", "1", "{}") + `}`, // so that the run does not end
			}, "\n"))
			out := launch(t, cmd)
			out.await(t, at)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // killed
			p := play(t, "", "--events", "-", "--data", data)
			if got, want := p.versions(), map[string]string{"content#a": "2", "content#b": "1"}; !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if p.report.Scheduled != 1 || len(p.report.DeadLetters) != 1 {
				t.Errorf("%+v, want one scheduled event and one dead letter", p.report)
			}
		})
	}
}

func TestCtrlCEndsADemoWithoutAnError(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		"Watch what the rows decide", `HOLD +content#vienna`,
		"everything has settled",
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			cmd := program(t, "dev", "--listen", "127.0.0.1:0", "--speed", "20")
			out := launch(t, cmd)
			out.await(t, when)
			interrupt(t, cmd)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// A request that never ends keeps the run up for three seconds. If the user presses Ctrl-C again in
// that time, the data folder is still saved.
func TestASecondCtrlCDoesNotLoseTheDataFolder(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	cmd := program(t, "dev", "--listen", "127.0.0.1:0", "--speed", "50", "--data", data, "-v", "--events",
		write(t, put("a", "7", "{}"), put("linz", "1", "[]")))
	out := launch(t, cmd)
	at := out.await(t, `search on http://([^/]+)/`)
	out.await(t, "everything has settled")
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /publish HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // 100: it is being read
		t.Fatal(err)
	}
	for range 2 {
		interrupt(t, cmd)
		for closed := false; !closed; {
			c, err := net.Dial("tcp", at)
			if closed = err != nil; !closed {
				_ = c.Close()
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exitCode(exit.ExitCode()) != exitRefused {
		t.Errorf("got %v, want exit %d:\n%s", err, exitRefused, out)
	}
	again := play(t, put("a", "6", "{}"), "--events", "-", "--data", data)
	if again.report.Stale != 1 || len(again.report.DeadLetters) != 1 {
		t.Errorf("the next run has %+v; want the old version refused, and the dead letter", again.report)
	}
}

func TestCtrlCBeforeTheEndIsAnError(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer w.Close()
	s := start(t, r, "--events", "-", "--exit-when-idle")
	s.stopped().want(t, "while the input goes on", exitWrong, "before the input ended")

	s = start(t, strings.NewReader(put("a", "1", "{}")), "--events", "-", "-v")
	s.out.await(t, "HOLD")
	s.stopped().want(t, "while a message is held", exitWrong, "1 messages were not settled")
}

// With settings of the user, the demo must not add its documents and two dead letters.
func TestSettingsOfOnesOwnGetNoDemo(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "lull.yaml")
	save(t, config, "sources: {cms: {kind: native}}\nsinks: {search: {kind: bleve}}\n")
	a := lull(t, "", "dev", "--exit-when-idle", "--speed", "500", "--config", config)
	a.want(t, "no demo", exitOK, "0 messages, 0 events")
}

func TestTheDemoEndsWithItsPoisonParked(t *testing.T) {
	t.Parallel()
	a := lull(t, "", "dev", "--exit-when-idle", "--speed", "500")
	a.want(t, "the demo", exitRefused)
	for _, word := range []string{
		"ADMIT", "HOLD", "CLAIM", "SETTLE", "STALE", "DEAD", "PARK", "superseded",
		"unchanged, the same content as version 5", "tombstone", "dead letter: content#linz: version_invalid",
	} {
		if !strings.Contains(a.out, word) {
			t.Errorf("the demo does not show %q:\n%s", word, a.out)
		}
	}
}

func TestTheServerAnswersToNoNameThatSomebodyElseOwns(t *testing.T) {
	t.Parallel()
	s := start(t, strings.NewReader(""), "--events", "-")
	for host, status := range map[string]int{
		"": http.StatusOK, "localhost:1": http.StatusOK, "LOCALHOST": http.StatusOK, "lull.localhost": http.StatusOK,
		"127.0.0.1": http.StatusOK, "[::1]:80": http.StatusOK,
		"elsewhere.example":              http.StatusMisdirectedRequest,
		"localhost.elsewhere.example:80": http.StatusMisdirectedRequest,
	} {
		req := ask(t, http.MethodGet, s.url+"/status", "")
		req.Host = host
		do(t, req, status)
	}
}

// POST /publish can name the source of its messages, as `lull publish --source` does.
func TestPublishTakesASource(t *testing.T) {
	t.Parallel()
	settings := filepath.Join(t.TempDir(), "lull.yaml")
	text := "sources: {pages: {kind: govuk}, events: {kind: native, match: [{named: true}]}}\ndefaultSource: pages\n"
	save(t, settings, text)
	s := start(t, nil, "--config", settings, "--speed", "100")
	do(t, ask(t, http.MethodPost, s.url+"/publish?source=events", put("a", "1", "{}")), http.StatusOK)
	s.ask("wait", "content#a", "--version", "1", "--searchable").want(t, "wait", exitOK)
	do(t, ask(t, http.MethodPost, s.url+"/publish?source=event", put("b", "1", "{}")), http.StatusBadRequest)
}

func TestTheServerAnswersBrowsersAndPublishers(t *testing.T) {
	t.Parallel()
	s := start(t, nil, "--source", "native", "--speed", "100", "--events",
		write(t, put("a", "1", `{"title":"One tree"}`)))
	post := func(path, body string, status int, header ...string) string {
		t.Helper()
		req := ask(t, http.MethodPost, s.url+path, body)
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		return do(t, req, status)
	}
	for body, want := range map[string]int{
		put("b", "1", `{"title":"Two trees"}`) + "\n\n" + put("c", "1", `{"title":"Three"}`): 2,
		strings.ReplaceAll(put("d", "1", `{"title":"Four trees"}`), ",", ",\n"):              1,
	} {
		if got := decode[struct{ Messages int }](t, post("/publish", body, http.StatusOK)).Messages; got != want {
			t.Errorf("%d messages, want %d, of %s", got, want, body)
		}
	}
	post("/publish", `{"after_ms":-1}`, http.StatusBadRequest)
	faulty := `{"type":"doc.changed","subject":"f","data":{}}` // without a version
	if got := post("/publish", put("a", "1", "{}")+"\n"+faulty, http.StatusBadRequest); !strings.Contains(got, "message 2: ") ||
		!strings.Contains(got, "sequence") || !strings.Contains(got, "(1 messages were sent, 1 refused") {
		t.Errorf("a message without a version is refused with %s", got)
	}
	post("/publish?unchecked=true", faulty, http.StatusOK)
	post("/publish", put("e", "1", "{}"), http.StatusForbidden, "Sec-Fetch-Site", "cross-site", "Origin",
		"http://elsewhere.example")
	for _, id := range []string{"a", "b", "c", "d"} {
		s.ask("wait", "content#"+id, "--version", "1").want(t, "wait", exitOK)
	}
	for query, want := range map[string]int{"q=tree": 3, "q=tree&limit=1&collection=content&field=title": 1} {
		if found := get[struct{ Hits []dumped }](t, s.url+"/search?"+query); len(found.Hits) != want {
			t.Errorf("%s: found %+v, want %d", query, found.Hits, want)
		}
	}
	for _, wrong := range []string{"/search", "/search?q=x&limit=0", "/search?q=x&limit=many"} {
		do(t, ask(t, http.MethodGet, s.url+wrong, ""), http.StatusBadRequest)
	}
	if state := get[struct{ Report struct{ Written int } }](t, s.url+"/status"); state.Report.Written != 4 {
		t.Errorf("status %+v", state)
	}
}

// If a version comes with two contents, the order key chooses one of them. No text may call this
// one newer.
func TestAnEqualVersionWithOtherContentIsNotCalledNewer(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]string{"in one burst": "\n", "after the other": "\n" + `{"after_ms":30000}` + "\n"} {
		texts := ""
		for i := range 4 { // enough documents for both orders of two digests
			texts += put(fmt.Sprint(i), "7", fmt.Sprintf(`{"a":%d}`, i)) + between + put(fmt.Sprint(i), "7", fmt.Sprintf(`{"b":%d}`, i)) + "\n"
		}
		p := play(t, texts, "--events", "-", "-v")
		p.says(t, "the same version is committed with other content")
		if strings.Contains(p.out, "a newer version") {
			t.Errorf("%s: printed %q, want no newer version", name, p.out)
		}
	}
}
