// SPDX-License-Identifier: Apache-2.0

//go:build e2eupstreams

package upstreams

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/operator/operate"
)

// variable returns an environment variable that e2e/run.sh sets.
func variable(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: make e2e-upstreams", name)
	}
	return v
}

// process is a program of lull that a test may kill.
type process struct {
	cmd *exec.Cmd
	out *output
}

// output is the output of a program so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// lull starts the command line.
func lull(t testing.TB, also []string, args ...string) *process {
	t.Helper()
	p := &process{exec.Command(filepath.Join(variable(t, "LULL_E2E_WORK"), "lull"), args...), &output{}}
	p.cmd.Env = append(os.Environ(), also...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	ground.Must(t, p.cmd.Start())
	p.cleanup(t, "lull "+args[0])
	return p
}

// cleanup kills the process when the test ends. If the test has failed, it logs the last output of
// the process.
func (p *process) cleanup(t testing.TB, name string) {
	t.Cleanup(func() {
		p.kill() // has no effect if the process has already ended
		if text := p.out.String(); t.Failed() {
			t.Logf("%s said:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
}

// kill kills the process, like a power cut.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// stop sends SIGTERM to the process, waits for its end, and returns the exit code.
func (p *process) stop(t testing.TB) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = p.cmd.Wait() // the exit code shows the error
	return p.cmd.ProcessState.ExitCode()
}

// until waits until holds returns true.
func until(t testing.TB, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, limit)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// dev starts `lull dev` with these settings, and returns its address and a client for it.
func dev(t testing.TB, settings string) (url string, api operate.API) {
	t.Helper()
	address := freeAddress(t)
	p := lull(t, nil, "dev", "--local", "--config", ground.File(t, "lull.yaml", settings), "--listen", address)
	url = "http://" + address
	until(t, "lull dev listens", time.Minute, func() bool {
		if strings.HasPrefix(p.out.String(), "lull:") {
			t.Fatal("lull dev does not accept the settings")
		}
		return strings.Contains(p.out.String(), url)
	})
	return url, (&operate.Client{Base: url, HTTP: http.DefaultClient}).API()
}

// freeAddress returns an address of this machine with a free port.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	ground.Must(t, err)
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
