// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// LettersReport counts parked dead letters.
type LettersReport struct {
	Seen       int
	Superseded int // dead letters that were deleted, because their version or a newer one is committed
	Redriven   int // dead letters that prune sent again
	Parked     int // dead letters that were parked again, because a redrive had no result
	Blocking   int // dead letters that may be in the sink and block older versions: an operator must act
	Failed     int
}

const (
	letterPage = 100
	// autoAfter is the time between the death of a dead letter and its first automatic redrive. The
	// wait before each further redrive is four times as long as the wait before.
	autoAfter = 15 * time.Minute
)

// letters handles the parked dead letters. It continues where the last run stopped.
func (r *run) letters(ctx context.Context) error {
	rep := &r.report.Letters
	failed := failures{count: &rep.Failed}
	for rep.Seen < r.budget.Letters {
		list, next, err := page(ctx, r.Pruner, func() ([]deadletter.Facts, string, error) {
			return r.Letters.List(ctx, deadletter.Filter{}, r.state.Letters, letterPage)
		})
		if err != nil {
			r.state.Letters = "" // the cursor itself may be the reason
			return err
		}
		rep.Seen += len(list)
		r.letterPage(ctx, list, &failed)
		// If the time is over, the cursor stays before this page, so the next run reads the page
		// again.
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.state.Letters = next; next == "" {
			break
		}
	}
	return failed.segmentError(rep.Seen)
}

// letterPage reads the rows of a page of dead letters and then handles these dead letters. Dead
// letters that block older versions of their documents go first.
func (r *run) letterPage(ctx context.Context, list []deadletter.Facts, failed *failures) {
	facts := slices.DeleteFunc(slices.Clone(list), func(f deadletter.Facts) bool { return !r.mine(f.Sink, f.Doc) })
	docs := make([]shard.DocID, len(facts))
	for i, f := range facts {
		docs[i] = f.Doc
	}
	// One read for the whole page needs fewer calls than a read for each dead letter. The rows may
	// be slightly out of date. prune only relies on them to know that a version is committed. All
	// other decisions read the row again.
	rows, err := r.table().Of(ctx, docs, shard.Eventual)
	if err != nil {
		*failed.count += len(facts)
		failed.keep(fmt.Errorf("read the rows: %w", err))
		return
	}
	for _, urgent := range []bool{true, false} {
		for _, f := range facts {
			if blocking(rows[f.Doc], f) == urgent {
				failed.add(r.letter(ctx, f, rows[f.Doc]))
			}
		}
	}
}

// blocking reports whether the dead letter's version was claimed and the result of its write is
// unknown. The version may be in the sink, so no older version of the document may be written until
// this version is committed.
func blocking(row shard.Row, f deadletter.Facts) bool {
	return f.Key != "" && row.Claimed == f.Key && row.Dead == f.Key && row.Committed < f.Key
}

// letter handles one dead letter.
func (r *run) letter(ctx context.Context, f deadletter.Facts, row shard.Row) error {
	rep := &r.report.Letters
	if f.Key != "" {
		switch shard.Judge(row, f.Key, f.Key.Class(), false) {
		case shard.Stale, shard.Duplicate, shard.TakenBack:
			if err := r.try(ctx, func() error { return r.Letters.Drop(ctx, f.ID) }); err != nil {
				return fmt.Errorf("delete the superseded dead letter %s: %w", f.ID, err)
			}
			rep.Superseded++
			r.note(journal.Note{
				Step: journal.Dropped, Doc: f.Doc, Key: f.Key, Lane: f.Lane, Event: f.Event, Sent: f.Sent, Letter: f.ID,
				Detail: "superseded: its version or a newer one is committed, or an operator took the version back",
			})
			return nil
		}
	}
	now := r.Clock.Now()
	// A dead letter that was redriven, but not committed within the retention of dead letters, is
	// parked again (design section 10).
	if f.State == deadletter.Redriven && f.Shown(now, r.Config.Queues.DeadLetterRetention) == deadletter.Parked {
		there, err := r.parkAgain(ctx, f)
		if err != nil || !there {
			return err
		}
		rep.Parked++
		f.State = deadletter.Parked
	}
	// A copy of the message is in the queue, and the result of that copy decides.
	if f.State != deadletter.Parked || r.sent[f.ID] {
		return nil
	}
	urgent := blocking(row, f)
	// An operator must act, because the reason does not go away by itself, or because no automatic
	// redrive is left.
	if !r.auto(f) {
		if urgent {
			rep.Blocking++
			r.note(journal.Note{
				Step: journal.Blocked, Doc: f.Doc, Key: f.Key, Lane: f.Lane, Sent: f.Sent, Letter: f.ID,
				Detail: "a dead letter may be in the sink and blocks older versions: redrive it",
			})
		}
		return nil
	}
	if shard.Unavailable(r.health) || !urgent && !due(f, now) {
		return nil // the sink is unhealthy, or the redrive is not due
	}
	// The rules are the same as for an operator's redrive: With reads the rows again, consistently.
	// A message is sent only once for all of its dead letters that are due.
	outcome, with, err := r.service().With(ctx, f.ID, redrive.How{Auto: true}, func(f deadletter.Facts) bool {
		return f.State == deadletter.Parked && r.mine(f.Sink, f.Doc) && r.auto(f) && due(f, now)
	})
	if outcome == redrive.Sent {
		rep.Redriven += 1 + len(with)
	}
	for _, f := range with {
		r.sent[f.ID] = true
	}
	return err
}

// due reports whether the dead letter is due for its next automatic redrive.
func due(f deadletter.Facts, now time.Time) bool { return !now.Before(f.Died.Add(autoWait(f.Auto))) }

// auto reports whether the dead letter may still be redriven automatically.
func (r *run) auto(f deadletter.Facts) bool {
	return f.Reason.Transient() && f.Auto < r.Config.Retry.AutoRedrives
}

// autoWait returns how long after its death a dead letter is redriven: 15 minutes, then 1 hour,
// then 4 hours. n is the number of automatic redrives so far.
func autoWait(n int) time.Duration {
	// The bound keeps the product from overflowing: eight steps are about two years.
	return autoAfter << (2 * min(max(n, 0), 8))
}

// parkAgain parks a dead letter again that was redriven, but neither committed nor parked since. It
// returns false if the dead letter no longer exists, because an operator dropped it after prune
// listed it.
func (r *run) parkAgain(ctx context.Context, f deadletter.Facts) (there bool, err error) {
	err = r.try(ctx, func() error {
		l, ok, err := r.Letters.Get(ctx, f.ID)
		if there = ok; err == nil && ok {
			_, err = r.Letters.Park(ctx, l)
		}
		return err
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("park the redriven dead letter %s again: %w", f.ID, err)
	case !there:
		return false, nil
	}
	r.note(journal.Note{
		Step: journal.Parked, Doc: f.Doc, Key: f.Key, Lane: f.Lane, Event: f.Event, Sent: f.Sent, Letter: f.ID,
		Detail: string(f.Reason) + ": sent again on " + f.RedrivenAt.UTC().Format(time.RFC3339) + " and not committed",
	})
	return true, nil
}
