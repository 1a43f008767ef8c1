package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
)

// last is the last line of verify -o json.
func (a answer) last(t *testing.T) verified {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(a.out), "\n")
	return decode[verified](t, lines[len(lines)-1])
}

// verify runs a verification whose answer is JSON.
func (s *stack) verify(f verifyFlags, api operate.API) answer {
	var out, errs bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &errs)
	a.target.output, a.target.dev = "json", s.url
	err := (&verification{app: a, collection: "content", verifyFlags: f, api: api}).run(s.t.Context())
	if err != nil {
		fmt.Fprintln(&errs, err)
	}
	return answer{codeOf(err), out.String(), errs.String()}
}

// The index is put back to what it was before a few changes, and the source has changed a document
// without a new version: all of it is found, and repaired to the last one.
func TestVerifyFindsDriftAndRepairsItToTheLastDocument(t *testing.T) {
	t.Parallel()
	s := putBack(t, put("changed", "5", `{"v":"by hand"}`))
	export := write(t, put("a", "6", `{"v":6}`), put("new", "1", "{}"), put("same", "5", "{}"),
		put("changed", "5", `{"v":5}`), put("other", "1", "{}"), put("lost", "1", "{}"))
	at := filepath.Join(t.TempDir(), "verify.checkpoint")
	verify := func(args ...string) answer {
		return s.ask(append([]string{"verify", "content", "--checkpoint", at}, args...)...)
	}

	a := verify("-o", "json")
	want := "map[missing:1 older:1 undone:1]"
	if r := a.last(t); a.code != exitWrong || fmt.Sprint(r.Drift) != want || r.Remaining != 3 {
		t.Errorf("without an export: %+v: %s%s", r, a.out, a.errors)
	}
	a = verify("--source", export, "-o", "json")
	want = "map[changed:1 missing:2 older:1 undone:1]"
	if r := a.last(t); a.code != exitWrong || fmt.Sprint(r.Drift) != want || r.Remaining != 5 {
		t.Errorf("with an export: %+v: %s%s", r, a.out, a.errors)
	}
	s.ask("get", "content#gone").want(t, "nothing was changed", exitOK)
	a = verify("--source", export, "--repair", "-o", "json")
	if r := a.last(t); a.code != exitOK || fmt.Sprint(r.Drift) != want || r.Remaining != 0 || r.Run == "" ||
		fmt.Sprint(r.Repaired) != "map[reasserted:1 resent:4]" {
		t.Errorf("repair: %+v: %s%s", r, a.out, a.errors)
	}
	s.ask("get", "content#gone").want(t, "a document that was deleted", exitMissing)
	for doc, says := range map[string]string{"a": `{"v":6}`, "changed": `{"v":5}`, "new": "{}", "lost": "{}"} {
		s.ask("get", "content#"+doc).want(t, doc, exitOK, says)
	}
	verify("--source", export).want(t, "again", exitOK, "no drift")
	verify().want(t, "again without an export", exitOK, "no drift")
	verify("--sample", "3").want(t, "a sample", exitOK, "no drift")
	absent(t, at)
}

// What the source does not have any more is removed, if the export says that it is complete and
// lull wrote it before. Nothing newer is touched, and nothing is removed unasked.
func TestVerifyRemovesOrphans(t *testing.T) {
	t.Parallel()
	settings := write(t, "debounce: {minInterval: 0s}")
	s := settled(t, "--events", write(t, put("a", "1", "{}"), put("lost-delete", "3", "{}"), put("new", "1", "{}")),
		"--speed", "10", "--config", settings)
	export, at := write(t, put("a", "1", "{}"), put("new", "1", "{}")), filepath.Join(t.TempDir(), "cp")
	verify := func(args ...string) answer {
		return s.ask(append([]string{"verify", "content", "--checkpoint", at, "--source", export}, args...)...)
	}
	verify().want(t, "an export that may be a part", exitOK, "no drift")
	early := time.Now().Add(-time.Hour).Format(time.RFC3339)
	verify("--complete-at", early).want(t, "it was made before the document was written", exitOK, "no drift")
	verify("--complete-at", "yesterday").want(t, "not a time", exitUsage, "--complete-at yesterday")
	// The stack's clock runs ahead of this one: to it the export is of a later time.
	later := verifyFlags{export: export, checkpoint: at, patience: time.Minute, may: consent{yes: true}}
	run := func(f verifyFlags) answer {
		f.wholeAt, f.completeAt = "later", time.Now().Add(24*time.Hour)
		return s.verify(f, &operate.Client{Base: s.url, HTTP: http.DefaultClient})
	}
	a := run(later)
	if r := a.last(t); a.code != exitWrong || fmt.Sprint(r.Drift) != "map[orphan:1]" ||
		!strings.Contains(a.out, `"key":"content#lost-delete","difference":"orphan","outcome":"found"`) {
		t.Errorf("dry run: %+v", a)
	}
	s.ask("get", "content#lost-delete").want(t, "nothing was changed", exitOK)
	broken := later
	broken.export, broken.repair = write(t, put("a", "1", "{}"), "{"), true
	if a := run(broken); a.code != exitFailed || !strings.Contains(a.errors, "1 events of the export cannot be read") {
		t.Errorf("an export that cannot be read: %+v", a)
	}
	later.repair = true
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
	noYes := s.ask("verify", "content", "--checkpoint", at, "--source", export, "--complete-at", early, "--repair")
	noYes.want(t, "nobody to ask", exitUsage, "give --yes")
}

