// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
)

// In a pipe, `lull status --watch` prints one line for each request.
func TestStatusIsWatchedInAPipe(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", write(t, put("a", "x", "{}")), "--speed", "100")
	watch := func(lines string, args ...string) string {
		t.Helper()
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		out, code := newScreen(), make(chan exitCode)
		go func() {
			code <- newApp(strings.NewReader(""), out, out).run(ctx, append([]string{
				"status", "--watch", "--every", "250ms", "--dev", s.url,
			}, args...))
		}()
		out.await(t, lines)
		interrupt()
		if got := <-code; got != exitOK {
			t.Errorf("%v: exit %d: %s", args, got, out)
		}
		return out.String()
	}
	watch(`(?m)^\S+Z  0 visible, 0 held, 0 delayed, 0 flights, 0 scheduled, 1 dead letters\n\S+Z  0 visible`)
	first, _, _ := strings.Cut(watch(`}\n\{.*}\n`, "-o", "json"), "\n")
	var status operate.Status
	if err := json.Unmarshal([]byte(first), &status); err != nil || status.Letters != 1 {
		t.Errorf("got %q: %v", first, err)
	}
	s.ask("status", "--every", "1s").want(t, "without --watch", exitUsage, "goes with --watch")
	s.ask("status", "--watch", "--every", "1ms").want(t, "too often", exitUsage, "want 250ms to 1h")
	lull(t, "", "status", "--watch", "--dev", "http://127.0.0.1:1").want(t, "no stack", exitFailed, "127.0.0.1:1")
}
