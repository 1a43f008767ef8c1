// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// maxPage is how many documents or rows a step of the walk compares. maxSourcePage is the same with
// FromSource: the cursor must have room for the names of the documents.
const (
	maxPage       = 5000
	maxSourcePage = 500
)

func (s step) order() operate.ReconcileOrder {
	limit := s.limit(maxPage)
	if s.FromSource {
		limit = maxSourcePage
	}
	return operate.ReconcileOrder{
		Collection: s.Collection, DryRun: !s.Repair, By: s.By, Sink: s.Sink, From: s.Place, Limit: limit,
		Sample: s.Sample, Seen: !s.CompleteAt.IsZero() || s.FromSource, Absent: s.FromSource,
	}
}

// walk compares a page of the sink's documents and of the rows.
func (s step) walk(ctx context.Context) error {
	p, err := s.page(ctx)
	if err != nil {
		return err
	}
	s.out.Did(p.Documents + p.Rows)
	s.out.Count(countDocuments, p.Documents)
	s.out.Count(countRows, p.Rows)
	s.Documents, s.Rows = s.Documents+p.Documents, s.Rows+p.Rows
	s.Orphaned += len(s.orphansOf(p.Seen))
	for _, l := range p.Lines {
		s.differs(l)
	}
	switch {
	case p.Next != nil:
		s.Place, s.Settle = *p.Next, s.full()
	case p.Unknown && s.Documents+s.Rows == 0 && s.Export == "" && s.Sample == 0:
		return fmt.Errorf("%s: no such collection in the settings, the table or the sink: %w", s.Collection,
			operate.ErrNotFound)
	case s.FromSource, s.Orphaned > 0 && s.Invalid == 0:
		s.next(removing)
	default:
		s.next(finished)
	}
	return nil
}

// page compares the next page, and notes the documents about which the source must be asked.
func (s step) page(ctx context.Context) (operate.ReconcilePage, error) {
	for o := s.order(); ; o.Limit = max(1, o.Limit/4) {
		p, err := s.Stack.Reconcile(ctx, o)
		if err != nil || !s.FromSource {
			return p, err
		}
		// A page may be repeated. If the names of its documents are too long for the cursor,
		// compare a smaller page.
		if keys := asked(p); s.Sample > 0 || o.Limit == 1 || size(keys) <= someBytes {
			s.Ask = append(s.Ask, keys...)
			return p, nil
		}
	}
}

// differs handles a document in which sink and row differ.
func (s step) differs(l operate.ReconcileLine) {
	switch {
	case s.isTold(l.Key): // the answer names the document already, because it differed from the export
		return
	case l.Outcome == inMotion, l.Outcome == later:
		s.look(l.Key)
		return
	case l.Outcome == left && !s.CompleteAt.IsZero(): // an orphan
		return
	case s.FromSource && (l.Outcome == left || l.Outcome == string(reconcile.Resync)): // the source decides
		return
	case !s.Repair:
		l.Outcome = Found
	}
	s.tell(Line{Key: l.Key, Difference: l.Difference, Version: l.Version, Outcome: l.Outcome, Error: l.Error})
}

// orphansOf returns the documents of a page that the export lacks. It leaves out documents that
// lull wrote less than clock.Trust before the export was complete, or after it.
func (s step) orphansOf(page []operate.ReconcileCopy) (orphans []operate.ReconcileCopy) {
	before := shard.MicrosOf(s.CompleteAt.Add(-clock.Trust))
	for _, c := range page {
		if _, has := s.exported[hashOf(c.Key)]; !has && shard.Micros(c.Fence) < before {
			orphans = append(orphans, c)
		}
	}
	return orphans
}

// removeBatch is how many orphans a step removes.
const removeBatch = 100

// removeOrphans removes the next orphans. If the job does not repair, it only names them.
func (s step) removeOrphans(ctx context.Context) error {
	if s.Repair && !s.Confirmed {
		return &Unconfirmed{s.Orphaned, s.Documents}
	}
	o := s.order()
	o.DryRun, o.Sample = true, 0
	p, err := s.Stack.Reconcile(ctx, o)
	if err != nil {
		return err
	}
	orphans := s.orphansOf(p.Seen)
	if len(orphans) > removeBatch {
		orphans = orphans[:removeBatch]
		p.Next = &reconcile.Place{After: orphans[removeBatch-1].Key.ID()}
	}
	if err := s.remove(ctx, orphans); err != nil {
		return err
	}
	if p.Next == nil || p.Next.Rows {
		s.next(finished)
	} else {
		s.Place, s.Settle = *p.Next, s.full()
	}
	return nil
}

// remove removes orphans. It keeps the orphans in motion for the next try.
func (s step) remove(ctx context.Context, orphans []operate.ReconcileCopy) error {
	if len(orphans) == 0 {
		return nil
	}
	s.out.Did(len(orphans))
	if s.Repair {
		if err := s.pause(ctx, len(orphans)); err != nil {
			return err
		}
	}
	done, err := s.Stack.Remove(ctx, operate.RemoveOrder{
		Collection: s.Collection, Documents: orphans, Run: s.Run, DryRun: !s.Repair, By: s.By, Sink: s.Sink,
	})
	if err != nil {
		return err
	}
	for i, r := range done.Documents {
		switch {
		case r.Outcome == "changed": // the document was written in the meantime, so it stays
		case r.Outcome == inMotion:
			s.lookOrphan(orphans[i])
		case s.Repair:
			s.tell(Line{Key: r.Key, Difference: "orphan", Outcome: r.Outcome, Error: r.Error})
		default:
			s.tell(Line{Key: r.Key, Difference: "orphan", Outcome: Found})
		}
	}
	return nil
}
