// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
)

// jobOf stores a job that runs.
func (s *stack) jobOf(id, verb string, args any, lines ...string) job.Lease {
	s.Helper()
	lease := usecasetest.Must(s.options.API.TakeJob(s.Context(), job.Claim{
		ID: id, Verb: verb, Args: usecasetest.Must(json.Marshal(args))(s), By: "anna", First: json.RawMessage(`{}`),
	}))(s)
	lease.State.Did, lease.State.Total, lease.State.Counts = 40, 100, map[string]int{"sent": 40}
	for _, line := range lines {
		lease.State.Lines = append(lease.State.Lines, usecasetest.Must(json.Marshal(line))(s))
	}
	usecasetest.OK(s, s.options.API.SaveJob(s.Context(), lease))
	return lease
}

func TestJobsAreShownWithBoundsAndStop(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	var none struct{ Jobs []jobShown }
	if s.into(&none, "/console/jobs", ""); none.Jobs == nil || len(none.Jobs) > 0 {
		t.Errorf("got %+v, want an empty list", none)
	}
	s.jobOf("backfill-content", "backfill", map[string]string{"collection": "content\x1b[31m"},
		strings.Repeat("<b>\n", maxReason))
	var all struct{ Jobs []jobShown }
	s.into(&all, "/console/jobs", "")
	if len(all.Jobs) != 1 {
		t.Fatalf("got %+v", all)
	}
	got := all.Jobs[0]
	if got.Phase != job.Running || got.Did != 40 || got.Total != 100 || got.Counts["sent"] != 40 || got.By != "anna" ||
		got.Collection != `content\u001b[31m` || got.Resume || len(got.Lines) > 0 {
		t.Errorf("got %+v", got)
	}
	var one jobShown
	s.into(&one, "/console/job?id=backfill-content", "")
	if len(one.Lines) != 1 || len(one.Lines[0]) > maxReason || !strings.Contains(one.Args, "collection") {
		t.Errorf("got %+v", one)
	}
	s.refused(http.StatusNotFound, "there is no job", "/console/job?id=%3Cb%3E", "")
	s.refused(http.StatusNotFound, "there is no such job", "/console/job/stop", `{"id":"replay"}`)
	s.refused(http.StatusBadRequest, "not the id of a job", "/console/job/stop", `{"id":"../x"}`)
	s.into(&struct{}{}, "/console/job/stop", `{"id":"backfill-content"}`)
	if s.into(&one, "/console/job?id=backfill-content", ""); one.Phase != job.Stopped || one.By != "tester" {
		t.Errorf("after the stop: %+v", one)
	}
	s.refused(http.StatusBadRequest, "the command that began it", "/console/job/resume", `{"id":"backfill-content"}`)
}

// A verification shows how many documents differed, and how many of them were repaired.
func TestAVerificationShowsItsDrift(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.jobOf("backfill-content", "backfill", map[string]string{})
	lease := s.jobOf("heal-content", "verify", map[string]string{"collection": "content"})
	lease.State.Counts = map[string]int{
		"documents": 50, "drift missing": 3, "drift orphan": 2, "repaired resent": 3, "repaired removed": 1, "remaining": 1,
	}
	usecasetest.OK(t, s.options.API.SaveJob(t.Context(), lease))
	var all struct{ Jobs []jobShown }
	s.into(&all, "/console/jobs", "")
	shown := map[string]*driftShown{}
	for _, j := range all.Jobs {
		shown[j.ID] = j.Drift
	}
	if got, want := shown["heal-content"], (driftShown{5, 4, 1}); got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, there := shown["backfill-content"]; !there || got != nil {
		t.Errorf("got %+v of a backfill", got)
	}
}

// A drop that was stopped continues with the selection that it began with, and only if the user
// confirms it.
func TestAStoppedDropContinuesWithItsSelection(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.park(event("a", 1), deadletter.Contract, time.Now())
	s.park(event("b", 1), deadletter.Panic, time.Now())
	lease := s.jobOf("drop", "drop", operate.LetterOrder{LetterFilter: operate.LetterFilter{Reason: deadletter.Panic}})
	s.refused(http.StatusConflict, "drop is running", "/console/job/resume", `{"id":"drop","confirm":"resume drop"}`)
	lease.State.Phase = job.Stopped
	usecasetest.OK(t, s.options.API.EndJob(t.Context(), lease))
	s.refused(http.StatusBadRequest, "lost for good", "/console/job/resume", `{"id":"drop"}`)
	if w := s.ask("/console/job/resume", `{"id":"drop","confirm":"resume drop"}`); !strings.Contains(w.Body.String(), `"end":true`) {
		t.Errorf("got %s", w.Body)
	}
	left := usecasetest.Must(s.options.API.Letters(t.Context(), operate.LetterFilter{}))(t)
	if len(left) != 1 || left[0].Reason != deadletter.Contract {
		t.Errorf("left are %+v", left)
	}
	var one jobShown
	if s.into(&one, "/console/job?id=drop", ""); one.Phase != job.Done || one.Resume {
		t.Errorf("got %+v", one)
	}
	s.refused(http.StatusConflict, "drop is done", "/console/job/resume", `{"id":"drop","confirm":"resume drop"}`)
}
