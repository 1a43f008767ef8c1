// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/local/ledger"
)

// asProgram is a variable with which the test binary runs as the program. Tests that need a
// separate process use it, for example to kill the process.
const asProgram = "LULL_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		signal.Ignore(syscall.SIGXFSZ) // the signal for a file that would become too large
		Main()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}

// answer is the output of a command.
type answer struct {
	code        exitCode
	out, errors string
}

// codeOf returns the exit code for a command's error.
func codeOf(err error) exitCode {
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	}
	return exitFailed
}

// lull runs a command to its end.
func lull(t *testing.T, in string, args ...string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	code := newApp(strings.NewReader(in), &out, &errs).run(t.Context(), args)
	c, _, err := tree().Find(args)
	if err == nil && !c.HasSubCommands() && c.Name() != "help" && !slices.Contains(endsOf(c), code) {
		t.Errorf("%v: exit %d, which the help does not name", args, code)
	}
	return answer{code, out.String(), errs.String()}
}

// want checks the exit code, and that the answer contains these texts. They are in standard output
// if the code is 0, and in standard error otherwise.
func (a answer) want(t *testing.T, name string, code exitCode, says ...string) {
	t.Helper()
	text := a.errors
	if code == exitOK {
		text = a.out
	}
	if a.code != code {
		t.Errorf("%s: exit %d, want %d: %s%s", name, a.code, code, a.out, a.errors)
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			t.Errorf("%s: said %q, want %q in it", name, text, s)
		}
	}
}

// parsed decodes an answer with -o json.
func parsed[A any](t *testing.T, a answer) A {
	t.Helper()
	return decode[A](t, a.out)
}

// decode reads JSON.
func decode[A any](t *testing.T, text string) (v A) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}

// screen is an output. A test can wait until it contains a pattern.
type screen struct {
	mu    sync.Mutex
	text  strings.Builder
	more  chan struct{} // closed at the next write
	ended bool
}

func newScreen() *screen { return &screen{more: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	close(s.more)
	s.more = make(chan struct{})
	return len(p), nil
}

// end says that nothing more will be written.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	close(s.more)
	s.more = make(chan struct{})
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits for the pattern and returns its first group.
func (s *screen) await(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for {
		s.mu.Lock()
		text, more, ended := s.text.String(), s.more, s.ended
		s.mu.Unlock()
		if m := re.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		if ended {
			t.Fatalf("the output ended without %q:\n%s", pattern, text)
		}
		<-more
	}
}

// stack is a `lull dev` that runs until the end of the test.
type stack struct {
	t       *testing.T
	out     *screen
	url     string
	stopped func() answer
}

// start runs `lull dev` and waits until it answers. The test's end stops it.
func start(t *testing.T, in io.Reader, args ...string) *stack {
	t.Helper()
	s := &stack{t: t, out: newScreen()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var errs bytes.Buffer
	ended := make(chan exitCode, 1)
	go func() {
		ended <- newApp(in, s.out, &errs).run(ctx, append([]string{"dev", "--listen", "127.0.0.1:0"}, args...))
		s.out.end()
	}()
	s.stopped = sync.OnceValue(func() answer {
		cancel()
		return answer{<-ended, s.out.String(), errs.String()}
	})
	t.Cleanup(func() { s.stopped() })
	s.url = s.out.await(t, `search on (http://[^/]+)/`)
	return s
}

// until runs a command again and again, until its answer contains a text.
func (s *stack) until(says string, args ...string) answer {
	s.t.Helper()
	a := s.ask(args...)
	for !strings.Contains(a.out, says) && s.t.Context().Err() == nil {
		a = s.ask(args...)
	}
	return a
}

// settled runs `lull dev` until nothing of its events waits.
func settled(t *testing.T, args ...string) *stack {
	t.Helper()
	s := start(t, nil, args...)
	s.out.await(t, "everything has settled")
	return s
}

// ask runs a command against the stack.
func (s *stack) ask(args ...string) answer {
	s.t.Helper()
	return lull(s.t, "", append(args, "--dev", s.url)...)
}

// publish sends events through `lull publish`.
func (s *stack) publish(events ...string) {
	s.t.Helper()
	lull(s.t, strings.Join(events, "\n"), "publish", "--dev", s.url).want(s.t, "publish", exitOK)
}

func put(id, version, data string) string {
	return `{"type":"doc.changed","subject":"` + id + `","sequence":"` + version + `","data":` + data + `}`
}

func del(id, version string) string {
	return `{"type":"doc.deleted","subject":"` + id + `","sequence":"` + version + `"}`
}

// write makes a file with these lines, and returns its path.
func write(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	save(t, path, strings.Join(lines, "\n")+"\n")
	return path
}

// save writes a file, and the folders above it.
func save(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// contents returns the content of a file.
func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// absent checks that a file does not exist.
func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file %s exists: %v", path, err)
	}
}

// played is the result of a run that ended by itself.
type played struct {
	answer
	report ledger.Report
	dump   []dumped
}

type dumped struct {
	ID         string          `json:"id"`
	Collection string          `json:"collection"`
	Version    string          `json:"version"`
	Document   json.RawMessage `json:"document"`
}

// play runs `lull dev` until it is idle. Waits pass fast.
func play(t *testing.T, in string, args ...string) played {
	t.Helper()
	dir := t.TempDir()
	report, dump := filepath.Join(dir, "report.json"), filepath.Join(dir, "dump.ndjson")
	args = append([]string{"dev", "--exit-when-idle", "--report", report, "--dump", dump}, args...)
	if !slices.Contains(args, "--speed") {
		args = append(args, "--speed", "200")
	}
	p := played{answer: lull(t, in, args...)}
	if p.code != exitOK && p.code != exitRefused {
		t.Fatalf("exit %d: %s%s", p.code, p.out, p.errors)
	}
	p.report = decode[ledger.Report](t, contents(t, report))
	if err := p.report.Check(); err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(contents(t, dump)) {
		d := decode[dumped](t, line)
		p.dump = append(p.dump, d)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("report and dump left %v, error %v", left, err)
	}
	return p
}

// versions returns the versions of the dumped documents, by key.
func (p played) versions() map[string]string {
	out := map[string]string{}
	for _, d := range p.dump {
		out[d.Collection+"#"+d.ID] = d.Version
	}
	return out
}

// launch starts a process, and returns its output.
func launch(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	out := newScreen()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return out
}

// interrupt sends the signal of Ctrl-C to a process.
func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// away returns an address at which nothing answers.
func away() string {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.Listener.Addr().String()
}

// program returns `lull` as a separate process.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}
