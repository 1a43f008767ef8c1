// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/operator/export"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// ReconcileOrder asks for one page of comparing a collection with its rows.
type ReconcileOrder struct {
	Collection shard.Collection `json:"collection"`
	DryRun     bool             `json:"dry_run,omitempty"`
	By         string           `json:"by"`             // the operator, for the audit
	Sink       string           `json:"sink,omitempty"` // a sink of the collection; empty if it has only one
	From       reconcile.Place  `json:"from,omitzero"`  // Next of the page before
	// Limit is how many documents and rows the page may have, 1 to 10,000; 0 is 5,000.
	Limit  int           `json:"limit,omitempty"`
	Keys   []shard.DocID `json:"keys,omitempty"`   // compare only these documents, at most 1,000
	Sample int           `json:"sample,omitempty"` // compare so many rows at random, at most 10,000; 0 for all documents
	Seen   bool          `json:"seen,omitempty"`   // also list every document in the sink
	Absent bool          `json:"absent,omitempty"` // also list every document that has a row, and that the sink lacks
}

// ReconcilePage is a page of a comparison.
type ReconcilePage struct {
	reconcile.Report
	Lines []ReconcileLine `json:"lines,omitempty"`
	Seen  []ReconcileCopy `json:"seen,omitempty"`
	// Absent are documents that have a row, and that the sink lacks.
	Absent []shard.DocID    `json:"absent,omitempty"`
	Next   *reconcile.Place `json:"next,omitempty"` // where the next page begins; nil at the end
	// Unknown says that no setting names the collection.
	Unknown bool `json:"unknown,omitempty"`
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
	Committed  string      `json:"committed"`  // the row's committed order key in print, "" for none
	InSink     string      `json:"in_sink"`    // the order key in the sink in print, "" for no document
	Version    string      `json:"version"`    // the newer version of these two, for people
	Error      string      `json:"error,omitempty"`
}

const (
	maxReconciled = 1000
	// MaxSample is how many rows a sample may have.
	MaxSample = 10_000
)

// comparer compares sinks with rows and with exports.
type comparer struct {
	engines

	Sources *source.Set
	Fetch   export.Fetch // nil if this program cannot ask the sources
}

// Reconcile compares a page of a collection with its rows. It repairs the differences that can be
// repaired without the source.
func (o *comparer) Reconcile(ctx context.Context, r ReconcileOrder) (ReconcilePage, error) {
	name, err := o.auditedSink(r.Collection, r.Sink)
	limit, wrong := limited(r.Limit, reconcile.MaxPage/2, reconcile.MaxPage)
	err = cmp.Or(named(r.By), wrong,
		want(r.Sample >= 0 && r.Sample <= MaxSample, "sample %d: want a number up to %d, or 0 for all", r.Sample, MaxSample),
		want(len(r.Keys) <= maxReconciled, "keys: %d, at most %d in one order", len(r.Keys), maxReconciled), err)
	if err != nil {
		return ReconcilePage{}, err
	}
	s := o.reconciler(name)
	p, err := s.Compare(ctx, reconcile.Order{
		Collection: r.Collection, DryRun: r.DryRun, By: r.By, From: r.From, Limit: limit, Keys: r.Keys,
		Sample: r.Sample,
		Seed:   rand.Text(),
	})
	page := ReconcilePage{Report: p.Report, Next: p.Next, Unknown: !s.Known(r.Collection)}
	for _, l := range p.Lines {
		page.Lines = append(page.Lines, asReconcileLine(l))
	}
	if r.Absent {
		page.Absent = p.Absent
	}
	for _, c := range p.Seen {
		if r.Seen {
			page.Seen = append(page.Seen, ReconcileCopy{Key: c.Doc, OrderKey: c.Key.String(), Fence: int64(c.Fence)})
		}
	}
	return page, kind(o.moving(ctx, name, err))
}

// moving marks the error of a comparison with reconcile.ErrMoving if lull writes nothing to the
// sink at present. The comparison cannot succeed then, and another alarm already says so.
func (o *comparer) moving(ctx context.Context, name string, err error) error {
	if err == nil || errors.Is(err, reconcile.ErrMoving) {
		return err
	}
	health, unread := o.Shards.Read(ctx, []shard.DocID{shard.HealthRow(name)}, shard.Consistent)
	if unread != nil || !shard.Unavailable(health[0]) {
		return err
	}
	return fmt.Errorf("sink %s is paused or unhealthy, %w: %w", name, reconcile.ErrMoving, err)
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
