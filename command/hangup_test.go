// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/local/ledger"
)

func TestDevWhoseReaderLeavesEndsAsByCtrlC(t *testing.T) {
	t.Parallel()
	temp, report := t.TempDir(), filepath.Join(t.TempDir(), "report.json")
	cmd := program(t, "dev", "--events", "-", "-v", "--listen", "127.0.0.1:0", "--speed", "100", "--report", report)
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for said, lines := "", bufio.NewReader(out); !strings.HasPrefix(said, "search on"); { // the last of the greeting
		if said, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	// The run has something to print, and its input has not ended.
	if _, err := in.Write([]byte(put("a", "1", "{}") + "\n")); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exitCode(exit.ExitCode()) != exitWrong {
		t.Errorf("got %v, want exit %d: the input goes on", err, exitWrong)
	}
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), "lull-dev-") {
			t.Errorf("%s is left behind", e.Name())
		}
	}
	var r ledger.Report
	if b, err := os.ReadFile(report); err != nil || json.Unmarshal(b, &r) != nil || r.Messages != 1 {
		t.Errorf("report %s, error %v, want one of one message", b, err)
	}
}
