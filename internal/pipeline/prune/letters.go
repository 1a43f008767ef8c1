package prune

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/redrive"
	"github.com/lullhq/lull/internal/shard"
)

// LettersReport counts parked dead letters.
type LettersReport struct {
	Seen       int
	Superseded int // their version or a newer one is committed: deleted
	Redriven   int // by themselves
	Parked     int // sent again, heard of no more: parked again
	Blocking   int // may be in the sink, keep older versions out and are not sent again by themselves: for an operator
	Failed     int
}

const (
	letterPage = 100
	// autoAfter is how long the first automatic redrive waits; each further one waits four times as
	// long.
	autoAfter = 15 * time.Minute
)

// letters goes through the parked dead letters, from where the last run ended.
func (r *run) letters(ctx context.Context) error {
	rep := &r.report.Letters
	failed := failures{count: &rep.Failed}
	for rep.Seen < r.budget.Letters {
		list, next, err := page(ctx, r.Pruner, func() ([]deadletter.Facts, string, error) {
			return r.Letters.List(ctx, deadletter.Filter{}, r.state.Letters, letterPage)
		})
		if err != nil {
			r.state.Letters = "" // the cursor itself may be what is wrong
			return err
		}
		rep.Seen += len(list)
		r.letterPage(ctx, list, &failed)
		// The cursor stays before this page, so the next run reads the page again.
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.state.Letters = next; next == "" {
			break
		}
	}
	return failed.of(rep.Seen)
}

// letterPage reads the rows of a page of dead letters and then acts: first on those that keep older
// versions of their documents out.
func (r *run) letterPage(ctx context.Context, list []deadletter.Facts, failed *failures) {
	facts := slices.DeleteFunc(slices.Clone(list), func(f deadletter.Facts) bool { return !r.mine(f.Sink, f.Doc) })
	docs := make([]shard.DocID, len(facts))
	for i, f := range facts {
		docs[i] = f.Doc
	}
	// One read for the whole page needs fewer calls than one for each dead letter. The rows may be a
	// little old: what is believed of them is that something was committed, and who acts on anything
	// else reads again.
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

// blocking says that the dead letter's version was claimed without an answer before it died: it may
// be in the sink, so nothing older of its document may be written until it is.
func blocking(row shard.Row, f deadletter.Facts) bool {
	return f.Key != "" && row.Claimed == f.Key && row.Dead == f.Key && row.Committed < f.Key
}

// letter does what is due for one dead letter.
func (r *run) letter(ctx context.Context, f deadletter.Facts, row shard.Row) error {
	rep := &r.report.Letters
	if f.Key != "" {
		switch shard.Judge(row, f.Key, f.Key.Class(), false) {
		case shard.Stale, shard.Duplicate:
			if err := r.try(ctx, func() error { return r.Letters.Drop(ctx, f.ID) }); err != nil {
				return fmt.Errorf("delete the superseded dead letter %s: %w", f.ID, err)
			}
			rep.Superseded++
			r.note(journal.Note{
				Step: journal.Dropped, Doc: f.Doc, Key: f.Key, Lane: f.Lane, Event: f.Event, Sent: f.Sent, Letter: f.ID,
				Detail: "superseded: its version or a newer one is committed",
			})
			return nil
		}
	}
	now := r.Clock.Now()
	// Redriven and not committed after dead-letter retention: parked again (design section 10).
	if f.State == deadletter.Redriven && f.Shown(now, r.Config.Queues.DeadLetterRetention) == deadletter.Parked {
		there, err := r.parkAgain(ctx, f)
		if err != nil || !there {
			return err
		}
		rep.Parked++
		f.State = deadletter.Parked
	}
	// A copy is under way, and its outcome decides.
	if f.State != deadletter.Parked || r.sent[f.ID] {
		return nil
	}
	urgent := blocking(row, f)
	// An operator has to act: the reason does not pass by itself, or the automatic redrives are
	// used up.
	if !r.auto(f) {
		if urgent {
			rep.Blocking++
			r.note(journal.Note{
				Step: journal.Blocked, Doc: f.Doc, Key: f.Key, Lane: f.Lane, Sent: f.Sent, Letter: f.ID,
				Detail: "a dead letter may be in the sink and keeps older versions out: redrive it",
			})
		}
		return nil
	}
	if shard.Unavailable(r.health) || !urgent && !due(f, now) {
		return nil // the sink is not well, or it is not time
	}
	// The same rules as for an operator: With reads the rows again, consistently. A message goes
	// once for all of its dead letters that are due.
	outcome, with, err := r.service().With(ctx, f.ID, redrive.How{Auto: true}, func(f deadletter.Facts) bool {
		return f.State == deadletter.Parked && r.mine(f.Sink, f.Doc) && r.auto(f) && due(f, now)
	})
	if outcome == redrive.Sent {
		rep.Redriven += 1 + len(with)
	}
	for _, id := range with {
		r.sent[id] = true
	}
	return err
}

// due says that it is time to send the dead letter again by itself.
func due(f deadletter.Facts, now time.Time) bool { return !now.Before(f.Died.Add(autoWait(f.Auto))) }

// auto says that the dead letter may still be sent again by itself.
func (r *run) auto(f deadletter.Facts) bool {
	return f.Reason.Transient() && f.Auto < r.Config.Retry.AutoRedrives
}

// autoWait is how long after its death a dead letter is sent again: 15 minutes, then 1 hour, then
// 4.
func autoWait(n int) time.Duration {
	// The bound keeps the product from overflowing: eight steps are about two years.
	return autoAfter << (2 * min(max(n, 0), 8))
}

// parkAgain sets a dead letter back that was sent again and of which neither a commit nor another
// death was heard. It reports whether the dead letter is still there: somebody may have dropped it
// since it was listed.
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
