// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"errors"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// reasserter compares the documents that were written without a claim with their rows.
type reasserter struct {
	*holding
	newToken func() shard.Token
	closer   *closer
	engine   *engine
	mirror   *mirror
}

// reassert compares the documents that were written without a claim with their rows. It removes
// each document from the flight that needs nothing more.
func (s *reasserter) reassert(ctx context.Context) {
	// The flight ends before SQS's twelve hours do. Deletes that are not written again by then are
	// listed for a resync.
	last := s.holdEnds()
	for _, d := range s.docs {
		e := d.newest()
		switch {
		case e == nil || d.row.Committed <= e.Key && !d.row.Took(e.Key):
			// the message of this event is judged as new when SQS delivers it again
		case d.row.CommittedOp != shard.Delete || d.row.Committed <= e.Key:
			s.note(s.about(d, e, journal.OutageResync, "the row has a newer version key "+d.row.Committed.String()))
		default:
			err := s.deleteAgain(ctx, d)
			var refused *openError
			switch {
			case err == nil:
				s.note(s.about(d, e, journal.Reasserted, "the row says that the document is deleted"))
			case last || errors.Is(err, errOvertaken) || errors.As(err, &refused) && refused.Kind == sink.Rejected:
				s.note(s.about(d, e, journal.OutageResync, "the delete could not be asserted: "+err.Error()))
			default: // throttled, no answer, or leased: try again later
				s.note(s.about(d, e, journal.Waiting, "the delete is tried again later: "+err.Error()))
				continue
			}
		}
		for e := range d.unfinished() {
			s.drop(e)
		}
	}
}

// errOvertaken says that the row has a newer version than the delete. lull will write that version,
// unless the version is poison.
var errOvertaken = errors.New("a newer version has arrived")

// deleteAgain writes a committed delete again, under a lease.
func (s *reasserter) deleteAgain(ctx context.Context, d *document) error {
	// The lease keeps all other flights from writing the document.
	b := shard.Bid{Doc: d.id, Key: d.row.Committed, Token: s.newToken(), Now: s.now(), Until: s.leaseEnd()}
	b.Fence = shard.NextFence(d.row, b.Now)
	l := b.Lease()
	switch a := s.ask(ctx, shard.Reassert(b)); {
	case a.err == nil, a.refused && a.row.Owner == l.Token: // the write was applied, and only its answer was lost
	case a.refused && (a.row.Committed != l.Key || a.row.Pending > l.Key):
		return errOvertaken
	default:
		return a.err
	}
	ops := []sink.Op{{
		Doc: l.Doc.Plain(), Kind: shard.Delete, Fence: shard.Fence(l.At), Key: l.Key,
		At: l.At.Time(), Present: true,
	}}
	outcomes, _ := s.engine.send(ctx, ops)
	s.mirror.write(ctx, ops, outcomes)
	o := outcomes[0]
	if o.Kind != sink.Applied {
		return &openError{o}
	}
	return s.closer.endLease(ctx, l, d.row, func(shard.Row) shard.Write { return shard.Reasserted(l) }).err
}

// openError is an outcome of the sink that left the delete undone.
type openError struct{ sink.Outcome }

func (e *openError) Error() string { return e.Kind.String() + ": " + e.Reason }
