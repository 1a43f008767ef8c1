// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Burial describes a write that an operator orders: a tombstone, or a document that another sink of
// the collection holds.
type Burial struct {
	Doc shard.DocID
	// Put is the document, with its version as text. It is nil for a tombstone.
	Put *sink.Stored
	// Group is the message group of a document whose row does not know one; empty for none.
	Group string
	// Key returns the order key to commit, or an error if nothing may be committed.
	Key func(row shard.Row, c shard.InSink) (shard.OrderKey, error)
	By  string // the operator, for the audit
	Why string // the reason, for the audit
	// DryRun only returns the error that would prevent the write now. A dry run reads, but does not
	// check whether the sink accepts writes.
	DryRun bool
}

// ErrMoving says that the document is being written, or that its sink accepts no writes now, so the
// caller must try later.
var ErrMoving = errors.New("not done yet")

// ErrRefused says that the sink refused this document. The sink may accept other documents.
var ErrRefused = errors.New("the sink refuses this document")

// refusal is the error of a request that the sink refused for its document.
type refusal struct{ error }

func (refusal) Is(target error) bool { return target == ErrRefused }

// Bury deletes a document from the sink, or writes it, under a lease, and commits the result. It
// takes the steps of receive and index for an event with that key: ADMIT, CLAIM, the request,
// COMMIT. So the row refuses the write whenever it would refuse such an event, and a newer version
// overwrites it. A caller may repeat Bury at any time. Bury then continues.
func (s *Service) Bury(ctx context.Context, b Burial) error {
	if b.DryRun {
		_, _, err := s.judged(ctx, b)
		return err
	}
	var why error
	for range tries {
		again, err := s.bury(ctx, b)
		if !again {
			return err
		}
		why = err
	}
	return why
}

// judged reads the document. It returns the key to commit, or an error if nothing may be committed.
func (s *Service) judged(ctx context.Context, b Burial) (f Finding, k shard.OrderKey, err error) {
	whole := s.Looker
	whole.Whole = true
	found, err := whole.Look(ctx, []shard.DocID{b.Doc})
	if err != nil {
		return f, "", err
	}
	f = found[0]
	row, at := f.Row, shard.MicrosOf(s.Clock.Now())
	if k, err = b.Key(row, f.Copy); err != nil {
		return f, "", err
	}
	switch pace := s.Config.Timing(b.Doc.Collection()).MinInterval; {
	case row.Foreign():
		err = errors.New("the row has a newer schema: update lull")
	case f.buried(b, k): // an earlier try has already done the write
	case row.Owner != "" && row.LeaseUntil >= at.Add(-s.Off):
		err = fmt.Errorf("the document is being written until %s: %w", row.LeaseUntil.Time().Format("15:04:05"), ErrMoving)
	case row.Committed > k, row.Pending > k, row.Claimed > k:
		err = fmt.Errorf("a newer version is written or waits: %w", ErrMoving)
	case row.LastWrite <= at && row.LastWrite.Add(pace) > at: // ignore the time of a clock that was ahead
		err = fmt.Errorf("the collection allows one write in %s: %w", pace, ErrMoving)
	}
	return f, k, err
}

// buried reports whether the write is already done.
func (f Finding) buried(b Burial, k shard.OrderKey) bool {
	return f.Row.Committed == k && f.Row.Owner == "" &&
		(b.Put != nil || f.Document == nil && f.Copy == (shard.InSink{}))
}

// bury tries the write once. The result again says that the row changed in the meantime, or that
// the sink throttles.
func (s *Service) bury(ctx context.Context, b Burial) (again bool, err error) {
	if err := s.Takes(ctx, b.Doc.Collection()); err != nil {
		return false, err
	}
	f, k, err := s.judged(ctx, b)
	row := f.Row
	switch {
	case err != nil, f.buried(b, k):
		return false, err
	// a committed delete, but the document is still in the sink, or is there again
	case row.Committed == k && b.Put == nil:
		r := &run{Service: s, Order: Order{By: b.By}}
		outcome, err := r.reassert(ctx, f)
		if err == nil && outcome != Reasserted {
			err = ErrMoving
		}
		return false, err
	case row.Pending != k:
		old, err := s.table().Write(ctx, shard.Admit(shard.Admission{
			Doc: b.Doc, Key: k, Class: k.Class(), Flight: b.flight(), Group: cmp.Or(row.Group, b.Group),
			Now: shard.MicrosOf(s.Clock.Now()),
		}))
		switch refused, ok := shard.AsRefused(err); {
		case ok && refused.Row.Pending != k:
			return true, fmt.Errorf("the row accepts no %s now: %w", b.op(), ErrMoving)
		case err == nil:
			row = old
		case !ok:
			return false, fmt.Errorf("ADMIT: %w", err)
		}
	}
	return s.claimAndWrite(ctx, b, row, k)
}

