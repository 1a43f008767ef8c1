package dev

import (
	"context"
	"fmt"
	"sync"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// copies remembers the scheduled events whose copies wait in a queue for their last minutes. The
// messages of their upstream were acknowledged, their items deleted from the store, and a queue in
// memory ends with the process: [Engine.Save] keeps them.
type copies struct {
	clk     clock.Clock
	sources *source.Set

	mu    sync.Mutex
	items map[string]schedule.Item // by id: their events may not have ended
}

// watched is a queue whose delayed copies are remembered.
type watched struct {
	queue.Queue
	copies *copies
	sink   string
	lane   flight.Lane
}

func (c *copies) watch(p *pipe, l *lane) queue.Queue { return watched{l.queue, c, p.name, l.name} }

// Send sends, and remembers what is not due yet.
func (w watched) Send(ctx context.Context, out []queue.Outgoing) []error {
	errs := w.Queue.Send(ctx, out)
	for i := range out {
		if out[i].Delay > 0 && queue.ErrorAt(errs, i) == nil {
			w.copies.add(&out[i], w.sink, w.lane)
		}
	}
	return errs
}

func (c *copies) add(o *queue.Outgoing, sink string, lane flight.Lane) {
	now := c.clk.Now()
	m := queue.Message{Body: o.Body, Attributes: o.Attributes, Sent: now}
	for _, r := range c.sources.Decode(m) {
		if r.Invalid != nil || r.Skip != "" || !r.Event.NotBefore.After(now) {
			continue // a redriven dead letter, which stays parked
		}
		it := schedule.Item{
			ID: deadletter.ID(r.Event.Doc, r.Event.Key, ""), Doc: r.Event.Doc, Key: r.Event.Key,
			NotBefore: r.Event.NotBefore, Sink: sink, Lane: lane, FirstSent: m.FirstSent(), Body: o.Body,
			Attributes: o.Attributes,
		}
		c.mu.Lock()
		c.items[it.ID] = it
		c.mu.Unlock()
	}
}

// pending lists the copies whose events have not ended by their rows, and forgets the others.
func (c *copies) pending(ctx context.Context, rows shard.Store) ([]schedule.Item, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []schedule.Item
	for id, it := range c.items {
		r, err := rows.Read(ctx, []shard.DocID{it.Doc}, shard.Consistent)
		if err != nil {
			return nil, fmt.Errorf("judge the scheduled event of %s: %w", it.Doc, err)
		}
		if r[0].Committed >= it.Key || r[0].Dead == it.Key {
			delete(c.items, id)
			continue
		}
		left = append(left, it)
	}
	return left, nil
}
