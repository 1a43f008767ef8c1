package operate

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/shard"
)

// ReconcileOrder says which collection to compare with its rows.
type ReconcileOrder struct {
	Collection shard.Collection `json:"collection"`
	DryRun     bool             `json:"dry_run,omitempty"`
	Rate       float64          `json:"rate,omitempty"` // documents a second, 0 for no limit
	By         string           `json:"by"`             // who asks, for the audit
	Sink       string           `json:"sink,omitempty"` // must be a sink of the collection; empty for its only one
	Audit      *ReconcileAudit  `json:"audit,omitempty"`

	// The functions below are called from one goroutine, and may be nil.

	Found   func(ReconcileLine)                    `json:"-"` // called for every document that differs
	Reached func(reconcile.Place, ReconcileResult) `json:"-"` // called by an audit after each page, with how far it is
	Seen    func([]ReconcileCopy)                  `json:"-"` // called by an audit with documents of the sink
}

// ReconcileAudit turns the comparison into an audit for `lull verify`. An audit can continue where
// it stopped. It also reports documents in motion, and documents that lull did not write.
type ReconcileAudit struct {
	Keys   []shard.DocID   `json:"keys,omitempty"`   // these only
	Sample int             `json:"sample,omitempty"` // how many rows to choose at random; 0 for all documents
	From   reconcile.Place `json:"from,omitzero"`
	Seen   bool            `json:"seen,omitempty"` // report every document in the sink
}

// ReconcileCopy is a document in the sink.
type ReconcileCopy struct {
	Key      shard.DocID `json:"key"`
	OrderKey string      `json:"order_key,omitempty"` // empty if lull did not write it
	Fence    int64       `json:"fence,omitempty"`
}

// ReconcileLine is a document that differs from its row.
type ReconcileLine struct {
	Key        shard.DocID `json:"key"`
	Difference string      `json:"difference"` // behind, undone, missing, older, other_class, stranger, changed
	Outcome    string      `json:"outcome"`    // raised, reasserted, resync, later, failed, left, in_motion
	Committed  string      `json:"committed"`  // by the row: order key in print, "" for none
	InSink     string      `json:"in_sink"`    // order key in print, "" for no document
	Version    string      `json:"version"`    // the newer of the two, for people
	Error      string      `json:"error,omitempty"`
}

// ReconcileResult counts the documents by outcome.
type ReconcileResult struct {
	Collection shard.Collection `json:"collection"`
	reconcile.Report
	Remaining int `json:"remaining"` // documents that still differ
}

// Reconcile compares a collection with its rows and repairs the differences that need nothing from
// the source.
func (o *Operator) Reconcile(ctx context.Context, r ReconcileOrder) (ReconcileResult, error) {
	result := func(report reconcile.Report) ReconcileResult {
		return ReconcileResult{r.Collection, report, report.Remaining()}
	}
	res := result(reconcile.Report{Outcomes: map[reconcile.Outcome]int{}, DryRun: r.DryRun})
	sample := cmp.Or(r.Audit, &ReconcileAudit{}).Sample
	name, err := o.auditedSink(r.Collection, r.Sink)
	err = cmp.Or(named(r.By), rated(r.Rate, "documents"),
		want(sample >= 0, "sample %d: want a number of documents, or 0 for all", sample), err)
	if err != nil {
		return res, err
	}
	report, err := o.reconciler(name).Run(ctx, reconcile.Order{
		Collection: r.Collection, DryRun: r.DryRun, Rate: r.Rate, By: r.By,
		Found: func(l reconcile.Line) {
			if r.Found != nil {
				r.Found(asReconcileLine(l))
			}
		},
		Audit: r.audit(result),
	})
	return result(report), kind(err)
}

// auditedSink returns the sink of a collection. It refuses a sink that this program cannot read and
// write.
func (o *Operator) auditedSink(c shard.Collection, wanted string) (string, error) {
	name, err := o.sinkOf(c, wanted)
	return name, cmp.Or(belongs(c), err, o.reached(name, c))
}

