package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// ErrNothingToRescue says that everything in the flight is done, or that no row accepts what is
// left.
var ErrNothingToRescue = errors.New("nothing in the flight is left to write")

// Rescue starts a new flight from the manifest of a stuck one. What is neither committed nor a dead
// letter is admitted again, and written without a message behind it. Deletions of its messages
// change nothing. Should one be in the queue after all, the row judges both. It returns the new
// flight; the old manifest goes once its events are done. Rescuing twice does no harm.
func (p *Pruner) Rescue(ctx context.Context, id flight.ID) (flight.ID, error) {
	next, err := p.rescue(ctx, id)
	if err != nil {
		return "", fmt.Errorf("rescue flight %s: %w", id, err)
	}
	return next, nil
}

func (p *Pruner) rescue(ctx context.Context, id flight.ID) (flight.ID, error) {
	old, err := p.manifest(ctx, id)
	if err != nil {
		return "", fmt.Errorf("get the manifest: %w", err)
	}
	// An operator has decided to rescue, so signs of life do not count here.
	u, err := p.undone(ctx, old)
	if err != nil {
		return "", err
	}
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: p.NewID(p.Clock.Now()), Sink: old.Sink, Lane: old.Lane,
		Received: p.Clock.Now(),
	}
	// ADMIT comes before the manifest, as in receive. After a crash in between, the old flight can
	// be rescued again.
	accepted, err := p.admitAgain(ctx, old, u.left, m.Flight)
	if err != nil {
		return "", err
	}
	now := shard.MicrosOf(p.Clock.Now())
	for _, rec := range old.Records {
		var events []flight.Entry
		for _, e := range rec.Events {
			if contains(u.left, e) && accepted[e.Doc] {
				e.Due, e.Admitted = now, now
				events = append(events, e)
			}
		}
		if len(events) > 0 {
			m.Records = append(m.Records, flight.Record{Message: rec.Message, Events: events})
		}
	}
	// The rows refused everything, so a flight would have nothing to do.
	if len(m.Records) == 0 {
		return "", ErrNothingToRescue
	}
	state := flight.State{
		Schema: flight.SchemaVersion, Flight: m.Flight, Remaining: flight.AllRemaining(m.Items()),
		WakeAt:       flight.WakeText(now.Time()),
		Kind:         p.Config.Flight.KindFor(0),
		VisibleUntil: shard.MicrosOf(m.Received.Add(queue.MaxHold)), // there is nothing to extend
	}
	if err := p.try(ctx, func() error { return p.Flights.Put(ctx, m) }); err != nil {
		return "", fmt.Errorf("write the new manifest: %w", err)
	}
	// two executions of it do no harm
	if err := p.try(ctx, func() error { return p.Launcher.Start(ctx, state) }); err != nil {
		// should it run all the same, it ends at once
		return "", errors.Join(fmt.Errorf("start the new flight: %w", err), p.Flights.Delete(ctx, m.Flight))
	}
	p.note(journal.Note{
		Step: journal.Launched, Lane: string(m.Lane), Flight: string(m.Flight), Count: len(m.Records),
		Until: now.Time(), Detail: "rescue of " + string(id),
	})
	return m.Flight, nil
}

// admitAgain admits the newest of what remains of every document, because the row may have been
// collected or wait for nothing. It reports which documents accept it. What waits already is fine.
func (p *Pruner) admitAgain(ctx context.Context, old *flight.Manifest, left []flight.Entry,
	to flight.ID,
) (map[shard.DocID]bool, error) {
	newest := map[shard.DocID]shard.Admission{}
	var docs []shard.DocID
	now := p.Clock.Now()
	for r, e := range old.Entries() {
		if a, seen := newest[e.Doc]; !contains(left, *e) || seen && a.Key > e.Key {
			continue
		} else if !seen {
			docs = append(docs, e.Doc)
		}
		newest[e.Doc] = shard.Admission{
			Doc: e.Doc, Key: e.Key, Class: e.Class, Flight: string(to), Now: shard.MicrosOf(now),
			Aged: p.Config.Lifecycle.Aged(old.Records[r].Message.FirstSent(), now),
		}
	}
	accepted := map[shard.DocID]bool{}
	for _, doc := range docs {
		a := newest[doc]
		// One document after the other: a rescue is rare. An error ends it before a flight starts.
		_, err := p.table().Write(ctx, shard.Admit(a))
		refused, ok := shard.AsRefused(err)
		switch {
		case err == nil:
			accepted[doc] = true
		case !ok:
			return nil, fmt.Errorf("admit %s: %w", doc, err)
		default:
			// A refusal is fine where this version, or a newer one, is pending already.
			accepted[doc] = shard.Judge(refused.Row, a.Key, a.Class, a.Aged) == shard.Held &&
				refused.Row.Pending >= a.Key
		}
	}
	return accepted, nil
}

// contains looks for the version of an entry.
func contains(entries []flight.Entry, e flight.Entry) bool {
	return slices.ContainsFunc(entries, func(o flight.Entry) bool { return versionOf(o) == versionOf(e) })
}
