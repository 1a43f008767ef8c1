// SPDX-License-Identifier: Apache-2.0

package redrive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Errors of Cancel. Each of them means that the version is not cancelled. If the row changed during
// Cancel, the version's dead letter may already be stored. prune deletes such a dead letter once
// its version or a newer one is committed.
var (
	ErrNotPending = errors.New("nothing is pending")
	ErrNotPlanned = errors.New("no event is scheduled: in the last quarter of an hour before its time an event is in the queue, " +
		"and can be cancelled once it is pending")
	ErrWriting   = errors.New("the version is being written: try again when its lease has ended")
	ErrUnheld    = errors.New("no flight holds the version now: try again when its message has been received again")
	ErrWritten   = errors.New("the version was written before it could be cancelled")
	ErrOvertaken = errors.New("a newer version arrived: cancel again to cancel the newer version")
	ErrOutdated  = errors.New("a newer version is committed or pending, so the scheduled one will not be written")
	ErrForeign   = errors.New("the row has a newer schema")
)

// cancelTries bounds how often PARK waits for a lease. Such a lease was taken after the dead letter
// was stored.
const cancelTries = 3

// Cancel makes the pending version of a document a dead letter with the reason `cancelled`, from
// the version's manifest. Then Cancel marks the row. If an older version is held, that version is
// now the newest one and is written. Cancel returns the facts of the dead letter, which an operator
// may redrive.
func (d *Service) Cancel(ctx context.Context, doc shard.DocID, by string) (deadletter.Facts, error) {
	return audited(ctx, "cancel", doc, by, d.cancel)
}

// audited runs a change of a document. It requires the name of the operator.
func audited(ctx context.Context, what string, doc shard.DocID, by string,
	change func(context.Context, shard.DocID, string) (deadletter.Facts, error),
) (f deadletter.Facts, err error) {
	if by == "" {
		return f, fmt.Errorf("cancel %s: the audit needs the name of an operator", doc)
	}
	if f, err = change(ctx, doc, by); err != nil {
		return deadletter.Facts{}, fmt.Errorf("%s %s: %w", what, doc, err)
	}
	return f, nil
}

func (d *Service) cancel(ctx context.Context, doc shard.DocID, by string) (deadletter.Facts, error) {
	// The read is consistent, so that the version is really the pending one.
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
		// A write that may have begun cannot be undone.
		return deadletter.Facts{}, ErrWriting
	}
	l, err := d.fromManifest(ctx, row)
	if err != nil {
		return deadletter.Facts{}, err
	}
	return d.put(ctx, row, l, by)
}

// put stores the dead letter and marks the row.
func (d *Service) put(ctx context.Context, row shard.Row, l deadletter.Letter, by string) (deadletter.Facts, error) {
	l.Detail = "by " + by
	// Store first, then mark the row. After a crash between the two, the version is written
	// nevertheless, and that supersedes its dead letter.
	err := d.try(ctx, func() error {
		_, err := d.Letters.Park(ctx, l)
		return err
	})
	if err != nil {
		return deadletter.Facts{}, fmt.Errorf("park the dead letter: %w", err)
	}
	if err := d.park(ctx, row, l.Facts); err != nil {
		return deadletter.Facts{}, err
	}
	n := journal.Note{
		Step: journal.DeadLettered, At: d.Clock.Now(), Doc: l.Doc, Key: l.Key, Sink: l.Sink, Lane: l.Lane,
		Message: l.MessageID,
		Event:   l.Event, Sent: l.Sent, Detail: string(deadletter.Cancelled) + ": operator " + by, Letter: l.ID,
	}
	d.Journal.Note(n)
	d.note(l.Facts, journal.Parked, n.Detail)
	return l.Facts, nil
}

// CancelScheduled makes the next scheduled event of a document a dead letter with the reason
// `cancelled`. It returns the facts of the dead letter. An operator may redrive it.
//
// prune may enqueue the event at the same moment. So CancelScheduled marks the row before it
// removes the event from the schedule. If prune did enqueue a copy, receive finds that the copy's
// dead letter is stored. The row remembers only one dead version. So if two events of a document
// may be in the queue and both are cancelled, the first may still be written.
func (d *Service) CancelScheduled(ctx context.Context, doc shard.DocID, by string) (deadletter.Facts, error) {
	return audited(ctx, "cancel the scheduled event of", doc, by, d.cancelScheduled)
}

func (d *Service) cancelScheduled(ctx context.Context, doc shard.DocID, by string) (deadletter.Facts, error) {
	it, err := d.nextScheduled(ctx, doc)
	if err != nil {
		return deadletter.Facts{}, err
	}
	row, err := d.rows().One(ctx, doc, shard.Consistent)
	switch {
	case err != nil:
		return deadletter.Facts{}, fmt.Errorf("read the row: %w", err)
	case row.Foreign():
		return deadletter.Facts{}, ErrForeign
	case row.Committed >= it.Key, row.Pending > it.Key, row.Took(it.Key):
		return deadletter.Facts{}, ErrOutdated
	}
	m := queue.Message{ID: it.MessageID, Body: it.Body, Attributes: it.Attributes, Sent: it.FirstSent}
	l := deadletter.New(m, deadletter.Cancelled, "", doc, it.Key, 0, d.Clock.Now())
	l.Sink, l.Lane = it.Sink, string(it.Lane)
	f, err := d.put(ctx, row, l, by)
	if err != nil {
		return f, err
	}
	if err := d.try(ctx, func() error { return d.Schedule.Delete(ctx, it.ID) }); err != nil {
		return f, fmt.Errorf("remove the event from the schedule (its dead letter is stored, and it will not be written): %w",
			err)
	}
	return f, nil
}

// nextScheduled returns the scheduled event of a document that is due first.
func (d *Service) nextScheduled(ctx context.Context, doc shard.DocID) (it schedule.Item, err error) {
	for cursor := ""; ; {
		var items []schedule.Item
		err := d.try(ctx, func() (err error) {
			items, cursor, err = d.Schedule.List(ctx, doc, cursor, 100)
			return err
		})
		if err != nil {
			return it, fmt.Errorf("list the scheduled events: %w", err)
		}
		for _, listed := range items {
			// prune may just have sent and deleted the listed event.
			found := false
			err := d.try(ctx, func() (err error) {
				it, found, err = d.Schedule.Get(ctx, listed.ID)
				return err
			})
			if err != nil || found {
				return it, err
			}
		}
		if cursor == "" {
			return it, ErrNotPlanned
		}
	}
}

// fromManifest makes the dead letter of the pending version, from the manifest of the flight that
// holds the version.
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

// park writes PARK after the dead letter is stored. If a claim came before PARK, the result of the
// claimed write decides.
func (d *Service) park(ctx context.Context, image shard.Row, f deadletter.Facts) error {
	for range cancelTries {
		mark, row, err := d.rows().Park(ctx, f.Doc, f.Key, d.Config.Lifecycle.Expires(d.Clock.Now()), image,
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
		// Wait until a microsecond after the lease, because the condition of PARK is lease_until <
		// now.
		if err := d.Clock.Sleep(ctx, row.LeaseUntil.Sub(shard.MicrosOf(d.Clock.Now()))+time.Microsecond); err != nil {
			return err
		}
	}
	return ErrWriting
}
