// SPDX-License-Identifier: Apache-2.0

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

// keep loads every store from the folder. From then on, the stores write their changes to the
// folder.
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

// Load completes the state of the last run. Load imports the files of earlier builds. If a sink has
// a newer version of a document than the row, for example because a file was lost, Load updates the
// row. Call Load before Start.
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

// pages calls next with the cursor of the last call, until next returns an empty cursor.
func pages(next func(cursor string) (string, error)) error {
	for cursor := ""; ; {
		var err error
		if cursor, err = next(cursor); cursor == "" || err != nil {
			return err
		}
	}
}

// count adds the documents and scheduled events of the last run to the ledger.
func (e *Engine) count(ctx context.Context) error {
	e.ledger.Resume(e.clk.Now())
	err := pages(func(cursor string) (string, error) {
		rows, next, err := e.Shards.Scan(ctx, 0, 1, cursor, statePage)
		for _, r := range rows {
			e.ledger.Knows(r.Doc, r.Committed)
		}
		return next, err
	})
	waiting := map[string]bool{} // an event may be both in the queue and in the store, and must count once
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

// copyOf returns the events of a delayed message whose notbefore is in the future.
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
				e.report(err) // the messages of this execution will be received again
			}
		}
	}
}

// Save writes all changes that are not on disk yet. [Engine.Trouble] says whether that succeeded.
// Save also stores the current time, because the clock of the next run must continue from it. The
// times of the messages are not enough, because rows may contain later times.
func (e *Engine) Save() {
	e.folder.Put(memory.RoomClock, "run", e.clk.Now())
	e.folder.Flush()
}
