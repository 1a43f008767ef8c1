package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Errors of Cancel. The version goes on then. Where the row changed under Cancel a dead letter may
// be stored already; it goes once its version, or a newer one, is committed.
var (
	ErrNotPending = errors.New("nothing is pending")
	ErrWriting    = errors.New("it is being written: try again when its lease has ended")
	ErrUnheld     = errors.New("no flight holds it at the moment: try again when its message has been received again")
	ErrWritten    = errors.New("it was written before it could be cancelled")
	ErrOvertaken  = errors.New("a newer version arrived meanwhile: cancel again to cancel that one")
	ErrForeign    = errors.New("the row has a newer schema")
)

// cancelTries bounds how often PARK waits for a lease that was taken after the dead letter was
// stored.
const cancelTries = 3

// Cancel makes the pending version of a document a dead letter `cancelled`, from its manifest, and
// marks the row. What was held besides it, if anything, is the newest then and is written. It
// returns the dead letter's facts; an operator may redrive it.
func (d *Service) Cancel(ctx context.Context, doc shard.DocID, by string) (deadletter.Facts, error) {
	if by == "" {
		return deadletter.Facts{}, fmt.Errorf("cancel %s: nobody is named for the audit", doc)
	}
	f, err := d.cancel(ctx, doc, by)
	if err != nil {
		return deadletter.Facts{}, fmt.Errorf("cancel %s: %w", doc, err)
	}
	return f, nil
}

func (d *Service) cancel(ctx context.Context, doc shard.DocID, by string) (deadletter.Facts, error) {
	// Consistent, because nothing older may be cancelled in place of the pending version.
	row, err := d.rows().One(ctx, doc, shard.Consistent)
	if err != nil {
		return deadletter.Facts{}, fmt.Errorf("read the row: %w", err)
	}
	switch {
	case row.Foreign():
		return deadletter.Facts{}, ErrForeign
	case row.Pending == "" || row.Pending <= row.Committed:
		return deadletter.Facts{}, ErrNotPending
	case row.LeaseUntil >= shard.MicrosOf(d.Clock.Now()):
		// A write that may be under way cannot be taken back.
		return deadletter.Facts{}, ErrWriting
	}
	l, err := d.fromManifest(ctx, row)
	if err != nil {
		return deadletter.Facts{}, err
	}
	l.Detail = "by " + by
	// Store first, then mark the row. After a crash in between, the version is still written and
	// supersedes its dead letter.
	if _, err := backoff.Get(ctx, d.Clock, func() (bool, error) { return d.Letters.Park(ctx, l) }); err != nil {
		return deadletter.Facts{}, fmt.Errorf("park the dead letter: %w", err)
	}
	if err := d.park(ctx, row, l.Facts); err != nil {
		return deadletter.Facts{}, err
	}
	n := journal.Note{
		Step: journal.DeadLettered, At: d.Clock.Now(), Doc: doc, Key: l.Key, Sink: l.Sink, Lane: l.Lane,
		Message: l.MessageID,
		Event:   l.Event, Sent: l.Sent, Detail: string(deadletter.Cancelled) + ": operator " + by, Letter: l.ID,
	}
	d.Journal.Note(n)
	d.note(l.Facts, journal.Parked, n.Detail)
	return l.Facts, nil
}

// fromManifest makes the dead letter of the pending version from the flight that holds it.
func (d *Service) fromManifest(ctx context.Context, row shard.Row) (deadletter.Letter, error) {
	// The row names the flight that admitted its pending version.
	m, err := d.Flights.Get(ctx, flight.ID(row.Flight))
	switch {
	case errors.Is(err, flight.ErrNotFound):
		return deadletter.Letter{}, ErrUnheld
	case err != nil:
		return deadletter.Letter{}, fmt.Errorf("get the manifest: %w", err)
	}
	for _, r := range m.Records {
		for _, e := range r.Events {
			if e.Doc == row.Doc && e.Key == row.Pending {
				l := deadletter.New(r.Message, deadletter.Cancelled, "", e.Doc, e.Key, e.Index, d.Clock.Now())
				l.Sink, l.Lane = m.Sink, string(m.Lane)
				return l, nil
			}
		}
	}
	return deadletter.Letter{}, ErrUnheld
}

// park is PARK after the dead letter is stored. Where a claim came in between, the outcome of its
// write decides.
func (d *Service) park(ctx context.Context, image shard.Row, f deadletter.Facts) error {
	for range cancelTries {
		mark, row, err := d.rows().Park(ctx, f.Doc, f.Key, d.Config.Expires(d.Clock.Now()), image,
			func(shard.Transition) {})
		switch {
		case err != nil:
			return fmt.Errorf("mark the row (the dead letter is stored: cancel again): %w", err)
		case mark == shard.MarkThere:
			return nil
		case mark == shard.MarkForeign:
			return ErrForeign
		case mark == shard.MarkWritten:
			return cmp.Or(d.supersede(ctx, f, How{}), ErrWritten)
		case mark == shard.MarkOvertaken:
			return ErrOvertaken
		}
		image = row
		// A microsecond after the lease, because the condition of PARK is lease_until < now.
		if err := d.Clock.Sleep(ctx, row.LeaseUntil.Sub(shard.MicrosOf(d.Clock.Now()))+time.Microsecond); err != nil {
			return err
		}
	}
	return ErrWriting
}
