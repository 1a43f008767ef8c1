// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// tries is how often lull tries again with a document that changed between read and write.
const tries = 3

// raise does RAISE. If the row refuses RAISE, raise reads the document again.
func (r *run) raise(ctx context.Context, f Finding) (Outcome, error) {
	for range tries {
		if r.DryRun {
			return Raised, nil
		}
		_, err := r.table().Ensure(ctx, shard.Raise(f.Row, f.Copy, f.quiet, r.Config.Lifecycle.Expires(r.Clock.Now())),
			func(row shard.Row) bool { return row.Committed == f.Copy.Key })
		if err == nil {
			r.note(journal.Raised, f, f.Copy.Key)
			return Raised, nil
		}
		if _, refused := shard.AsRefused(err); !refused {
			return Failed, fmt.Errorf("RAISE: %w", err)
		}
		again, err := r.Look(ctx, []shard.DocID{f.Row.Doc})
		if err != nil {
			return Failed, err
		}
		if f = again[0]; f.Difference != shard.Behind {
			break
		}
	}
	return Later, nil
}

// reassert writes a committed delete again, under a lease. If the sink throttles, reassert waits
// and retries.
func (r *run) reassert(ctx context.Context, f Finding) (Outcome, error) {
	if r.DryRun {
		return Reasserted, nil
	}
	var out sink.Outcome
	for n := range tries {
		now := r.Clock.Now()
		// A rebuild that begins after this read waits for the end of the lease before it compares.
		h, err := r.health(ctx)
		if err != nil {
			return Failed, err
		}
		if denied := r.lets(h, f.Row.Doc.Collection()); denied != nil {
			return Later, nil //nolint:nilerr // the outcome says it
		}
		b := shard.Bid{Doc: f.Row.Doc, Key: f.Row.Committed, Token: r.NewToken(), Now: shard.MicrosOf(now)}
		b.Fence = shard.NextFence(f.Row, b.Now)
		l := b.Lease()
		b.Until = shard.MicrosOf(r.leaseEnd(now))
		_, err = r.table().Ensure(ctx, shard.Reassert(b), func(row shard.Row) bool { return row.Owner == l.Token })
		if _, refused := shard.AsRefused(err); refused {
			return Later, nil
		}
		if err != nil {
			return Failed, fmt.Errorf("renew the lease of %s: %w", f.Row.Doc, err)
		}
		// Measure the delay by the wall clock, because a timer does not run while the machine
		// sleeps.
		if late := shard.MicrosOf(r.Clock.Now()).Sub(b.Now); late > margin {
			return Failed, fmt.Errorf("renewing the lease of %s took %s: the lease is too short for a request now",
				f.Row.Doc, late)
		}
		out = r.request(ctx, l, nil, false)
		if out.Kind == sink.Unknown || out.Kind == sink.Newer {
			break // the lease stays until the sink can no longer apply the request
		}
		if err := r.end(ctx, l, shard.Reasserted(l)); err != nil {
			return Failed, fmt.Errorf("REASSERTED: %w", err)
		}
		if out.Kind == sink.Applied {
			r.note(journal.Reasserted, f, l.Key)
			return Reasserted, nil
		}
		if out.Kind != sink.Throttled || r.Clock.Sleep(ctx, max(out.RetryAfter, time.Second<<n)) != nil {
			break
		}
	}
	return Failed, fmt.Errorf("delete: %s: %s", out.Kind, out.Reason)
}

// margin is the longest time that a REASSERT may take before its delete is sent.
const margin = 5 * time.Second

// leaseEnd returns the end of a lease that begins now. The lease covers the time until the request
// is sent (margin), the request itself, and the time for which the sink may apply it later.
func (s *Service) leaseEnd(now time.Time) time.Time {
	c := s.Config
	delay := c.Sinks[s.SinkName].Capabilities().ApplyDelay
	return now.Add(margin + c.Index.SinkDeadline + c.Index.Guard + s.Off + delay)
}

// end releases a lease. If the lease is already released, only the answer of the release was lost.
func (s *Service) end(ctx context.Context, l shard.Lease, w shard.Write) error {
	_, err := s.table().Ensure(ctx, w, func(row shard.Row) bool { return shard.Ended(row, l, w) })
	return err
}

// request sends one request to the sink: it writes the document put, or deletes the document if put
// is nil. present says that a put was committed before.
func (s *Service) request(ctx context.Context, l shard.Lease, put *sink.Stored, present bool) sink.Outcome {
	call, cancel := s.Clock.Deadline(ctx, s.Config.Index.SinkDeadline)
	defer cancel()
	op := sink.Op{
		Doc: l.Doc.Plain(), Kind: shard.Delete, Fence: shard.Fence(l.At), Key: l.Key, At: l.At.Time(), Present: present,
	}
	if put != nil {
		op.Kind, op.Version, op.Document = shard.Put, put.Version, put.Document
	}
	out := s.Sink.Write(call, []sink.Op{op})
	if len(out) != 1 {
		return sink.Outcome{Kind: sink.Unknown, Reason: "the answer has a wrong number of items"}
	}
	return out[0]
}

// note writes the audit note of a change.
func (r *run) note(step journal.Step, f Finding, k shard.OrderKey) {
	r.Journal.Note(journal.Note{
		Step: step, At: r.Clock.Now(), Sink: r.SinkName, Doc: f.Row.Doc, Key: k, Old: f.Row,
		Detail: "by " + r.By + ": the sink had " + f.Copy.Key.String() + ", the row " + f.Row.Committed.String(),
	})
}
