// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
)

// built builds the program once, and returns its path.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lull-browser")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "lull")
	cmd := exec.Command("go", "build", "-o", program, "github.com/lullhq/lull/cmd/lull")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build lull: %w\n%s", err, out)
	}
	return program, nil
})

// stack is a running `lull dev`.
type stack struct {
	t       *testing.T
	address string // host and port
	cmd     *exec.Cmd
	output  *strings.Builder
	ended   chan struct{}
}

var listening = regexp.MustCompile(`http://([0-9.]+:[0-9]+)/`)

// start runs `lull dev` with short windows. Without events, the stack is idle.
func start(t *testing.T, events string, args ...string) *stack {
	t.Helper()
	return startAt(t, "127.0.0.1:0", events, args...)
}

func startAt(t *testing.T, address, events string, args ...string) *stack {
	t.Helper()
	program := usecasetest.Must(built())(t)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	usecasetest.OK(t, os.WriteFile(file, []byte(events), 0o600))
	s := &stack{t: t, output: &strings.Builder{}, ended: make(chan struct{})}
	s.cmd = exec.Command(program, append([]string{
		"dev", "--listen", address, "--events", file, "--quiet", "1s", "--max-wait", "5s",
	}, args...)...)
	out := usecasetest.Must(s.cmd.StdoutPipe())(t)
	s.cmd.Stderr = s.cmd.Stdout
	usecasetest.OK(t, s.cmd.Start())
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(s.output, lines.Text())
			if m := listening.FindStringSubmatch(lines.Text()); m != nil && len(found) == 0 {
				found <- m[1]
			}
		}
		close(found)
		_ = s.cmd.Wait() // returns an error if a signal ended the program
		close(s.ended)
	}()
	t.Cleanup(s.stop)
	select {
	case s.address = <-found:
	case <-time.After(patience):
	}
	if s.address == "" {
		t.Fatalf("lull dev names no address:\n%s", s.output)
	}
	return s
}

// stop ends the program with the signal of Ctrl-C. It may be called twice.
func (s *stack) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGINT) // the program may have ended already
	select {
	case <-s.ended:
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	s.cmd = nil
}

// publish sends messages as an upstream does, also those that break the contract.
func (s *stack) publish(body string) {
	s.t.Helper()
	answer, err := http.Post("http://"+s.address+"/publish?unchecked=true", "application/x-ndjson", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		s.t.Fatalf("publish: %s %s", answer.Status, text)
	}
}

// post sends JSON, and returns the answer.
func (s *stack) post(path, body string) string {
	s.t.Helper()
	answer, err := http.Post("http://"+s.address+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %s %v", path, answer.Status, text, err)
	}
	return string(text)
}

// breakSink lets the sink fail, until the stack says that the sink is unhealthy.
func (s *stack) breakSink() {
	s.t.Helper()
	s.post("/console/breakit", `{"sink_down":true}`)
	s.publish(put("probe", "1", "It finds that the sink is down", ""))
	s.circuit(true)
}

// repairSink ends the outage of the sink, and waits until lull knows it. A paused sink is not
// probed, so a test must wait before it pauses the sink.
func (s *stack) repairSink() {
	s.t.Helper()
	s.post("/console/breakit", `{"sink_down":false}`)
	s.circuit(false)
}

// circuit waits until the circuit breaker of the sink is open or closed.
func (s *stack) circuit(open bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); ; pause(s.t.Context()) {
		text := s.post("/operate/status", "{}")
		if strings.Contains(text, `"open":true`) == open {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("after %s the circuit is not open %t: %s", patience, open, text)
		}
	}
}

// written waits until the sink has written this many versions.
func (s *stack) written(n int) {
	s.t.Helper()
	for end := time.Now().Add(patience); ; pause(s.t.Context()) {
		answer, err := http.Get("http://" + s.address + "/status")
		if err != nil {
			s.t.Fatal(err)
		}
		var state struct {
			Report struct{ Written int } `json:"report"`
		}
		err = json.NewDecoder(answer.Body).Decode(&state)
		_ = answer.Body.Close()
		if err != nil {
			s.t.Fatal(err)
		}
		if state.Report.Written >= n {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d versions written after %s, want %d", state.Report.Written, patience, n)
		}
	}
}

// pause waits between two polls.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}