// reached refuses a sink that this program cannot read and write.
func (o *Operator) reached(name string, c shard.Collection) error {
	return want(o.Readers[name] != nil && o.Sinks[name] != nil,
		"sink %s of collection %s cannot be read from here", name, c)
}

// sinkOf returns the wanted sink of a collection. If wanted is empty, the collection must have only
// one.
func (o *Operator) sinkOf(c shard.Collection, wanted string) (string, error) {
	all := o.Config.SinksFor(string(c))
	name, known := cmp.Or(wanted, all[0]), strings.Join(all, ", ")
	return name, cmp.Or(
		want(wanted != "" || len(all) == 1, "collection %s is in the sinks %s: name one of them (--sink)", c, known),
		want(slices.Contains(all, name), "sink %s: collection %s is in sink %s", name, c, known))
}

func (o *Operator) looker(name string) reconcile.Looker {
	return reconcile.Looker{
		Shards: o.Shards, Reader: o.Readers[name], SinkName: name, Config: o.Config, Clock: o.Clock, Off: o.Off,
		Parallel: o.Parallel,
	}
}

// audit converts the audit of an order, nil for none.
func (r ReconcileOrder) audit(result func(reconcile.Report) ReconcileResult) *reconcile.Audit {
	if r.Audit == nil {
		return nil
	}
	a := &reconcile.Audit{Keys: r.Audit.Keys, Sample: r.Audit.Sample, Seed: rand.Text(), From: r.Audit.From}
	if r.Reached != nil {
		a.Reached = func(p reconcile.Place, report reconcile.Report) { r.Reached(p, result(report)) }
	}
	if r.Audit.Seen && r.Seen != nil {
		a.Seen = func(page []reconcile.Copy) {
			out := make([]ReconcileCopy, len(page))
			for i, c := range page {
				out[i] = ReconcileCopy{Key: c.Doc, OrderKey: c.Key.String(), Fence: int64(c.Fence)}
			}
			r.Seen(out)
		}
	}
	return a
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
// differs, a page of the sink, or how far an audit is; the last one is the result and the error.
type reconcileUpdate struct {
	Line   *ReconcileLine   `json:"line,omitempty"`
	Seen   []ReconcileCopy  `json:"seen,omitempty"`
	Place  *reconcile.Place `json:"place,omitempty"` // how far an audit is; Result then has the counts until there
	Result *ReconcileResult `json:"result,omitempty"`
	Error  *wireError       `json:"error,omitempty"`
}

func reconciliation(f func(context.Context, ReconcileOrder) (ReconcileResult, error)) http.HandlerFunc {
	return lines(func(ctx context.Context, o ReconcileOrder, tell func(reconcileUpdate)) reconcileUpdate {
		o.Found = func(l ReconcileLine) { tell(reconcileUpdate{Line: &l}) }
		o.Seen = func(page []ReconcileCopy) { tell(reconcileUpdate{Seen: page}) }
		o.Reached = func(p reconcile.Place, res ReconcileResult) { tell(reconcileUpdate{Place: &p, Result: &res}) }
		res, err := f(ctx, o)
		return reconcileUpdate{Result: &res, Error: wired(err)}
	})
}

// Reconcile compares a collection with its rows and repairs the differences that need nothing from
// the source.
func (c *Client) Reconcile(ctx context.Context, o ReconcileOrder) (res ReconcileResult, err error) {
	err = follow(ctx, c, "reconcile", o, "what is listed was done", func(u reconcileUpdate) (bool, *wireError) {
		switch {
		case u.Line != nil && o.Found != nil:
			o.Found(*u.Line)
		case u.Seen != nil && o.Seen != nil:
			o.Seen(u.Seen)
		case u.Place != nil && u.Result != nil && o.Reached != nil:
			o.Reached(*u.Place, *u.Result)
		case u.Place == nil && u.Result != nil:
			res = *u.Result
			return true, u.Error
		}
		return false, nil
	})
	return res, err
}