// These are the names of the flight in a row whose pending version an operator admitted. No message
// exists for such a version. A later repair completes an unfinished tombstone, but not a copy, so
// the two names differ.
const (
	operatorFlight = "operator"
	copyFlight     = "operator-copy"
)

func (b Burial) flight() string {
	if b.Put != nil {
		return copyFlight
	}
	return operatorFlight
}

func (b Burial) op() shard.Operation {
	if b.Put != nil {
		return shard.Put
	}
	return shard.Delete
}

// begun reports whether the writing of a tombstone stopped after its ADMIT. The version of the
// tombstone is then pending, but no message has this version.
func begun(row shard.Row) bool { return row.Flight == operatorFlight && row.Pending > row.Committed }

// Copying reports whether a copy from another sink stopped after its ADMIT. No flight continues the
// copy, and its pending version blocks older versions.
func Copying(row shard.Row) bool { return row.Flight == copyFlight && row.Pending > row.Committed }

// complete continues a tombstone that stopped, and reports whether the tombstone is done now.
func (r *run) complete(ctx context.Context, row shard.Row) bool {
	return r.Bury(ctx, Burial{
		Doc: row.Doc, By: r.By, Why: "an operator began it, and stopped",
		Key: func(now shard.Row, _ shard.InSink) (shard.OrderKey, error) {
			if now.Pending != row.Pending {
				return "", ErrMoving
			}
			return row.Pending, nil
		},
	}) == nil
}

// Takes returns an error whenever a function would not write either: if the sink is paused or away,
// or if the collection is being rebuilt into another index. If the sink has been away long enough,
// Takes pings it.
func (s *Service) Takes(ctx context.Context, c shard.Collection) error {
	h, err := s.health(ctx)
	switch {
	case err != nil:
		return err
	case h.OpenUntil != 0 && !s.answers(ctx, h):
		return fmt.Errorf("sink %s does not accept writes: %w", s.SinkName, ErrMoving)
	}
	return s.lets(h, c)
}

// answers pings a sink whose circuit has been open long enough, and closes the circuit, as a flight
// does. Perhaps no flight is left to do it, because all waiting documents may be done.
func (s *Service) answers(ctx context.Context, h shard.Row) bool {
	now := shard.MicrosOf(s.Clock.Now())
	circuit, _ := shard.Health(h, now.Add(-s.Off))
	until := now.Add(s.Config.Index.SinkDeadline + s.Config.Index.Guard)
	if circuit != shard.CircuitProbe {
		return false
	}
	if _, err := s.table().Write(ctx, shard.Probe(s.SinkName, now.Add(-s.Off), until)); err != nil {
		return false // a flight is already probing the sink
	}
	call, cancel := s.Clock.Deadline(ctx, s.Config.Index.SinkDeadline)
	err := s.Sink.Ping(call)
	cancel()
	pace := shard.Restart(h, now)
	switch {
	case errors.Is(err, sink.ErrDenied):
		pace = shard.ProbePace
	case err != nil:
		return false
	}
	now = shard.MicrosOf(s.Clock.Now())
	if _, err := s.table().Write(ctx, shard.Close(s.SinkName, until, now, pace)); err != nil {
		return false
	}
	s.Journal.Note(journal.Note{Step: journal.CircuitClosed, At: now.Time(), Sink: s.SinkName})
	return true
}

// lets returns an error if the sink is paused, or if the collection is being rebuilt into another
// index.
func (s *Service) lets(h shard.Row, c shard.Collection) error {
	switch {
	case h.PausedAt != 0:
		return fmt.Errorf("sink %s is paused, until `lull resume`: %w", s.SinkName, ErrMoving)
	case h.RebuildAt != 0 && h.RebuildOf == string(c):
		return fmt.Errorf("%s is being rebuilt into %s, and the new index would keep it, until `lull rebuild status` "+
			"shows its end: %w", c, h.RebuildInto, ErrMoving)
	}
	return nil
}

