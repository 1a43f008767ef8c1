package ground

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Stop stops OpenSearch and starts it again when the test ends, unless Start was called before.
func (s *Search) Stop(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { s.Start(t) })
	s.script(t, "stop.sh", "opensearch")
}

// Start starts OpenSearch where it does not run, with the data it had.
func (s *Search) Start(t testing.TB) {
	t.Helper()
	s.script(t, "start.sh", "opensearch", s.url[strings.LastIndex(s.url, ":")+1:])
}

func (s *Search) script(t testing.TB, name string, args ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // the scripts have limits of their own
	must(t, run(ctx, "", nil, filepath.Join(s.root, "localstack", name), args...))
}

// Freeze halts OpenSearch's process in the middle of whatever it does, until the function that it
// returns is called or the test ends: it accepts connections and answers nothing.
func (s *Search) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	return freeze(t, s.process(t))
}

// Kill kills OpenSearch in the middle of whatever it does. Start starts it again; otherwise the end
// of the test does.
func (s *Search) Kill(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { s.Start(t) })
	must(t, syscall.Kill(s.process(t), syscall.SIGKILL))
}

func (s *Search) process(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("LULL_E2E_RUN"), "opensearch", "pid"))
	pid, bad := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := errors.Join(err, bad); err != nil {
		t.Fatalf("find OpenSearch's process: %v", err)
	}
	return pid
}

// FreezeTable halts LocalStack's table in the middle of whatever it does, as Freeze does the sink.
func (g *Ground) FreezeTable(t testing.TB) (thaw func()) {
	t.Helper()
	ours := []byte("LULL_E2E_SERVER=" + filepath.Join(os.Getenv("LULL_E2E_RUN"), "localstack") + "\x00")
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	must(t, err)
	for _, path := range environments {
		environment, _ := os.ReadFile(path) // a process that has ended, or another user's
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if bytes.Contains(append(environment, 0), ours) && bytes.Contains(command, []byte("DynamoDBLocal")) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			must(t, err)
			return freeze(t, pid)
		}
	}
	t.Fatal("find the process of the table: there is none")
	return nil
}

func freeze(t testing.TB, pid int) (thaw func()) {
	t.Helper()
	signal := func(sig syscall.Signal) {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Errorf("send %s to process %d: %v", sig, pid, err)
		}
	}
	signal(syscall.SIGSTOP)
	thaw = sync.OnceFunc(func() { signal(syscall.SIGCONT) })
	t.Cleanup(thaw)
	return thaw
}

// KillFunction kills every running process of a function, and reports how many there were.
func (g *Ground) KillFunction(t testing.TB, name string) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(g.root, "localstack", "functions.sh"), name).Output()
	if err != nil {
		t.Fatalf("find processes of %s: %v", name, err)
	}
	killed := 0
	for _, line := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("find processes of %s: %v", name, err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			killed++
		}
	}
	return killed
}

// NeedServers skips a test that stops or kills servers where they are not ours to stop.
func (g *Ground) NeedServers(t testing.TB) {
	t.Helper()
	if !g.ours {
		t.Skipf("the servers were not started by run.sh (%s): this test stops or kills them", envServers)
	}
}
