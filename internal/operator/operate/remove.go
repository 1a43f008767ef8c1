// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/shard"
)

// RemoveOrder names documents that the sink has and the source lacks.
type RemoveOrder struct {
	Collection shard.Collection `json:"collection"`
	Documents  []ReconcileCopy  `json:"documents"`      // the documents as Reconcile has seen them
	Sink       string           `json:"sink,omitempty"` // the sink, if the collection has several
	Run        string           `json:"run"`            // the resync run of the repair, a ULID: it makes the delete newer
	DryRun     bool             `json:"dry_run,omitempty"`
	By         string           `json:"by"` // the operator, for the audit
}

// Removal is the outcome for one document. In a dry run it is the expected outcome.
type Removal struct {
	Key     shard.DocID `json:"key"`
	Outcome string      `json:"outcome"` // removed, changed, in_motion, failed
	Error   string      `json:"error,omitempty"`
}

// The outcomes of a removal.
const (
	removed  = "removed"
	changed  = "changed" // the document has changed since it was seen, so another writer has it
	inMotion = string(reconcile.Moving)
	failed   = string(reconcile.Failed)
)

// Removed is the answer of Remove.
type Removed struct {
	Documents []Removal `json:"documents"`
}

// maxRemove is how many documents one order may name.
const maxRemove = 1000

// remover removes documents that the source does not have.
type remover struct{ engines }

// Remove deletes documents from the sink that the source does not have. It skips a document that
// has changed since Reconcile saw it, or that is in motion. The delete is committed as a version
// just above the version that was seen, so it never removes a newer version.
func (o *remover) Remove(ctx context.Context, r RemoveOrder) (Removed, error) {
	name, err := o.auditedSink(r.Collection, r.Sink)
	run, wrong := runOf(r.Run)
	err = cmp.Or(err, wrong, named(r.By),
		want(len(r.Documents) <= maxRemove, "documents: %d, at most %d in one order", len(r.Documents), maxRemove))
	if err != nil {
		return Removed{}, err
	}
	done := Removed{Documents: []Removal{}}
	for _, seen := range r.Documents {
		if seen.Key.Collection() != r.Collection || o.Config.SinkOf(seen.Key) != name {
			return done, inputf("documents: %s is not of collection %s in sink %s", seen.Key, r.Collection, name)
		}
		outcome, err := outcomeOf(removed, o.reconciler(name).Bury(ctx, reconcile.Burial{
			Doc: seen.Key, By: r.By, DryRun: r.DryRun,
			Why: "the source does not have it, and the sink had " + seen.OrderKey,
			Key: func(row shard.Row, c shard.InSink) (shard.OrderKey, error) { return o.removal(row, c, seen, run) },
		}))
		line := Removal{Key: seen.Key, Outcome: outcome}
		if err != nil {
			line.Error = err.Error()
		}
		if ctx.Err() != nil && err != nil {
			return done, ctx.Err()
		}
		done.Documents = append(done.Documents, line)
	}
	return done, nil
}

// unchanged is an error with which a document is left unchanged. Its text is the outcome that the
// caller lists.
type unchanged string

func (s unchanged) Error() string { return "the outcome is " + string(s) }

// outcomeOf converts the result of [reconcile.Service.Bury] to an outcome. If Bury succeeded, the
// outcome is done.
func outcomeOf(done string, err error) (string, error) {
	var why unchanged
	switch {
	case err == nil:
		return done, nil
	case errors.As(err, &why):
		return string(why), nil
	case errors.Is(err, reconcile.ErrMoving):
		return inMotion, nil
	}
	return failed, err
}

// removal returns the order key with which to delete a document; see removalKey.
func (o *remover) removal(row shard.Row, c shard.InSink, seen ReconcileCopy, run shard.Run) (shard.OrderKey, error) {
	ours, err := shard.ParseOrderKey(seen.OrderKey)
	if err != nil {
		ours = ""
	}
	was := max(row.Committed, ours)
	if parts, err := was.Parts(); err == nil && parts.Run == run && row.CommittedOp == shard.Delete {
		return row.Committed, nil // this run has deleted the document already
	}
	k, err := o.removalKey(seen.Key.Collection(), was, run)
	switch {
	case err != nil, row.Pending == k: // an earlier try began the delete
		return k, err
	case c.Key != ours || int64(c.Fence) != seen.Fence && c.Key != "", row.Pending > row.Committed:
		return "", unchanged(changed)
	}
	return k, nil
}

// removalKey returns the order key of the version that lull has, as an event of this run. A
// document that lull did not write has no version. Its delete gets a key below every event.
func (o *remover) removalKey(c shard.Collection, was shard.OrderKey, run shard.Run) (shard.OrderKey, error) {
	if was == "" {
		first, err := o.firstVersion(c, 0)
		if err != nil {
			return "", err
		}
		return shard.NewOrderKey(shard.Parts{Version: first, Digest: shard.Digest{7: 1}})
	}
	parts, err := was.Parts()
	if err != nil {
		return "", err
	}
	parts.Run, parts.Digest = run, shard.Digest{7: 1}
	k, err := shard.NewOrderKey(parts)
	if err == nil && k <= was {
		err = fmt.Errorf("its version belongs to a later resync run, %s", was)
	}
	return k, err
}
