// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/shard"
)

// last is the last line of index check -o json.
func (a answer) last(t *testing.T) verify.Result {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(a.out), "\n")
	return decode[verify.Result](t, lines[len(lines)-1])
}

// verify runs a verification whose answer is JSON.
func (s *stack) verify(f verifyFlags, api operate.API) answer {
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	a.streams.output, a.target.dev = "json", s.url
	f.Collection = "content"
	err := failed(runVerify(s.t.Context(), &a.streams, a.target.aws, api, f))
	if err != nil {
		fmt.Fprintln(&errs, err)
	}
	return answer{codeOf(err), out.String(), errs.String()}
}

// The index is an older snapshot, and the source has changed a document without a new version. The
// check finds all differences, and the repair removes all of them.
func TestVerifyFindsDriftAndRepairsItToTheLastDocument(t *testing.T) {
	t.Parallel()
	s := putBack(t, put("changed", "5", `{"v":"by hand"}`))
	export := write(t, put("a", "6", `{"v":6}`), put("new", "1", "{}"), put("same", "5", "{}"),
		put("changed", "5", `{"v":5}`), put("other", "1", "{}"), put("lost", "1", "{}"))
	ask := func(args ...string) answer { return s.ask(append([]string{"index", "check", "content"}, args...)...) }

	a := ask("-o", "json")
	want := "map[missing:1 older:1 undone:1]"
	if r := a.last(t); a.code != exitWrong || fmt.Sprint(r.Drift) != want || r.Remaining != 3 {
		t.Errorf("without an export: %+v: %s%s", r, a.out, a.errors)
	}
	a = ask("--source", export, "-o", "json")
	want = "map[changed:1 missing:2 older:1 undone:1]"
	if r := a.last(t); a.code != exitWrong || fmt.Sprint(r.Drift) != want || r.Remaining != 5 {
		t.Errorf("with an export: %+v: %s%s", r, a.out, a.errors)
	}
	s.ask("get", "content#gone").want(t, "nothing was changed", exitOK)
	a = s.ask("index", "repair", "content", "--source", export, "-o", "json")
	if r := a.last(t); a.code != exitOK || fmt.Sprint(r.Drift) != want || r.Remaining != 0 || r.Run == "" ||
		fmt.Sprint(r.Repaired) != "map[reasserted:1 resent:4]" {
		t.Errorf("repair: %+v: %s%s", r, a.out, a.errors)
	}
	s.ask("get", "content#gone").want(t, "a document that was deleted", exitMissing)
	for doc, says := range map[string]string{"a": `{"v":6}`, "changed": `{"v":5}`, "new": "{}", "lost": "{}"} {
		s.ask("get", "content#"+doc).want(t, doc, exitOK, says)
	}
	ask("--source", export).want(t, "again", exitOK, "no drift")
	ask().want(t, "again without an export", exitOK, "no drift")
	ask("--sample", "3").want(t, "a sample", exitOK, "no drift")
	s.ask("jobs").want(t, "jobs", exitOK, "verify-content", "done")
}

// A document that the source no longer has is removed if the export is complete and lull wrote the
// document before it. A newer document stays, and nothing is removed without a confirmation.
func TestVerifyRemovesOrphans(t *testing.T) {
	t.Parallel()
	settings := write(t, "debounce: {minInterval: 0s}")
	s := settled(t, "--events", write(t, put("a", "1", "{}"), put("lost-delete", "3", "{}"), put("new", "1", "{}")),
		"--speed", "10", "--config", settings)
	export := write(t, put("a", "1", "{}"), put("new", "1", "{}"))
	ask := func(args ...string) answer {
		return s.ask(append([]string{"index", "check", "content", "--source", export}, args...)...)
	}
	ask().want(t, "an export that may be a part", exitOK, "no drift")
	early := time.Now().Add(-time.Hour).Format(time.RFC3339)
	ask("--complete-at", early).want(t, "an export from before the document", exitOK, "no drift")
	ask("--complete-at", "yesterday").want(t, "not a time", exitUsage, "--complete-at yesterday")
	// The clock of the stack is ahead of this clock. By it, the export was made later.
	later := exported(export)
	later.may.yes = true
	run := func(f verifyFlags) answer {
		f.wholeAt, f.CompleteAt = "later", time.Now().Add(24*time.Hour)
		return s.verify(f, (&operate.Client{Base: s.url, HTTP: http.DefaultClient}).API())
	}
	a := run(later)
	if r := a.last(t); a.code != exitWrong || fmt.Sprint(r.Drift) != "map[orphan:1]" ||
		!strings.Contains(a.out, `"key":"content#lost-delete","difference":"orphan","outcome":"found"`) {
		t.Errorf("dry run: %+v", a)
	}
	s.ask("get", "content#lost-delete").want(t, "nothing was changed", exitOK)
	broken := later
	broken.Export, broken.Repair = write(t, put("a", "1", "{}"), "{"), true
	if a := run(broken); a.code != exitWrong || !strings.Contains(a.errors, "1 events of the export cannot be read") {
		t.Errorf("an export that cannot be read: %+v", a)
	}
	later.Repair = true
	a = run(later)
	if r := a.last(t); a.code != exitOK || fmt.Sprint(r.Repaired) != "map[removed:1]" || r.Remaining != 0 {
		t.Errorf("repair: %+v", a)
	}
	s.ask("get", "content#lost-delete").want(t, "the orphan", exitMissing)
	s.ask("get", "content#a").want(t, "another document", exitOK)
	s.publish(put("lost-delete", "3", "{}"), put("lost-delete", "4", `{"back":true}`))
	s.ask("wait", "content#lost-delete", "--version", "4").want(t, "a newer version", exitOK)
	s.ask("get", "content#lost-delete").want(t, "the newer version", exitOK, `{"back":true}`)
	// A pipe cannot answer a question.
	noYes := s.ask("index", "repair", "content", "--source", export, "--complete-at", early)
	noYes.want(t, "without a terminal", exitUsage, "give --yes")
}

