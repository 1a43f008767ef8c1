// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/mention"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// scheduledEvents finds the document's scheduled events, and reads the scheduled events of other
// documents. Each of these is a copy of a whole message, which may contain an event of the
// document. Such a copy is removed if its own document has committed the same or a newer version.
// Otherwise the copy stays until its time, and a line names it.
func (g *forgetting) scheduledEvents(ctx context.Context) (found []ForgetThing, next string, err error) {
	items, next, err := g.Schedule.List(ctx, "", g.At.Page, g.Limit)
	if err != nil {
		return nil, "", fmt.Errorf("list scheduled events: %w", err)
	}
	g.out.Looked += len(items)
	holds := make([]string, len(items))
	broken, err := readEach(ctx, g.Parallel, len(items), func(i int) (err error) {
		if !g.owns(items[i].Doc) {
			holds[i], err = g.scheduledOf(ctx, items[i])
		}
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("look into scheduled events: %w", err)
	}
	for i, it := range items {
		switch {
		case g.owns(it.Doc):
			if g.found(placeScheduled, 1); g.mayRemove(it.Doc) {
				found = append(found, ForgetThing{ID: it.ID, N: 1})
			}
			continue
		case broken[i] != nil:
			g.unread(sharedScheduled, it.ID, unreadScheduled(it))
			continue
		case holds[i] == "":
			continue
		}
		g.found(sharedScheduled, 1)
		row, err := g.table().One(ctx, it.Doc, shard.Consistent)
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("read the row of a scheduled event: %w", err)
		case row.Committed < it.Key:
			g.remains(sharedScheduled, it.ID, holds[i])
		case len(g.At.Moving) == 0:
			found = append(found, ForgetThing{ID: it.ID, N: 1, Shared: true})
		}
	}
	return found, next, nil
}

// scheduledOf says why the scheduled event of another document remains. It returns an empty text if
// the event's message does not contain the document.
func (g *forgetting) scheduledOf(ctx context.Context, it schedule.Item) (string, error) {
	whole, there, err := g.Schedule.Get(ctx, it.ID)
	if err != nil || !there {
		return "", err
	}
	why := map[mention.Answer]string{
		mention.Holds: "also has an event of it", mention.Named: "has its id in a part that cannot be decoded",
	}[g.holds(it.Sink, it.Doc, queue.Message{
		ID: whole.MessageID, Body: whole.Body, Attributes: whole.Attributes, Sent: whole.FirstSent,
	})]
	if why == "" {
		return "", nil
	}
	return fmt.Sprintf("the message of the scheduled event of %s %s: it stays until %s; ask again then, or "+
		"`lull cancel --scheduled '%s'` and drop the dead letter", it.Doc, why, it.NotBefore.UTC().Format(time.RFC3339),
		it.Doc), nil
}

func unreadScheduled(it schedule.Item) string {
	return fmt.Sprintf("the message of the scheduled event of %s cannot be read: ask again with a newer lull, or delete "+
		"the object scheduled/%s in the bucket, `lull cancel --scheduled '%s'`, and publish the document again", it.Doc,
		it.ID, it.Doc)
}

// flights counts the flights that hold a message of the document. index removes the message at the
// flight's next turn, because the tombstone is newer. A flight keeps a whole message until all
// events of the message have ended. So flights also decodes the messages of other documents.
func (g *forgetting) flights(ctx context.Context) ([]ForgetThing, string, error) {
	list, next, err := g.Flights.List(ctx, g.At.Page, g.Limit)
	if err != nil {
		return nil, "", fmt.Errorf("list flights: %w", err)
	}
	g.out.Looked += len(list)
	holds, newer := make([]bool, len(list)), make([]bool, len(list))
	err = g.Parallel.Try(forgetParallel, len(list), func(i int) error {
		m, err := g.manifest(ctx, list[i].ID)
		if errors.Is(err, flight.ErrSchema) {
			newer[i] = true
			return nil
		}
		holds[i] = err == nil && slices.ContainsFunc(m.Records, func(r flight.Record) bool {
			return slices.ContainsFunc(r.Events, func(e flight.Entry) bool { return g.owns(e.Doc) }) ||
				g.holds(m.Sink, "", r.Message) >= mention.Named
		})
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("read manifests: %w", err)
	}
	for i, f := range list {
		switch {
		case newer[i]:
			g.unread(placeFlights, string(f.ID), fmt.Sprintf("a newer lull wrote flight %s: ask again with that version", f.ID))
		case holds[i]:
			g.found(placeFlights, 1)
			g.out.Counts[forgetWaiting]++
			g.out.Lines = append(g.out.Lines,
				ForgetLine{Place: placeFlights, Text: "flights end by themselves: ask again"})
		}
	}
	return nil, next, nil
}

// archived finds the document in the archive. All of the archive is read, because the name of an
// object does not say which documents are in it.
func (g *forgetting) archived(ctx context.Context) (found []ForgetThing, next string, err error) {
	if g.Archive == nil {
		return nil, "", nil
	}
	f := archive.Forgetter{Store: g.Archive, Sources: g.Sources}
	page, err := f.Look(ctx, g.Key, archive.Name(g.At.Page), min(g.Limit, forgetObjects))
	if err != nil {
		return nil, "", err
	}
	for _, o := range page.Objects {
		g.found(placeArchive, o.Messages)
		if len(g.At.Moving) == 0 {
			found = append(found, ForgetThing{ID: string(o.Name), N: o.Messages})
		}
	}
	for _, name := range page.Unread {
		g.unread(placeArchive, string(name), fmt.Sprintf("object %s cannot be read: look at it, and delete it", name))
	}
	for _, name := range page.Named {
		g.found(placeArchive, 1)
		g.remains(placeArchive, string(name), fmt.Sprintf("a part of a message in object %s cannot be decoded, and contains "+
			"the id: look at it, and delete it, or wait until the archive expires", name))
	}
	g.out.Counts[forgetUndecoded] += page.Undecoded
	g.out.Looked += page.Looked
	return found, string(page.Next), nil
}
