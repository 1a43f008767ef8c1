// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// limit bounds the size of the files that a process writes. A larger write fails as on a full disk.
func limit(t *testing.T, process *os.Process, size uint64) {
	t.Helper()
	to := unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(process.Pid, unix.RLIMIT_FSIZE, &to, nil); err != nil {
		t.Fatal(err)
	}
}

// If the disk is full, nothing is lost, and the output says why nothing is written.
func TestAFullDiskIsSaidAloud(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprintf("room again %t", again), func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			cmd := program(t, "dev", "--listen", "127.0.0.1:0", "--speed", "8", "--data", data, "--events", write(t))
			out := launch(t, cmd)
			url := out.await(t, `search on (http://[^/]+)/`)
			limit(t, cmd.Process, 128<<10)
			var words strings.Builder // all words differ, so that they cannot be compressed
			for i := range 25_000 {
				fmt.Fprintf(&words, "w%x ", uint32(i)*2654435761)
			}
			large := put("a", "1", `{"title":"`+words.String()+`"}`)
			do(t, ask(t, http.MethodPost, url+"/publish", large), http.StatusOK)
			out.await(t, "ALARM: .*(large|space)")
			if state := get[struct{ Trouble string }](t, url+"/status"); !strings.Contains(state.Trouble, data) {
				t.Errorf("status %+v, want it to name the folder", state)
			}
			if again {
				limit(t, cmd.Process, unix.RLIM_INFINITY)
				out.await(t, "can be written again")
				lull(t, "", "wait", "content#a", "--version", "1", "--dev", url).want(t, "wait", exitOK)
			}
			interrupt(t, cmd)
			if err := cmd.Wait(); (err == nil) != again {
				t.Errorf("the run ended with %v:\n%s", err, out)
			}
			if !again && !strings.Contains(out.String(), "lull: keep the state of this run") {
				t.Errorf("the output does not say why the run ended:\n%s", out)
			}
		})
	}
}
