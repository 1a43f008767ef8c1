// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/terminal"
)

// jobRoutes returns the requests of the view of jobs.
//
//	GET  /console/jobs          the jobs that run, and the last ones that ran, the newest first
//	GET  /console/job?id=       one job, with its arguments and its first lines
//	POST /console/job/stop      {"id"}: stops a job, so that it can continue later
//	POST /console/job/resume    {"id", "confirm"}: continues a redrive or a drop, with a line for each dead letter
func (c *console) jobRoutes() routes {
	return routes{
		"GET /console/jobs": answered(reader, func(r *http.Request) (any, error) {
			all, err := c.API.Jobs(r.Context())
			shown := []jobShown{}
			for _, s := range slices.Backward(all) {
				shown = append(shown, c.shownJob(s))
			}
			return map[string]any{"jobs": shown}, err
		}),
		"GET /console/job": answered(reader, func(r *http.Request) (any, error) {
			s, err := c.job(r.Context(), r.FormValue("id"))
			if err != nil {
				return nil, err
			}
			shown := c.shownJob(s)
			shown.Args = terminal.Line(clipped(string(s.Args), maxReason))
			for _, line := range s.Lines {
				shown.Lines = append(shown.Lines, terminal.Line(clipped(string(line), maxReason)))
			}
			return shown, nil
		}),
		"POST /console/job/stop": answered(operator, func(r *http.Request) (any, error) {
			q, err := read[jobOrder](r)
			if err == nil {
				err = c.API.StopJob(r.Context(), operate.JobOrder{ID: q.ID, By: c.By})
			}
			return struct{}{}, err
		}),
		"POST /console/job/resume": c.lines(operator, c.resumeJob),
	}
}

type jobOrder struct {
	ID      string `json:"id"`
	Confirm string `json:"confirm"` // "resume drop", for a job that deletes
}

// jobShown is a job as a page shows it. The cursor of a job is missing: only the job can read it.
type jobShown struct {
	ID     string         `json:"id"`
	Verb   string         `json:"verb"`
	Phase  job.Phase      `json:"phase"`
	Did    int            `json:"did"`
	Total  int            `json:"total,omitempty"`
	Counts map[string]int `json:"counts,omitempty"`
	By     string         `json:"by"`
	Begun  time.Time      `json:"begun_at"`
	Saved  time.Time      `json:"saved_at"`
	Error  string         `json:"error,omitempty"`
	// Collection is what the job works on, if its arguments name one.
	Collection string `json:"collection,omitempty"`
	// Drift has the result of a verification; nil for other jobs.
	Drift *driftShown `json:"drift,omitempty"`
	// Resume says that this console can continue the job. Otherwise its own command does.
	Resume bool     `json:"resume,omitempty"`
	Args   string   `json:"args,omitempty"`  // of one job only
	Lines  []string `json:"lines,omitempty"` // of one job only
}

// driftShown counts documents of a verification.
type driftShown struct {
	Found     int `json:"found"`
	Repaired  int `json:"repaired"`
	Remaining int `json:"remaining"`
}

func (c *console) shownJob(s job.State) jobShown {
	var args struct {
		Collection string `json:"collection"`
	}
	_ = json.Unmarshal(s.Args, &args) // the arguments of some jobs name no collection
	var drift *driftShown
	if found, repaired, remaining, ok := verify.Drift(s); ok {
		drift = &driftShown{found, repaired, remaining}
	}
	return jobShown{
		Drift: drift,
		ID:    s.ID, Verb: s.Verb,
		Phase: s.PhaseAt(c.Clock.Now()), Did: s.Did, Total: s.Total, Counts: s.Counts, By: s.By,
		Begun: s.Begun, Saved: s.Saved, Error: oneLine(clipped(s.Error, maxReason)),
		Collection: terminal.Line(args.Collection), Resume: letterJobs[s.ID] != nil && s.Active(),
	}
}

// job finds a job by its id.
func (c *console) job(ctx context.Context, id string) (job.State, error) {
	all, err := c.API.Jobs(ctx)
	if err != nil {
		return job.State{}, err
	}
	if i := slices.IndexFunc(all, func(s job.State) bool { return s.ID == id }); i >= 0 {
		return all[i], nil
	}
	return job.State{}, Problemf(http.StatusNotFound, "there is no job %s", terminal.Line(clipped(id, maxReason)))
}

// letterJobs are the jobs that the console begins, and can continue, by id.
var letterJobs = map[string]letterJob{"redrive": operate.RedriveJob, "drop": operate.DropJob}

// resumeJob continues a redrive or a drop with the arguments that it began with.
func (c *console) resumeJob(r *http.Request) (longAnswer, error) {
	q, err := read[jobOrder](r)
	if err != nil {
		return nil, err
	}
	s, err := c.job(r.Context(), q.ID)
	if err != nil {
		return nil, err
	}
	of := letterJobs[s.ID]
	switch {
	case of == nil:
		return nil, badf("the console cannot continue %s: the command that began it does", s.ID)
	case s.PhaseAt(c.Clock.Now()) == job.Running || !s.Active():
		return nil, Problemf(http.StatusConflict, "%s is %s: there is nothing to resume", s.ID, s.PhaseAt(c.Clock.Now()))
	case s.ID == "drop" && q.Confirm != "resume drop":
		return nil, badf("confirm is missing: dropped events are lost for good; say %q to go on", "resume drop")
	}
	var o letterOrder
	if err := json.Unmarshal(s.Args, &o.LetterOrder); err != nil {
		return nil, fmt.Errorf("read the arguments of %s: %w", s.ID, err)
	}
	o.By = c.By
	return c.letters(o, of), nil
}
