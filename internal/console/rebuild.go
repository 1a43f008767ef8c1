// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"net/http"
	"slices"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/terminal"
)

// rebuildRoutes returns the requests about running rebuilds. A rebuild can only be started on the
// command line, because the mapping of the new index is a file there.
//
//	GET  /console/rebuilds          the progress of each rebuild
//	POST /console/rebuild/resume    {"sink"}: lines with the progress, until the rebuild has ended
//	POST /console/rebuild/abort     the same lines; needs the confirmation "abort COLLECTION"
func (c *console) rebuildRoutes() routes {
	return routes{
		"GET /console/rebuilds": answered(reader, func(r *http.Request) (any, error) {
			all, err := c.API.Rebuilds(r.Context())
			shown := []rebuildShown{}
			for _, p := range all {
				shown = append(shown, shownRebuild(p))
			}
			return map[string]any{"rebuilds": shown}, err
		}),
		"POST /console/rebuild/resume": c.lines(operator, func(r *http.Request) (longAnswer, error) {
			return c.rebuild(r, rebuild.Resume)
		}),
		"POST /console/rebuild/abort": c.lines(operator, func(r *http.Request) (longAnswer, error) {
			return c.rebuild(r, rebuild.Abort)
		}),
	}
}

// maxRefusals is how many documents refused by the new index a page shows.
const maxRefusals = 20

// rebuildShown is a rebuild as a page shows it: texts of the search engine are shortened and made
// readable.
type rebuildShown struct {
	operate.RebuildProgress
	Refusals int `json:"refusals,omitempty"` // the number of refused documents whose ids are known
}

func shownRebuild(p operate.RebuildProgress) rebuildShown {
	s := rebuildShown{RebuildProgress: p, Refusals: len(p.Refused)}
	s.Error = terminal.Line(clipped(p.Error, maxReason))
	s.Refused = slices.Clone(p.Refused[:min(len(p.Refused), maxRefusals)])
	for i, r := range s.Refused {
		s.Refused[i].Reason = terminal.Line(clipped(r.Reason, maxReason))
	}
	return s
}

// maxReason is how many bytes of a text of the search engine are shown.
const maxReason = 500

// rebuildLine is the progress of a rebuild, or the last line.
type rebuildLine struct {
	Progress *rebuildShown `json:"progress,omitempty"`
	Error    string        `json:"error,omitempty"`
	End      bool          `json:"end,omitempty"`
}

// rebuild resumes or aborts a rebuild. It stops when the connection ends, and a later resume
// continues at the same point.
func (c *console) rebuild(r *http.Request, action rebuild.Action) (longAnswer, error) {
	o, err := read[struct {
		Sink    string `json:"sink"`
		Confirm string `json:"confirm"`
	}](r)
	if err == nil && o.Sink == "" {
		err = badf("sink is missing: name the one that is rebuilt")
	}
	if err == nil && action == rebuild.Abort {
		err = c.confirmedAbort(r.Context(), o.Sink, o.Confirm)
	}
	return func(ctx context.Context, say func(any)) {
		p, err := c.runRebuild(ctx, operate.RebuildOrder{Action: action, Sink: o.Sink, By: c.By}, say)
		last := rebuildLine{Progress: new(shownRebuild(p)), End: true}
		if err != nil {
			last.Error = errorText(err, operator)
		}
		say(last)
	}, err
}

func (c *console) runRebuild(ctx context.Context, o operate.RebuildOrder, say func(any)) (p operate.RebuildProgress,
	err error,
) {
	j, name, err := operate.RebuildJob(ctx, c.API, o)
	if err != nil {
		return p, err
	}
	r := job.Runner{Store: c.API.JobStore(), Clock: c.Clock, By: c.By, Report: func(s job.State) {
		if p, err := operate.RebuildResult(name, s, nil); err == nil && s.Phase == job.Running {
			say(rebuildLine{Progress: new(shownRebuild(p))})
		}
	}}
	state, err := job.Run(ctx, r, j, func(rebuild.Progress) {})
	return operate.RebuildResult(name, state, err)
}

// confirmedAbort compares the collection that the user confirmed with that of the running rebuild.
func (c *console) confirmedAbort(ctx context.Context, name, confirm string) error {
	all, err := c.API.Rebuilds(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p operate.RebuildProgress) bool { return p.Sink == name })
	if i < 0 {
		return Problemf(http.StatusNotFound, "no rebuild of sink %s is under way", terminal.Line(name))
	}
	if want := "abort " + string(all[i].Collection); confirm != want {
		return badf("an abort deletes the new index: say %q to confirm", want)
	}
	return nil
}
