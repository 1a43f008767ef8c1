package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/terminal"
)

// rebuildRoutes are what a page asks of rebuilds that are under way. One is begun on the command
// line, where its mapping is a file.
//
//	GET  /console/rebuilds          how each stands
//	POST /console/rebuild/resume    {"sink"}: lines of its progress, until it has ended
//	POST /console/rebuild/abort     the same; needs the confirmation "abort COLLECTION"
func (c *console) rebuildRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+prefix+"rebuilds", func(w http.ResponseWriter, r *http.Request) {
		all, err := c.API.Rebuilds(r.Context())
		if err != nil {
			failed(w, err)
			return
		}
		shown := []rebuildShown{}
		for _, p := range all {
			shown = append(shown, shownRebuild(p))
		}
		answer(w, map[string]any{"rebuilds": shown})
	})
	for _, action := range []string{operate.RebuildResume, operate.RebuildAbort} {
		mux.HandleFunc("POST "+prefix+"rebuild/"+action, func(w http.ResponseWriter, r *http.Request) {
			c.rebuild(w, r, action)
		})
	}
}

// maxRefusals is how many of the documents that a new index refuses a page shows.
const maxRefusals = 20

// rebuildShown is a rebuild as a page shows it: what the engine says is cut and made readable.
type rebuildShown struct {
	operate.RebuildProgress
	Refusals int `json:"refusals,omitempty"` // as many are known by name
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

// maxReason is how many bytes of what an engine says are shown.
const maxReason = 500

// rebuildLine is how far it is, or the end.
type rebuildLine struct {
	Progress *rebuildShown `json:"progress,omitempty"`
	Error    string        `json:"error,omitempty"`
	End      bool          `json:"end,omitempty"`
}

// rebuild goes on with a rebuild or gives it up. It ends with the connection: resume goes on from
// there.
func (c *console) rebuild(w http.ResponseWriter, r *http.Request, action string) {
	o, err := read[struct {
		Sink    string `json:"sink"`
		Confirm string `json:"confirm"`
	}](w, r)
	if err == nil && o.Sink == "" {
		err = &problem{http.StatusBadRequest, "sink is missing: name the one that is rebuilt"}
	}
	if err == nil && action == operate.RebuildAbort {
		err = c.confirmedAbort(r.Context(), o.Sink, o.Confirm)
	}
	if err != nil {
		changeFailed(w, err)
		return
	}
	ctx, say, end, err := c.lines(w, r)
	if err != nil {
		failed(w, err)
		return
	}
	defer end()
	progress := func(p operate.RebuildProgress) *rebuildShown {
		s := shownRebuild(p)
		return &s
	}
	p, err := c.API.Rebuild(ctx, operate.RebuildOrder{
		Action: action, Sink: o.Sink, By: c.By,
		Report: func(p operate.RebuildProgress) { say(rebuildLine{Progress: progress(p)}) },
	})
	last := rebuildLine{Progress: progress(p), End: true}
	if err != nil {
		last.Error = changeSentence(err)
	}
	say(last)
}

// confirmedAbort compares what somebody confirmed with the rebuild that is under way now.
func (c *console) confirmedAbort(ctx context.Context, name, confirm string) error {
	all, err := c.API.Rebuilds(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p operate.RebuildProgress) bool { return p.Sink == name })
	if i < 0 {
		return &problem{http.StatusNotFound, "no rebuild of sink " + terminal.Line(name) + " is under way"}
	}
	if want := "abort " + string(all[i].Collection); confirm != want {
		return &problem{http.StatusBadRequest, fmt.Sprintf("an abort deletes the new index: say %q to confirm", want)}
	}
	return nil
}