// exported returns the flags of a verification with an export.
func exported(file string) verifyFlags {
	return verifyFlags{Order: verify.Order{Export: file}, patience: time.Minute}
}

// failing is a stack that stops answering after some requests.
type failing struct {
	operate.API

	checks, walks int
}

var errAway = errors.New("the stack went away")

func (f *failing) Check(ctx context.Context, o operate.CheckOrder) (operate.Checked, error) {
	if f.checks--; f.checks < 0 {
		return operate.Checked{}, errAway
	}
	return f.API.Check(ctx, o)
}

func (f *failing) Reconcile(ctx context.Context, o operate.ReconcileOrder) (operate.ReconcilePage, error) {
	if f.walks--; f.walks < 0 {
		return operate.ReconcilePage{}, errAway
	}
	return f.API.Reconcile(ctx, o)
}

func (f *failing) Publish(ctx context.Context, p operate.Publication) (operate.Published, error) {
	if f.checks--; f.checks < 0 {
		return operate.Published{}, errAway
	}
	return f.API.Publish(ctx, p)
}

// If a verification stops at any place, the next run completes it. It counts the same as a run
// that never stopped.
func TestVerifyContinuesItsJob(t *testing.T) {
	t.Parallel()
	var events, export []string
	for i := range 250 {
		events = append(events, put(fmt.Sprintf("d%03d", i), "5", `{"v":5}`))
		export = append(export, put(fmt.Sprintf("d%03d", i), "5", fmt.Sprintf(`{"v":%d}`, 5+i%25/24)))
	}
	s := settled(t, "--events", write(t, events...), "--speed", "10")
	f := exported(write(t, export...))
	run := func(f verifyFlags, checks, walks int) answer {
		api := (&operate.Client{Base: s.url, HTTP: http.DefaultClient}).API()
		return s.verify(f, operatetest.API(api, &failing{api, checks, walks}))
	}
	a := run(f, 3, 100) // the first request checks the order
	if a.code != exitFailed || !strings.Contains(a.errors, errAway.Error()) {
		t.Fatalf("stopped: %+v", a)
	}
	other := f
	other.Repair = true
	if a := run(other, 100, 100); a.code != exitUsage || !strings.Contains(a.errors, "it began with") {
		t.Errorf("another verification: %+v", a)
	}
	if err := os.Rename(f.Export, f.Export+".away"); err != nil {
		t.Fatal(err)
	}
	if a := run(f, 100, 100); a.code != exitUsage || !strings.Contains(a.errors, "no such file") {
		t.Errorf("without the export: %+v", a)
	}
	if err := os.Rename(f.Export+".away", f.Export); err != nil {
		t.Fatal(err)
	}
	a = run(f, 100, 0) // the export is compared, but the walk fails
	if a.code != exitFailed {
		t.Fatalf("stopped: %+v", a)
	}
	r := run(f, 100, 100)
	if got := r.last(t); r.code != exitWrong || got.Drift["changed"] != 10 || got.Remaining != 10 || got.Rows != 250 ||
		got.Documents != 250 || got.Export["same"] != 240 {
		t.Errorf("%+v %s", got, r.errors)
	}
	// A repair that stops in the middle and continues is still one resync run.
	f.Repair = true
	first := run(f, 4, 100)
	a = run(f, 100, 100)
	got := a.last(t)
	if first.code != exitFailed || a.code != exitOK || got.Repaired["resent"] != 10 || got.Remaining != 0 ||
		sum(got.Export) != 250 {
		t.Errorf("repair in two: %+v, then %+v", first, a)
	}
}

func TestVerifyRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", write(t, put("a", "1", "{}")), "--speed", "10")
	other := write(t, strings.Replace(put("a", "1", "{}"), `"subject"`, `"collection":"other","subject"`, 1))
	for name, tt := range map[string]struct {
		args []string
		code exitCode
		says string
	}{
		"no collection": {nil, exitUsage, "lull index check COLLECTION"},
		"not a name":    {[]string{"con#tent"}, exitUsage, "COLLECTION: "},
		"unknown":       {[]string{"contents"}, exitMissing, "no such collection"},
		"a rate":        {[]string{"content", "--rate", "-1"}, exitUsage, "--rate -1"},
		"a sample":      {[]string{"content", "--sample", "-1"}, exitUsage, "--sample -1"},
		"a sample of an export": {
			[]string{"content", "--sample", "1", "--source", other}, exitUsage, "--sample and --source",
		},
		"a source without a file": {[]string{"content", "--as", "native"}, exitUsage, "only with --source"},
		"a source that is not there": {
			[]string{"content", "--source", other, "--as", "bogus"}, exitUsage, "--as bogus: no such source: want native",
		},
		"no such file":          {[]string{"content", "--source", other + "x"}, exitUsage, "no such file"},
		"of another collection": {[]string{"content", "--source", other}, exitUsage, "no event of collection content"},
		"an empty export":       {[]string{"content", "--source", write(t)}, exitUsage, "it is empty"},
		"another sink": {
			[]string{"content", "--sink", "far"}, exitUsage, "sink far: collection content is in sink search",
		},
	} {
		s.ask(append([]string{"index", "check"}, tt.args...)...).want(t, name, tt.code, tt.says)
	}
	s.ask("jobs").want(t, "the job of a collection that does not exist", exitOK, "failed",
		"no such collection")
	noise := []string{put("a", "1", "{}")}
	for range 30 {
		noise = append(noise, `{"type":"doc.changed"}`)
	}
	a := s.ask("index", "check", "content", "--source", write(t, noise...))
	a.want(t, "events that cannot be compared", exitWrong, "30 events of the export could not be compared, the first 20")
	if n := strings.Count(a.errors, "not compared: message"); n != 20 {
		t.Errorf("%d events are named, want 20", n)
	}
}

// Each sink of a collection has its own verification. Two of them may run at the same time.
func TestAVerificationIsOfItsSink(t *testing.T) {
	t.Parallel()
	settings := write(t, "sinks: {first: {kind: bleve}, second: {kind: memory}}", "defaultSink: first",
		"collections: {content: {sinks: [first, second]}, empty: {sinks: [first, second]}}", "defaultCollection: content")
	s := settled(t, "--config", settings, "--events", write(t, put("a", "1", "{}")), "--speed", "10")
	s.ask("index", "check", "empty", "--sink", "second").want(t, "nothing", exitOK, "no drift")
	s.ask("index", "check", "content", "--sink", "second").want(t, "one document", exitOK, "1 documents in the sink, 1 rows")
	s.ask("jobs").want(t, "jobs", exitOK, "verify-empty@second", "verify-content@second")
}

func TestVerifySaysWhatSearchesDoNotFind(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	printVerified(&out, verify.Result{Unsearchable: &operate.Unsearchable{
		Documents: 12, Fields: []string{"price", "v"}, Some: []shard.DocID{"content#a", "content#b\x1b[31m"},
	}})
	want := "12 documents have values that searches do not find, because the mapping does not accept them: " +
		"fields price, v, such as in content#a, content#b"
	if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "\x1b") {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// putBack returns a stack whose index is an older snapshot, but whose rows are up to date. In the
// index the document a is older, the deleted document gone is back, and the document new is
// missing.
func putBack(t *testing.T, more ...string) *stack {
	t.Helper()
	folder := t.TempDir()
	data, snapshot := filepath.Join(folder, "data"), filepath.Join(folder, "snapshot")
	before := append([]string{put("a", "5", `{"v":5}`), put("gone", "5", "{}"), put("same", "5", "{}")}, more...)
	play(t, strings.Join(before, "\n"), "--events", "-", "--data", data)
	copyFolder(t, data, snapshot)
	play(t, strings.Join([]string{put("a", "6", `{"v":6}`), del("gone", "6"), put("new", "1", "{}")}, "\n"),
		"--events", "-", "--data", data)
	rows := filepath.Join(data, "state.db")
	today := contents(t, rows)
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, snapshot, data)
	save(t, rows, today)
	return settled(t, "--events", write(t, put("other", "1", "{}")), "--data", data, "--speed", "10")
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
