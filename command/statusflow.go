// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/terminal"
)

// showFlow says how the stack keeps up: what waits longest, how fresh documents are, and how fast
// events come.
func showFlow(w io.Writer, f *operate.Flow, now time.Time) {
	if f == nil {
		return
	}
	promise := fmt.Sprintf("the promise is %s after the last change", f.Promise)
	if f.Unknown != "" {
		terminal.Printf(w, "freshness and rate are unknown: %s; %s\n\n", f.Unknown, promise)
		return
	}
	oldest := any("nothing waits")
	if !f.Oldest.IsZero() {
		age := max(now.Sub(f.Oldest), 0)
		if oldest = fmt.Sprintf("oldest waiting: %s", roundly(age)); age > f.Late {
			oldest = bad("%s", oldest)
		}
	}
	fresh := "nothing was written"
	if f.P50 > 0 {
		fresh = fmt.Sprintf("freshness: median %s, p99 %s", roundly(f.P50), roundly(f.P99))
	}
	terminal.Printf(w, "%s; %s\n%s, %.1f events/s in, %.1f documents/s written (last %s)\n\n", oldest, promise, fresh,
		f.In, f.Written, f.Span)
}

// roundly shortens a duration for people.
func roundly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}
