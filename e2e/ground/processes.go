// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Stop stops OpenSearch. If the test does not call Start, OpenSearch is started again at the end of
// the test.
func (s *Search) Stop(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { s.Start(t) })
	Script(t, "stop.sh", "opensearch")
}

// Start starts OpenSearch if it is not running. It has the same data as before.
func (s *Search) Start(t testing.TB) {
	t.Helper()
	Script(t, "start.sh", "opensearch", s.url[strings.LastIndex(s.url, ":")+1:])
}

// Script runs a script of localstack/.
func Script(t testing.TB, name string, args ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // the scripts have their own time limits
	Must(t, Run(ctx, "", nil, filepath.Join(os.Getenv(envRoot), "localstack", name), args...))
}

// Freeze halts the process of OpenSearch at any point of its work. The process then accepts
// connections, but never answers. It continues when the returned function is called or the test
// ends.
func (s *Search) Freeze(t testing.TB) (thaw func()) {
	t.Helper()
	return Halt(t, Process(t, "opensearch", "pid"))
}

// Kill kills OpenSearch at any point of its work. If the test does not call Start, OpenSearch is
// started again at the end of the test.
func (s *Search) Kill(t testing.TB) {
	t.Helper()
	t.Cleanup(func() { s.Start(t) })
	Must(t, syscall.Kill(Process(t, "opensearch", "pid"), syscall.SIGKILL))
}

// Process returns the process id of a server, from the file in which the server wrote it.
func Process(t testing.TB, server, file string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("LULL_E2E_RUN"), server, file))
	pid, bad := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := errors.Join(err, bad); err != nil {
		t.Fatalf("find the process of %s: %v", server, err)
	}
	return pid
}

// Halt halts a process until the returned function is called or the test ends.
func Halt(t testing.TB, pid int) (thaw func()) {
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

// NeedServers skips a test that stops or kills servers, if run.sh did not start the servers.
func (g *Ground) NeedServers(t testing.TB) {
	t.Helper()
	if !g.ours {
		t.Skipf("the servers were not started by run.sh (%s): this test stops or kills them", envServers)
	}
}
