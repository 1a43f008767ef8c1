package command

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
)

// The steps of docs/runbook/losses/sink-restored.md: the search engine is put back to an earlier
// snapshot, while the table knows better.
func TestASinkPutBackToASnapshotIsReconciledAndResynced(t *testing.T) {
	t.Parallel()
	s := putBack(t)
	want := []string{"content#a older resync", "content#gone undone reasserted", "content#new missing resync"}
	var dry []string
	for ask := true; ask; { // until what was written a moment ago is not any more: each at its own time
		dry = s.ask("reconcile", "content", "--dry-run", "-o", "json").outcomes(t)
		ask = len(dry) < len(want) && t.Context().Err() == nil
	}
	if !slices.Equal(dry, want) {
		t.Errorf("dry run: got %q, want %q", dry, want)
	}
	// A machine that is busy may answer a delete later than a hundredth of its deadline: then once more.
	a, late := s.ask("reconcile", "content"), false
	for strings.Contains(a.out, "failed      undone") && t.Context().Err() == nil {
		a, late = s.ask("reconcile", "content"), true
	}
	a.want(t, "reconcile", exitFailed, "2 documents of content differ from their rows")
	if !late && !strings.Contains(a.out, "reasserted  undone       content#gone v6") {
		t.Errorf("said %s", a.out)
	}
	s.ask("get", "content#gone").want(t, "a document that was deleted", exitMissing)
	// The same version again is a duplicate. A resync is not.
	file := write(t, put("a", "6", `{"resynced":6}`), put("new", "1", `{"resynced":1}`))
	s.ask("resync", file).want(t, "resync", exitOK)
	for _, doc := range []string{"content#a", "content#new"} {
		s.until(`{"resynced":`, "get", doc)
	}
	again := s.ask("reconcile", "content")
	for again.code == exitWrong && t.Context().Err() == nil { // what was just written: it says so
		if !strings.Contains(again.errors, "being written, were a moment ago, or wait to be; run it again") {
			t.Errorf("said %s%s", again.out, again.errors)
		}
		again = s.ask("reconcile", "content")
	}
	again.want(t, "reconcile again", exitOK)
}

func TestReconcileHasAnExitCodeForWhatIsBeingWritten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		waiting, remaining, code int
	}{{0, 0, exitOK}, {2, 0, exitWrong}, {2, 1, exitFailed}} {
		var out bytes.Buffer
		a := newApp(strings.NewReader(""), &out, &out)
		a.target.output = "table"
		err := a.reconcileEnd(operate.ReconcileResult{
			Report: reconcile.Report{Waiting: tt.waiting}, Remaining: tt.remaining,
		})
		if code := codeOf(err); code != tt.code {
			t.Errorf("%d are being written, %d remain: exit %d (%v), want %d", tt.waiting, tt.remaining, code, err, tt.code)
		}
	}
}

// outcomes are the lines of reconcile -o json, but the last one, which counts.
func (a answer) outcomes(t *testing.T) (out []string) {
	t.Helper()
	for line := range strings.Lines(a.out) {
		l := decode[operate.ReconcileLine](t, line)
		if l.Key != "" {
			out = append(out, string(l.Key)+" "+l.Difference+" "+l.Outcome)
		}
	}
	slices.Sort(out)
	return out
}

// putBack is a stack whose index was put back to a snapshot, while its rows are those of today: the
// index has an older a, has gone again, and lacks new.
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

func TestReconcileRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := start(t, nil, "--events", write(t, put("a", "1", "{}")), "--speed", "10")
	s.ask("reconcile", "contents").want(t, "unknown", exitMissing, "no such collection")
	s.ask("reconcile", "content").want(t, "nothing differs", exitOK, "documents in the sink")
}
