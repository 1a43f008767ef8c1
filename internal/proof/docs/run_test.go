// SPDX-License-Identifier: Apache-2.0

//go:build unix

package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/proof/tree"
)

// deadline is the longest time that a block may take. Most blocks wait for one or two quiet
// windows.
const deadline = 2 * time.Minute

// wrapper is the program `lull` for the pages. Commands that ask a stack then ask the stack of the
// test.
const wrapper = `#!/bin/bash
case "$1 $*" in
*--dev*|*--aws*|*--help*) ;;
dev*) set -- "$@" --listen "$ADDRESS" ;;
publish*|get*|wait*|explain*|status*|doctor*|dead*|cancel*|reset*|rescue*|resync*|verify*|list*|pause*|resume*)
  set -- "$@" --dev "http://$ADDRESS" ;;
esac
exec "$PROGRAM" "$@"
`

// TestWhatPagesShowRuns runs every block that can run on this machine. The test runs the blocks of
// a page from the first to the last, as a reader would.
func TestWhatPagesShowRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-docs runs the pages")
	}
	program := filepath.Join(t.TempDir(), "lull")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/lull")
	build.Dir = tree.Root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build lull: %v: %s", err, out)
	}
	all, _ := pages(t)
	for _, p := range all {
		if !p.runs() {
			continue
		}
		t.Run(strings.ReplaceAll(p.Name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			newReader(t, program).read(p)
		})
	}
}

func (p Page) runs() bool {
	for _, b := range p.Blocks {
		if b.Lang == "sh" && (b.Class == "run" || b.Class == "dev") {
			return true
		}
	}
	return false
}

// reader follows a page in its own folder and with its own address.
type reader struct {
	*testing.T
	folder  string
	address string
	env     []string

	server *exec.Cmd // the `lull dev` that is running
	said   *said     // what the latest block printed
	talks  bool      // whether the latest block started the server
}

func newReader(t *testing.T, program string) *reader {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{T: t, folder: t.TempDir(), address: l.Addr().String(), said: newSaid()}
	bin := t.TempDir()
	err = l.Close()
	for name, text := range map[string]string{"lull": wrapper, "make": "#!/bin/sh\nexec lull \"$@\"\n"} { // make dev
		err = errors.Join(err, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	r.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + r.folder, "PROGRAM=" + program, "ADDRESS=" + r.address,
	}
	t.Cleanup(r.stop)
	return r
}

// read runs the blocks of a page in order.
func (r *reader) read(p Page) {
	for _, b := range p.Blocks {
		if name := filepath.Join(r.folder, b.Options["as"]); name != r.folder {
			err := os.MkdirAll(filepath.Dir(name), 0o755)
			if err = errors.Join(err, os.WriteFile(name, []byte(b.Text), 0o600)); err != nil {
				r.Fatal(err)
			}
		}
		switch b.Lang + " " + b.Class {
		case "sh run":
			r.talks = false
			r.run(p, b)
		case "sh dev":
			r.talks = true
			r.start(p, b)
		case "text output":
			want := strings.ReplaceAll(b.Text, "127.0.0.1:7070", r.address)
			if !r.said.await(r.Context(), want, r.talks) {
				r.Fatalf("%s:%d: the output is\n%s\nwant\n%s", p.Name, b.Line, r.said.text(), want)
			}
		}
	}
}

func (r *reader) bash(ctx context.Context, b Block) *exec.Cmd {
	script := strings.ReplaceAll(b.Text, "127.0.0.1:7070", r.address)
	c := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	r.said = newSaid()
	c.Dir, c.Env, c.Stdout, c.Stderr = r.folder, r.env, r.said, r.said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that processes that bash started end together with bash
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	return c
}

func (r *reader) run(p Page, b Block) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), deadline)
	defer cancel()
	c := r.bash(ctx, b)
	err := c.Run()
	want, _ := strconv.Atoi(b.Options["exit"])
	if c.ProcessState == nil || c.ProcessState.ExitCode() != want {
		r.Fatalf("%s:%d: %v, want exit code %d:\n%s\nsaid\n%s", p.Name, b.Line, err, want, b.Text, r.said.text())
	}
}

// start runs a `lull dev` that continues to run, and waits until it answers.
func (r *reader) start(p Page, b Block) {
	r.Helper()
	r.stop()
	c := r.bash(context.WithoutCancel(r.Context()), b)
	if err := c.Start(); err != nil {
		r.Fatal(err)
	}
	r.server = c
	if !r.said.await(r.Context(), "...\n...http://"+r.address+"...", true) {
		r.Fatalf("%s:%d: it does not serve:\n%s", p.Name, b.Line, r.said.text())
	}
}

// stop stops the server as Ctrl-C does.
func (r *reader) stop() {
	if r.server == nil {
		return
	}
	_ = syscall.Kill(-r.server.Process.Pid, syscall.SIGINT) // the process may have ended already
	_ = r.server.Wait()                                     // pages say nothing about the exit code of a server
	r.server = nil
}

// said is the output of a block, to both outputs, as a terminal shows it.
type said struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more chan struct{} // closed at the next write
}

func newSaid() *said { return &said{more: make(chan struct{})} }

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.more)
	s.more = make(chan struct{})
	return s.b.Write(p)
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// await reports whether the text is what a page shows. If a server still prints text, await waits.
func (s *said) await(ctx context.Context, want string, talking bool) bool {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for pattern := shown(want); ; {
		s.mu.Lock()
		matches, more := pattern.Match(s.b.Bytes()), s.more
		s.mu.Unlock()
		if matches || !talking {
			return matches
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

// shown returns the pattern of an output. Runs of spaces match each other, because the width of a
// table depends on its values.
func shown(text string) *regexp.Regexp {
	pattern := `^`
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if strings.TrimSpace(line) == "..." {
			pattern += `(?:.*\n)*?`
			continue
		}
		quoted := regexp.QuoteMeta(strings.TrimSpace(line))
		quoted = regexp.MustCompile(` +`).ReplaceAllString(quoted, ` +`)
		pattern += ` *` + strings.ReplaceAll(quoted, `\.\.\.`, `.*`) + ` *\n?`
	}
	return regexp.MustCompile(pattern)
}

// TestOutputs: the text of a page must match the output from its start up to the last line that the
// page shows.
func TestOutputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\nb\n", "a\nb\nc\n", true},
		{"a\nb\n", "a\nx\nb\n", false},
		{"b\n", "a\nb\n", false},
		{"a\n...\nb\n", "a\nx\ny\nb\n", true},
		{"...\nb\n", "b\n", true},
		{"a ... c\n", "a b c\n", true},
		{"a ... c\n", "a b\nc\n", false},
		{"key   value\n", "key value\n", true},
		{"a.b\n", "axb\n", false},
	} {
		s := newSaid()
		fmt.Fprint(s, c.got)
		if got := s.await(t.Context(), c.want, false); got != c.same {
			t.Errorf("%q is shown as %q: %t, want %t", c.got, c.want, got, c.same)
		}
	}
}
