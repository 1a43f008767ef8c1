package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/pipeline/mention"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// scheduledEvents deletes the document's scheduled events, and reads the scheduled events of other
// documents. Each is a copy of a whole message, which may hold an event of the document. Such a
// copy is deleted if the document that it is scheduled for has the same or a newer version
// committed. Otherwise it stays until its time, and the answer names it.
func (g *forgetting) scheduledEvents(ctx context.Context, _ string) error {
	s, shared := ForgetStep{Place: "scheduled events"}, ForgetStep{Place: "messages of other scheduled events"}
	for cursor := ""; ; {
		items, next, err := g.Schedule.List(ctx, "", cursor, pageSize)
		if err != nil {
			return fmt.Errorf("list scheduled events: %w", err)
		}
		holds := make([]string, len(items))
		broken, err := g.readEach(ctx, len(items), func(i int) (err error) {
			if !g.owns(items[i].Doc) {
				holds[i], err = g.scheduledOf(ctx, items[i])
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("look into scheduled events: %w", err)
		}
		for i, it := range items {
			step := &s
			if broken[i] != nil && g.first() {
				holds[i] = unreadScheduled(it)
				shared.unread++
			}
			switch {
			case g.owns(it.Doc):
			case holds[i] == "":
				continue
			default:
				step = &shared
				row, err := g.table().One(ctx, it.Doc, shard.Consistent)
				if err != nil {
					return fmt.Errorf("read the row of a scheduled event: %w", err)
				}
				if row.Committed < it.Key {
					step.remains("%s", holds[i])
					continue
				}
			}
			step.Found++
			if g.DryRun {
				continue
			}
			if err := g.Schedule.Delete(ctx, it.ID); err != nil {
				return fmt.Errorf("delete a scheduled event: %w", err)
			}
			step.Removed++
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	g.add(s)
	if shared.Found > 0 {
		g.add(shared)
	}
	return nil
}

// scheduledOf says why the scheduled event of another document remains; nothing if it does not hold
// the document.
func (g *forgetting) scheduledOf(ctx context.Context, it schedule.Item) (string, error) {
	whole, there, err := g.Schedule.Get(ctx, it.ID)
	if err != nil || !there {
		return "", err
	}
	why := map[mention.Answer]string{
		mention.Holds: "has an event of it, too", mention.Named: "has its id in a part that nothing decodes",
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

// manifests counts the flights that hold a message of the document. Index takes it out at its next
// turn, because the tombstone is newer. A flight keeps each message whole until all of its events
// have ended, so the messages are decoded, too.
func (g *forgetting) manifests(ctx context.Context, _ string) error {
	s := ForgetStep{Place: "flights"}
	for cursor := ""; ; {
		list, next, err := g.Flights.List(ctx, cursor, pageSize)
		if err != nil {
			return fmt.Errorf("list flights: %w", err)
		}
		holds, newer := make([]bool, len(list)), make([]bool, len(list))
		err = g.Parallel.Try(forgetParallel, len(list), func(i int) error {
			m, err := g.manifest(ctx, list[i].ID)
			if errors.Is(err, flight.ErrSchema) {
				newer[i] = g.first()
				return nil
			}
			holds[i] = err == nil && slices.ContainsFunc(m.Records, func(r flight.Record) bool {
				return slices.ContainsFunc(r.Events, func(e flight.Entry) bool { return g.owns(e.Doc) }) ||
					g.holds(m.Sink, "", r.Message) >= mention.Named
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("read manifests: %w", err)
		}
		for i, f := range list {
			switch {
			case holds[i]:
				s.Found++
				s.Waits++
			case newer[i]:
				s.remains("flight %s is of a newer lull: ask again with that one", f.ID)
				s.unread++
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if s.Waits > 0 {
		s.Remains = append(s.Remains, "flights end by themselves: ask again")
	}
	g.add(s)
	return nil
}
