// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// ErrNothingToRescue says that all events of the flight are done, or that no row accepts the
// remaining events.
var ErrNothingToRescue = errors.New("nothing in the flight is left to write")

// Rescue starts a new flight from the manifest of a stuck flight, and returns the id of the new
// flight. It admits again the events that are neither committed nor dead letters. The new flight
// writes these events without their messages, so its deletes of messages have no effect. If such a
// message is still in the queue, the row decides, as for any duplicate. prune deletes the old
// manifest when its events are done. A second rescue does no harm.
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
	// An operator decided to rescue the flight, so signs of life do not matter.
	u, err := p.undone(ctx, old)
	if err != nil {
		return "", err
	}
	m := &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: p.NewID(p.Clock.Now()), Sink: old.Sink, Lane: old.Lane,
		Received: p.Clock.Now(),
	}
	// ADMIT comes before the manifest, as in receive. After a crash between the two, the old flight
	// can be rescued again.
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
	// The rows refused all events, so the flight would have nothing to do.
	if len(m.Records) == 0 {
		return "", ErrNothingToRescue
	}
	state := flight.State{
		Schema: flight.SchemaVersion, Flight: m.Flight, Remaining: flight.AllRemaining(m.Items()),
		WakeAt:       flight.WakeText(now.Time()),
		Kind:         p.Config.Flight.KindFor(0),
		VisibleUntil: shard.MicrosOf(m.Received.Add(queue.MaxHold)), // the flight has no visibility to extend
	}
	if err := p.try(ctx, func() error { return p.Flights.Put(ctx, m) }); err != nil {
		return "", fmt.Errorf("write the new manifest: %w", err)
	}
	// A second execution does no harm.
	if err := p.try(ctx, func() error { return p.Launcher.Start(ctx, state) }); err != nil {
		// If the execution runs nevertheless, it ends at once, because the manifest is deleted.
		return "", errors.Join(fmt.Errorf("start the new flight: %w", err), p.Flights.Delete(ctx, m.Flight))
	}
	p.note(journal.Note{
		Step: journal.Launched, Lane: string(m.Lane), Flight: string(m.Flight), Count: len(m.Records),
		Until: now.Time(), Detail: "rescue of " + string(id),
	})
	return m.Flight, nil
}

// admitAgain admits the newest of the remaining versions of every document. The row of a document
// may have been deleted, or may not be pending. admitAgain returns the documents whose row accepts
// the version. A version that is still pending counts as accepted.
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
			Group: queue.Group(old.Records[r].Message.Attributes),
			Aged:  p.Config.Lifecycle.Aged(old.Records[r].Message.FirstSent(), now),
		}
	}
	accepted := map[shard.DocID]bool{}
	for _, doc := range docs {
		a := newest[doc]
		// Handle one document after the other, because rescues are rare. After an error no flight
		// is started.
		_, err := p.table().Write(ctx, shard.Admit(a))
		refused, ok := shard.AsRefused(err)
		switch {
		case err == nil:
			accepted[doc] = true
		case !ok:
			return nil, fmt.Errorf("admit %s: %w", doc, err)
		default:
			// A refusal is fine if this version or a newer one is already pending.
			accepted[doc] = shard.Judge(refused.Row, a.Key, a.Class, a.Aged) == shard.Held &&
				refused.Row.Pending >= a.Key
		}
	}
	return accepted, nil
}

// contains reports whether entries has the version of e.
func contains(entries []flight.Entry, e flight.Entry) bool {
	return slices.ContainsFunc(entries, func(o flight.Entry) bool { return versionOf(o) == versionOf(e) })
}
