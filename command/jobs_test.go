// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
)

// A foreign stack may send control characters. The line goes directly to the terminal, without the
// writer that escapes them.
func TestAStateOfAJobCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := &jobLine{to: &out, terminal: true}
	s := job.State{ID: "a\x1b]0;title\x07", Phase: job.Running, Steps: 1, Begun: time.Now()}
	l.show(s)
	l.show(s)
	if text := strings.ReplaceAll(out.String(), "\r\x1b[K", ""); strings.ContainsAny(text, "\x1b\x07") {
		t.Errorf("printed %q", text)
	}
}
