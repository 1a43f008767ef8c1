// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/rebuild"
)

// rebuilt is a stack with a running rebuild.
type rebuilt struct {
	jobs  operate.Question[[]job.State]
	under []operate.RebuildProgress
	asked []operate.RebuildOrder // steps
	err   error
}

func (r *rebuilt) Rebuilds(context.Context) ([]operate.RebuildProgress, error) { return r.under, nil }

func (r *rebuilt) Rebuild(ctx context.Context, o operate.RebuildOrder) (operate.RebuildStep, error) {
	step := operate.RebuildStep{Sink: "search", Next: rebuild.Cursor{Progress: r.under[0].Progress}}
	step.Next.Error, step.Next.Refused = "", nil
	if o.From == nil {
		jobs, err := r.jobs(ctx)
		for _, j := range jobs {
			step.Next.Known = j.Saved
		}
		return step, err
	}
	o.From = nil
	r.asked = append(r.asked, o)
	if r.err != nil {
		return step, r.err
	}
	step.Next.Phase, step.Done = rebuild.Done, true
	return step, nil
}

func rebuilding(t *testing.T) (*stack, *rebuilt) {
	t.Helper()
	s := newStack(t)
	r := &rebuilt{jobs: s.API().Jobs, under: []operate.RebuildProgress{{Sink: "search", Progress: rebuild.Progress{
		Collection: "content", Phase: rebuild.Filling, Old: "a", New: "b", Total: 10, Done: 4, Error: "broke\x1b[31m",
	}}}}
	for range maxRefusals + 5 {
		r.under[0].Refused = append(r.under[0].Refused, rebuild.Refusal{ID: "<b>", Reason: strings.Repeat("€\n", 4000)})
	}
	s.options.API = operatetest.API(s.API(), r)
	return s, r
}

func TestARebuildIsShownWithBoundsOnWhatTheEngineSays(t *testing.T) {
	t.Parallel()
	s, r := rebuilding(t)
	w := s.ask("/console/rebuilds", "")
	text := w.Body.String()
	if w.Code != http.StatusOK || !strings.Contains(text, `"done":4`) || !strings.Contains(text, `broke\\u001b`) ||
		strings.Count(text, `"id":"<b>"`) != maxRefusals || !strings.Contains(text, `"refusals":25`) || len(text) > 40_000 {
		t.Errorf("%d, %d bytes: %.600s", w.Code, len(text), text)
	}
	if len(r.under[0].Refused) != 25 {
		t.Error("showing it changed it")
	}
	r.under = nil
	if w := s.ask("/console/rebuilds", ""); strings.TrimSpace(w.Body.String()) != `{"rebuilds":[]}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestARebuildIsResumedAndAbortedOnlyWithItsName(t *testing.T) {
	t.Parallel()
	s, r := rebuilding(t)
	for _, test := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"resume", `{}`, http.StatusBadRequest, "sink is missing"},
		{"abort", `{"sink":"search"}`, http.StatusBadRequest, `\"abort content\"`},
		{"abort", `{"sink":"search","confirm":"abort news"}`, http.StatusBadRequest, `\"abort content\"`},
		{"abort", `{"sink":"other","confirm":"abort content"}`, http.StatusNotFound, "no rebuild of sink other"},
		{"start", `{"sink":"search"}`, http.StatusNotFound, "nothing at"},
	} {
		if w := s.ask("/console/rebuild/"+test.path, test.body); w.Code != test.status ||
			!strings.Contains(w.Body.String(), test.says) {
			t.Errorf("%s %s: %d %s", test.path, test.body, w.Code, w.Body)
		}
	}
	if len(r.asked) != 0 {
		t.Fatalf("asked for %+v", r.asked)
	}
	for _, action := range []rebuild.Action{rebuild.Resume, rebuild.Abort} {
		w := s.ask("/console/rebuild/"+string(action), `{"sink":"search","confirm":"abort content"}`)
		lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
		if len(r.asked) == 0 {
			t.Fatalf("%s", w.Body)
		}
		if o := r.asked[len(r.asked)-1]; o.Action != action || o.Sink != "search" || o.By != "tester" {
			t.Errorf("asked for %+v", o)
		}
		if len(lines) != 2 || !strings.Contains(lines[0], `"phase":"filling"`) ||
			!strings.Contains(lines[1], `"phase":"done"`) || !strings.HasSuffix(lines[1], `"end":true}`) {
			t.Errorf("%s", w.Body)
		}
	}
	r.err = fmt.Errorf("%w: the engine\nis away", operate.ErrInput) // no step is repeated
	if w := s.ask("/console/rebuild/resume", `{"sink":"search"}`); !strings.Contains(w.Body.String(), `is away`) ||
		!strings.Contains(w.Body.String(), `"error":`) {
		t.Errorf("%s", w.Body)
	}
}
