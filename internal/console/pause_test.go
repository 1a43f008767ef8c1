// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
)

func TestASinkIsPausedWithAReasonAndResumed(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.refused(http.StatusBadRequest, "why is missing", "/console/sink/pause", `{"sink":"search"}`)
	s.refused(http.StatusBadRequest, "sink is missing", "/console/sink/pause", `{"why":"x"}`)
	s.refused(http.StatusBadRequest, "this stack has search", "/console/sink/pause", `{"sink":"<b>","why":"x"}`)
	var got operate.PauseResult
	s.into(&got, "/console/sink/pause", `{"sink":"search","why":"an upgrade\n\u001b[31m"}`)
	if len(got.Sinks) != 1 || !got.Sinks[0].Changed || got.Sinks[0].Pause.By != "tester" ||
		got.Sinks[0].Pause.Why != `an upgrade\u000a\u001b[31m` {
		t.Errorf("paused: %+v", got.Sinks[0].Pause)
	}
	s.into(&got, "/console/sink/resume", `{"sink":"search"}`)
	if len(got.Sinks) != 1 || !got.Sinks[0].Changed {
		t.Errorf("resumed: %+v", got)
	}
}