func (s *Service) health(ctx context.Context) (shard.Row, error) {
	h, err := s.table().One(ctx, shard.HealthRow(s.SinkName), shard.Consistent)
	if err != nil {
		return h, fmt.Errorf("read the health of sink %s: %w", s.SinkName, err)
	}
	return h, nil
}

// claimAndWrite takes the lease of the pending version, deletes or writes the document, and commits
// the result.
func (s *Service) claimAndWrite(ctx context.Context, b Burial, row shard.Row, k shard.OrderKey) (again bool,
	err error,
) {
	now := s.Clock.Now()
	at, until := shard.MicrosOf(now), s.leaseEnd(now)
	fence := shard.NextFence(row, at)
	if s.Off > 0 {
		fence = shard.FenceAfter(row, at)
	}
	// The clock of this machine may be ahead, so the bid uses an earlier time. Otherwise a lease
	// that is still in use would look expired.
	bid := shard.Bid{
		Doc: b.Doc, Key: k, Token: s.NewToken(), Now: at.Add(-s.Off), Fence: fence,
		Until: shard.MicrosOf(until), Again: row.Claimed == k,
		MinInterval: s.Config.Timing(b.Doc.Collection()).MinInterval,
	}
	l, w := bid.Lease(), shard.Claim(bid)
	old, err := s.table().Ensure(ctx, w, func(row shard.Row) bool { return shard.OwnClaim(row, bid) })
	if _, refused := shard.AsRefused(err); refused {
		return true, fmt.Errorf("another writer has the document: %w", ErrMoving)
	}
	if err != nil {
		return false, fmt.Errorf("CLAIM: %w", err)
	}
	// Measure the delay by the wall clock, because a timer does not run while the machine sleeps.
	if late := shard.MicrosOf(s.Clock.Now()).Sub(at); late > margin {
		return false, fmt.Errorf("CLAIM took %s, which leaves no time for a request: %w", late, ErrMoving)
	}
	out := s.request(ctx, l, b.Put, old.CommittedOp == shard.Put)
	err = fmt.Errorf("%s: %s: %s", b.op(), out.Kind, out.Reason)
	switch out.Kind {
	case sink.Applied:
		return false, s.commit(ctx, b, l, w.Apply(old))
	case sink.Unknown, sink.Newer: // the lease stays until the sink can no longer apply the request
		return false, fmt.Errorf("%w: try again after %s: %w", err, until.UTC().Format("15:04:05"), ErrMoving)
	case sink.Refused, sink.Rejected:
		err = refusal{err}
	case sink.Throttled, sink.Configuration:
	}
	if err := s.end(ctx, l, shard.Release(l, string(b.op())+": "+out.Kind.String(), false)); err != nil {
		return false, fmt.Errorf("RELEASE: %w", err)
	}
	return out.Kind == sink.Throttled && s.Clock.Sleep(ctx, max(out.RetryAfter, margin)) == nil, err
}

// commit does COMMIT. If the row changed, commit retries with the newest row.
func (s *Service) commit(ctx context.Context, b Burial, l shard.Lease, image shard.Row) error {
	for range tries {
		now := s.Clock.Now()
		w := shard.Commit(l, b.op(), shard.MicrosOf(now), s.Config.Lifecycle.Expires(now), image)
		_, err := s.table().Write(ctx, w)
		refused, ok := shard.AsRefused(err)
		if err == nil || ok && shard.Ended(refused.Row, l, w) {
			step := journal.Removed
			if b.Put != nil {
				step = journal.Copied
			}
			s.Journal.Note(journal.Note{
				Step: step, At: now, Sink: s.SinkName, Doc: l.Doc, Key: l.Key, Old: image,
				Detail: "by " + b.By + ": " + b.Why,
			})
			return nil
		}
		if !ok {
			return fmt.Errorf("COMMIT: %w", err)
		}
		if image = refused.Row; image.Owner != l.Token {
			break
		}
	}
	return fmt.Errorf("the lease was lost: %w", ErrMoving)
}
