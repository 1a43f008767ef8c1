package operate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"net/http"

	"github.com/lullhq/lull/internal/reconcile"
	"github.com/lullhq/lull/internal/shard"
)

// ReconcileOrder says which collection to compare with its rows.
type ReconcileOrder struct {
	Collection shard.Collection `json:"collection"`
	DryRun     bool             `json:"dry_run,omitempty"`
	Rate       float64          `json:"rate,omitempty"` // documents a second, 0 for no limit
	By         string           `json:"by"`             // who asks, for the audit

	Found func(ReconcileLine) `json:"-"` // called with every document that differs, from one goroutine; may be nil
}

// ReconcileLine is a document that differs from its row.
type ReconcileLine struct {
	Key        shard.DocID `json:"key"`
	Difference string      `json:"difference"` // behind, undone, missing, older, other_class
	Outcome    string      `json:"outcome"`    // raised, reasserted, resync, later, failed
	Committed  string      `json:"committed"`  // by the row: order key in print, "" for none
	InSink     string      `json:"in_sink"`    // order key in print, "" for no document
	Version    string      `json:"version"`    // the newer of the two, for people
	Error      string      `json:"error,omitempty"`
}

// ReconcileResult counts.
type ReconcileResult struct {
	Collection shard.Collection `json:"collection"`
	Rows       int              `json:"rows"`
	Documents  int              `json:"documents"` // in the sink
	Waiting    int              `json:"waiting"`   // differ, and are being written or about to be
	Outcomes   map[string]int   `json:"outcomes"`  // of the documents that differ
	Remaining  int              `json:"remaining"` // documents that differ still
	DryRun     bool             `json:"dry_run,omitempty"`
}

// Reconcile compares a collection with its rows and repairs what the two of them suffice for.
func (o *Operator) Reconcile(ctx context.Context, r ReconcileOrder) (ReconcileResult, error) {
	res := ReconcileResult{Collection: r.Collection, Outcomes: map[string]int{}, DryRun: r.DryRun}
	if err := r.Collection.Validate(); err != nil {
		return res, inputf("collection: %w", err)
	}
	switch {
	case r.By == "":
		return res, inputf("by: name who asks, for the audit")
	case !(r.Rate >= 0) || math.IsInf(r.Rate, 0):
		return res, inputf("rate %g: want documents a second, or 0 for no limit", r.Rate)
	}
	name, _ := o.Config.SinkFor(string(r.Collection))
	if o.Readers[name] == nil || o.Sinks[name] == nil {
		return res, inputf("sink %s of collection %s cannot be read from here", name, r.Collection)
	}
	s := reconcile.Service{
		Looker: reconcile.Looker{
			Shards: o.Shards, Reader: o.Readers[name], SinkName: name, Config: o.Config, Clock: o.Clock,
			Off: o.Off,
		},
		Scanner: o.Scanner, Sink: o.Sinks[name], Journal: o.Journal,
		NewToken: func() shard.Token { return shard.Token(rand.Text()) },
	}
	report, err := s.Run(ctx, reconcile.Order{
		Collection: r.Collection, DryRun: r.DryRun, Rate: r.Rate, By: r.By,
		Found: func(l reconcile.Line) {
			if r.Found != nil {
				r.Found(asReconcileLine(l))
			}
		},
	})
	res.Rows, res.Documents, res.Waiting, res.Remaining = report.Rows, report.Copies, report.Waiting, report.Remaining()
	for outcome, n := range report.Outcomes {
		res.Outcomes[string(outcome)] = n
	}
	return res, kind(err)
}

func asReconcileLine(l reconcile.Line) ReconcileLine {
	line := ReconcileLine{
		Key: l.Row.Doc, Difference: l.Difference.String(), Outcome: string(l.Outcome),
		Committed: l.Row.Committed.String(), InSink: l.Copy.Key.String(),
		Version: max(l.Row.Committed, l.Copy.Key).VersionText(),
	}
	if l.Err != nil {
		line.Error = l.Err.Error()
	}
	return line
}

// reconcileUpdate is one line of the answer, which may take hours. Each line is a document that
// differs; the last one is the result and the error.
type reconcileUpdate struct {
	Line   *ReconcileLine   `json:"line,omitempty"`
	Result *ReconcileResult `json:"result,omitempty"`
	Error  *wireError       `json:"error,omitempty"`
}

func reconciliation(mux *http.ServeMux, f func(context.Context, ReconcileOrder) (ReconcileResult, error)) {
	mux.HandleFunc("POST "+prefix+"reconcile", func(w http.ResponseWriter, r *http.Request) {
		o, err := read[ReconcileOrder](w, r)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		out, enc := http.NewResponseController(w), json.NewEncoder(w)
		o.Found = func(l ReconcileLine) {
			_ = enc.Encode(reconcileUpdate{Line: &l}) // the client went away: the context ends too
			_ = out.Flush()
		}
		res, err := f(r.Context(), o)
		last := reconcileUpdate{Result: &res}
		if err != nil {
			last.Error = wired(err)
		}
		_ = enc.Encode(last) // the client went away
	})
}

// Reconcile compares a collection with its rows and repairs what the two of them suffice for.
func (c *Client) Reconcile(ctx context.Context, o ReconcileOrder) (ReconcileResult, error) {
	resp, err := c.post(ctx, "reconcile", o)
	if err != nil {
		return ReconcileResult{}, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	if resp.StatusCode != http.StatusOK {
		return ReconcileResult{}, c.refused(resp)
	}
	for dec := json.NewDecoder(resp.Body); ; {
		var u reconcileUpdate
		if err := dec.Decode(&u); err != nil {
			return ReconcileResult{}, fmt.Errorf("%s ended in the middle of reconcile: %w (what is listed was done)",
				Shown(c.Base), err)
		}
		if u.Line != nil && o.Found != nil {
			o.Found(*u.Line)
		}
		switch {
		case u.Result == nil:
		case u.Error != nil:
			return *u.Result, &remoteError{*u.Error}
		default:
			return *u.Result, nil
		}
	}
}