// failing is a stack that stops answering after some questions.
type failing struct {
	operate.API

	checks int
}

var errAway = errors.New("the stack went away")

func (f *failing) Check(ctx context.Context, o operate.CheckOrder) (operate.Checked, error) {
	if f.checks--; f.checks < 0 {
		return operate.Checked{}, errAway
	}
	return f.API.Check(ctx, o)
}

func (f *failing) Reconcile(ctx context.Context, o operate.ReconcileOrder) (operate.ReconcileResult, error) {
	if f.checks--; f.checks < 0 {
		return operate.ReconcileResult{}, errAway
	}
	return f.API.Reconcile(ctx, o)
}

func (f *failing) Publish(ctx context.Context, p operate.Publication) (operate.Published, error) {
	if f.checks--; f.checks < 0 {
		return operate.Published{}, errAway
	}
	return f.API.Publish(ctx, p)
}

// Wherever it stops, the run after it completes it, and counts as one that never stopped.
func TestVerifyGoesOnFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	var events, export []string
	for i := range 250 {
		events = append(events, put(fmt.Sprintf("d%03d", i), "5", `{"v":5}`))
		export = append(export, put(fmt.Sprintf("d%03d", i), "5", fmt.Sprintf(`{"v":%d}`, 5+i%25/24)))
	}
	s := settled(t, "--events", write(t, events...), "--speed", "10")
	file, at := write(t, export...), filepath.Join(t.TempDir(), "cp")
	verify := func(f verifyFlags, checks int) answer {
		f.checkpoint, f.patience = at, time.Minute
		return s.verify(f, &failing{&operate.Client{Base: s.url, HTTP: http.DefaultClient}, checks})
	}
	f := verifyFlags{export: file}
	for stop := range 4 {
		a := verify(f, stop)
		if a.code != exitFailed || !strings.Contains(a.errors, "goes on from "+at) {
			t.Fatalf("stopped after %d: %+v", stop, a)
		}
		other := f
		other.repair = true
		if a := verify(other, 100); a.code != exitUsage || !strings.Contains(a.errors, "is of another verification") {
			t.Errorf("another verification: %+v", a)
		}
		if stop < 3 { // the export is still to be read: without it nothing is lost
			if err := os.Rename(file, file+".away"); err != nil {
				t.Fatal(err)
			}
			if a := verify(f, 100); a.code != exitUsage || !strings.Contains(a.errors, "no such file") {
				t.Errorf("without the export: %+v", a)
			}
			if err := os.Rename(file+".away", file); err != nil {
				t.Fatal(err)
			}
			contents(t, at) // the checkpoint is still there
		}
		r := verify(f, 100)
		if got := r.last(t); r.code != exitWrong || got.Drift["changed"] != 10 || got.Remaining != 10 || got.Rows != 250 ||
			got.Documents != 250 || got.Export["same"] != 240 {
			t.Errorf("stopped after %d: %+v %s", stop, got, r.errors)
		}
	}
	// A repair that stops in the middle and continues is still one resync run.
	f.repair = true
	first := verify(f, 3)
	a := verify(f, 100)
	got := a.last(t)
	if first.code != exitFailed || a.code != exitOK || got.Repaired["resent"] != 10 || got.Remaining != 0 ||
		sum(got.Export) != 250 {
		t.Errorf("repair in two: %+v, then %+v", first, a)
	}
}

// Earlier code kept messages as sent whose sending had failed: they lie behind what the checkpoint
// says is done.
func TestVerifySendsWhatAnEarlierBuildFailedToSend(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", write(t, put("a", "5", `{"v":5}`)), "--speed", "10")
	f := verifyFlags{
		export: write(t, put("a", "5", `{"v":6}`)), checkpoint: filepath.Join(t.TempDir(), "cp"), repair: true,
		patience: 10 * time.Second,
	}
	client, look := &operate.Client{Base: s.url, HTTP: http.DefaultClient}, f
	look.repair = false
	s.verify(look, client) // until it is not in motion any more
	s.verify(f, &failing{client, 1})
	change{`"total":`, `"again":{"0":true},"told":{"content#a":true},"total":`}.in(t, f.checkpoint)
	if a := s.verify(f, client); a.code != exitOK || a.last(t).Remaining != 0 {
		t.Errorf("got %+v, want the message sent", a)
	}
}

func TestARepairSendsAtMost200ASecond(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]rate.Limit{0: 200, 20: 20, 5000: 200} {
		v := &verification{app: newApp(nil, io.Discard, io.Discard), verifyFlags: verifyFlags{rate: most, sample: 1}}
		if err := v.begin(); err != nil || v.repairs.Limit() != want {
			t.Errorf("--rate %g: got %v, %v, want %v", most, v.repairs.Limit(), err, want)
		}
	}
}

func TestADamagedCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	for fields, says := range map[string]string{
		`"run":"r"`: "", `"run":""`: "is broken",
		`"run":"r","messages":-1`: "is broken", `"run":"r","bytes":-1`: "is broken",
		`"run":"r","look":null`: "is broken", `"run":"r","again":null`: "is broken", `"run":"r","told":null`: "is broken",
		`"run":"r","total":{"drift":null}`: "is broken", `"run":"r","total":{"repaired":null}`: "is broken",
		`"run":"r","total":{"export":null}`: "is broken",
	} {
		file := write(t, `{"order":{"collection":"content","stack":"http://127.0.0.1:7070","export":"e"},`+fields+"}")
		v := &verification{app: newApp(nil, io.Discard, io.Discard), collection: "content"}
		v.checkpoint, v.export = file, "e"
		if err := v.begin(); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", fields, err, says)
		}
	}
}

func TestVerifyRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", write(t, put("a", "1", "{}")), "--speed", "10")
	at := filepath.Join(t.TempDir(), "cp")
	other := write(t, strings.Replace(put("a", "1", "{}"), `"subject"`, `"collection":"other","subject"`, 1))
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no collection": {nil, exitUsage, "lull verify COLLECTION"},
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
		"no such file":          {[]string{"content", "--source", at + "x"}, exitUsage, "no such file"},
		"of another collection": {[]string{"content", "--source", other}, exitUsage, "no event of collection content"},
		"an empty export":       {[]string{"content", "--source", write(t)}, exitUsage, "it is empty"},
		"another sink": {
			[]string{"content", "--sink", "far"}, exitUsage, "sink far: collection content is in sink search",
		},
		"a checkpoint of a folder": {[]string{"content", "--checkpoint", t.TempDir()}, exitUsage, "checkpoint"},
	} {
		args := append([]string{"verify"}, tt.args...)
		if !strings.Contains(strings.Join(args, " "), "--checkpoint") {
			args = append(args, "--checkpoint", at)
		}
		s.ask(args...).want(t, name, tt.code, tt.says)
	}
	noise := []string{put("a", "1", "{}")}
	for range 30 {
		noise = append(noise, `{"type":"doc.changed"}`)
	}
	a := s.ask("verify", "content", "--checkpoint", at, "--source", write(t, noise...))
	a.want(t, "events that cannot be compared", exitWrong, "30 events of the export could not be compared, the first 20")
	if n := strings.Count(a.errors, "not compared: message"); n != 20 {
		t.Errorf("%d events are named, want 20", n)
	}
	broken := write(t, `{"order":`)
	s.ask("verify", "content", "--checkpoint", broken).want(t, "a broken checkpoint", exitUsage, "is broken (", "remove it")
}

// Two sinks of a collection are verified apart, perhaps at the same time.
func TestTheCheckpointOfAVerificationIsOfItsSink(t *testing.T) {
	t.Parallel()
	for sink, want := range map[string]checkpoint{
		"": "lull-verify-content.checkpoint", "remote": "lull-verify-content@remote.checkpoint",
	} {
		v := &verification{app: newApp(nil, io.Discard, io.Discard), collection: "content"}
		v.sink = sink
		if err := v.begin(); err != nil || v.kept != want {
			t.Errorf("sink %q: %s, %v, want %s", sink, v.kept, err, want)
		}
	}
}

// What is in motion in one of several sinks is looked at in that one again.
func TestVerifyLooksAgainInItsSink(t *testing.T) {
	t.Parallel()
	settings := write(t, "sinks: {first: {kind: bleve}, second: {kind: memory}}", "defaultSink: first",
		"collections: {content: {sinks: [first, second]}, empty: {sinks: [first, second]}}")
	s := settled(t, "--config", settings, "--events", write(t, put("a", "1", "{}")), "--speed", "10")
	s.ask("verify", "empty", "--sink", "second", "--checkpoint", filepath.Join(t.TempDir(), "cp")).
		want(t, "nothing", exitOK, "no drift")
	v := &verification{
		app: newApp(nil, io.Discard, io.Discard), collection: "content", verifyFlags: verifyFlags{sink: "second"},
		api: &operate.Client{Base: s.url, HTTP: http.DefaultClient},
	}
	v.cp.Look = map[shard.DocID]bool{"content@second#gone": true}
	if err := v.lookAgain(t.Context()); err != nil || len(v.cp.Look) != 0 {
		t.Errorf("got %v, still in motion %v", err, v.cp.Look)
	}
}

func TestVerifySaysWhatSearchesDoNotFind(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	verified{Unsearchable: &operate.Unsearchable{
		Documents: 12, Fields: []string{"price", "v"}, Some: []shard.DocID{"content#a", "content#b\x1b[31m"},
	}}.print(&out)
	want := "12 documents have values that searches do not find, because the mapping does not take them: " +
		"fields price, v, such as in content#a, content#b"
	if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "\x1b") {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
