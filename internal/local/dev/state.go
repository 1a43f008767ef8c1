package dev

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// keep loads every store from the folder, and lets it write its changes there.
func (e *Engine) keep(f *Folder) error {
	stores := []interface{ Keep(memory.Keeper) error }{e.Shards, e.Letters, e.Schedule, e.Flights}
	if e.Archive != nil {
		stores = append(stores, e.Archive)
	}
	for _, name := range e.order {
		p := e.pipes[name]
		stores = append(stores, p.dead)
		for _, l := range p.lanes {
			stores = append(stores, l.queue, l.machine)
		}
	}
	for _, s := range stores {
		if err := s.Keep(f); err != nil {
			return fmt.Errorf("continue from the data folder: %w", err)
		}
	}
	return nil
}

// Load completes the state of the last run. It takes over the files of earlier builds. If a sink
// has a newer version than its row, for example because a file was lost, it raises the row. Call it
// before Start.
func (e *Engine) Load(ctx context.Context) error {
	if err := e.takeOver(ctx, e.folder); err != nil {
		return err
	}
	for name, r := range e.readers() {
		err := r.All(ctx, func(s sink.Stored) error {
			k, err := shard.ParseOrderKey(s.Key)
			if err != nil {
				return nil //nolint:nilerr // lull did not write this document: it has no row
			}
			row, _ := e.cfg.RowAt(s.Doc, name)
			return e.raise(ctx, row, k, shard.Put, shard.Micros(s.Fence))
		})
		if err != nil {
			return fmt.Errorf("read back sink %s: %w", name, err)
		}
	}
	return e.count(ctx)
}

const statePage = 1000

// pages calls next with a cursor until it answers none.
func pages(next func(cursor string) (string, error)) error {
	for cursor := ""; ; {
		var err error
		if cursor, err = next(cursor); cursor == "" || err != nil {
			return err
		}
	}
}

// count enters the documents and scheduled events of the last run in the ledger.
func (e *Engine) count(ctx context.Context) error {
	e.ledger.Resume(e.clk.Now())
	err := pages(func(cursor string) (string, error) {
		rows, next, err := e.Shards.Scan(ctx, 0, 1, cursor, statePage)
		for _, r := range rows {
			e.ledger.Knows(r.Doc, r.Committed)
		}
		return next, err
	})
	waiting := map[string]bool{} // an event may be in the queue and still in the store
	await := func(doc shard.DocID, k shard.OrderKey) {
		if id := deadletter.ID(doc, k, ""); !waiting[id] {
			waiting[id] = true
			e.ledger.Awaits(doc, k)
		}
	}
	err = errors.Join(err, pages(func(cursor string) (string, error) {
		items, next, err := e.Schedule.List(ctx, "", cursor, statePage)
		for _, it := range items {
			await(it.Doc, it.Key)
		}
		return next, err
	}))
	for _, p := range e.pipes {
		for _, l := range p.lanes {
			l.queue.Each(func(m queue.Message, delayed bool) {
				for _, r := range e.copyOf(p, m, delayed) {
					await(r.Doc, r.Key)
				}
			})
		}
	}
	return err
}

// copyOf lists the events of a message that waits in a queue for its notbefore.
func (e *Engine) copyOf(p *pipe, m queue.Message, delayed bool) (events []event.Event) {
	if !delayed {
		return nil
	}
	for _, r := range e.sources.At(p.name).Decode(m) {
		if r.Invalid == nil && r.Skip == "" && r.Event.NotBefore.After(e.clk.Now()) {
			events = append(events, r.Event)
		}
	}
	return events
}

// resume continues the executions of the last run.
func (e *Engine) resume(ctx context.Context) {
	for _, name := range e.order {
		for _, lane := range []flight.Lane{flight.Live, flight.Bulk} {
			if err := e.pipes[name].lanes[lane].machine.Resume(ctx); err != nil {
				e.report(err) // its messages are received again
			}
		}
	}
}

// Save tries once more to write everything: [Engine.Trouble] says whether that succeeded. It also
// stores the time, from which the next run's clock continues: rows hold times that no message has.
func (e *Engine) Save() {
	e.folder.Put(memory.RoomClock, "run", e.clk.Now())
	e.folder.Flush()
}
