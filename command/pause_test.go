// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/awstest"
)

func TestAPausedSinkGetsNothingUntilItIsResumed(t *testing.T) {
	t.Parallel()
	s := start(t, nil, "--events", write(t), "--speed", "100", "--quiet", "0s")
	s.ask("pause", "search", "--why", "an index\nis moved").
		want(t, "pause", exitOK, "search: paused.", "lull resume search")
	s.ask("pause", "--all").want(t, "pause again", exitOK, "search: already paused by", "index")
	s.publish(put("a", "1", "{}"))
	s.ask("status").want(t, "status", exitOK, "paused by ", `an index\u000ais moved`, "dead letters from")
	waited := s.ask("wait", "content#a", "--version", "1", "--timeout", "1s")
	waited.want(t, "wait", exitMissing, "paused the sink")
	if n := strings.Count(waited.errors, "paused the sink"); n != 2 {
		t.Errorf("wait says %d times what it waits for, want twice, at the beginning and at the end:\n%s", n, waited.errors)
	}
	s.ask("explain", "content#a").want(t, "explain", exitOK, "paused the sink", "lull resume")
	s.ask("resume", "--all", "-o", "json").want(t, "resume", exitOK, `"changed": true`)
	s.ask("wait", "content#a", "--version", "1").want(t, "wait", exitOK)
	s.ask("resume", "search").want(t, "resume again", exitOK, "was not paused")
	s.ask("resume", "other").want(t, "another sink", exitUsage, `"other"`, "search")
}

func TestAPauseOfADeployedStackIsAudited(t *testing.T) {
	t.Parallel()
	a := newAccount(t, map[string]awstest.Reply{
		"BatchGetItem": {Body: map[string]any{"Responses": map[string]any{}}},
	})
	got := a.ask(t, "pause", "search", "--why", "maintenance")
	got.want(t, "pause", exitOK, "search: paused.")
	for _, part := range []string{`"msg":"paused"`, `"audit":true`, `"sink":"search"`, "by ", "maintenance"} {
		if !strings.Contains(got.errors, part) {
			t.Errorf("audited as %q, want %s", got.errors, part)
		}
	}
	if n := len(a.calls); n == 0 || a.calls[n-1] != "UpdateItem" {
		t.Errorf("calls %v, want UpdateItem last", a.calls)
	}
}
