// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Schedule stores events that are not due yet: their facts in the table, and their messages in
// Bodies. A Schedule is safe for concurrent use.
type Schedule struct {
	table  calls
	bodies Bodies
}

var _ schedule.Store = (*Schedule)(nil)

// NewSchedule returns the scheduled events of a table.
func NewSchedule(t *Table, bodies Bodies) *Schedule { return &Schedule{t, bodies} }

// maxLoads is how many messages are loaded at the same time.
const maxLoads = 16

// Put stores the message and then the facts, so that every listed item has its message.
func (s *Schedule) Put(ctx context.Context, it schedule.Item) error {
	if it.ID == "" {
		return backoff.Permanent(errors.New("put scheduled event: it has no id"))
	}
	doing := "put scheduled event " + it.ID
	if err := s.bodies.Put(ctx, it.ID, it.Body, it.Attributes); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	_, err := s.table.change(ctx, doing, shard.Write{Doc: sched.doc(it.ID), Update: []shard.Action{
		setText(IndexPartition, sched.bucket(it.ID)),
		setText(IndexSort, sortKey(it.NotBefore, it.ID)),
		setText("about", string(it.Doc)),
		setBytes("order_key", string(it.Key)),
		setTime("not_before", it.NotBefore),
		setText("sink", it.Sink),
		setText("lane", string(it.Lane)),
		setTime("first_sent", it.FirstSent),
		setText("message", it.MessageID),
	}})
	return err
}

// Due reads the index, earliest first. If the message of an item is missing or cannot be read, the
// item has Unread set, and the other items are still returned.
func (s *Schedule) Due(ctx context.Context, until time.Time, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	out, next, err := s.list(ctx, whole(cursor).until(until), limit, limit, "")
	if err != nil {
		return nil, "", err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxLoads)
	for i := range out {
		g.Go(func() error {
			err := s.load(ctx, &out[i])
			if backoff.Final(err) && ctx.Err() == nil {
				out[i].Unread, err = err, nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, "", fmt.Errorf("load scheduled events: %w", err)
	}
	return out, next, nil
}

// load reads the message of an item. If the message is missing, load sets Unread.
func (s *Schedule) load(ctx context.Context, it *schedule.Item) error {
	body, attrs, found, err := s.bodies.Get(ctx, it.ID)
	if err == nil && !found {
		it.Unread = errors.New("its message is gone")
	}
	it.Body, it.Attributes = body, attrs
	return err
}

// scheduled converts a table item into a schedule.Item without the message.
func scheduled(it item) schedule.Item {
	f := fields(it)
	return schedule.Item{
		ID: sched.id(f), Doc: shard.DocID(f.text("about")),
		Key: shard.OrderKey(f.bytes("order_key")), NotBefore: f.time("not_before"), Sink: f.text("sink"),
		Lane: flight.Lane(f.text("lane")), FirstSent: f.time("first_sent"), MessageID: f.text("message"),
	}
}

// List reads the index, earliest first. List does not load the messages.
func (s *Schedule) List(ctx context.Context, doc shard.DocID, cursor string, limit int) ([]schedule.Item, string,
	error,
) {
	return s.list(ctx, whole(cursor), limit, lookFactor*limit, doc)
}

// list reads the index for the events of one document, or of all documents if doc is empty.
func (s *Schedule) list(ctx context.Context, within span, limit, look int, doc shard.DocID) ([]schedule.Item, string,
	error,
) {
	items, next, err := s.table.waiting(ctx, sched, within, limit, look,
		func(it item) bool { return doc == "" || fields(it).text("about") == string(doc) })
	if err != nil {
		return nil, "", fmt.Errorf("list scheduled events: %w", err)
	}
	out := make([]schedule.Item, len(items))
	for i, it := range items {
		out[i] = scheduled(it)
	}
	return out, next, nil
}

// Get reads the facts with a consistent read, and then the message.
func (s *Schedule) Get(ctx context.Context, id string) (schedule.Item, bool, error) {
	facts, err := s.table.get(ctx, sched.doc(id))
	if err != nil || len(facts) == 0 {
		return schedule.Item{}, false, err
	}
	it := scheduled(facts)
	if err := s.load(ctx, &it); err != nil {
		return schedule.Item{}, false, fmt.Errorf("get scheduled event %s: %w", id, err)
	}
	return it, true, nil
}

// Delete deletes the facts and then the message.
func (s *Schedule) Delete(ctx context.Context, id string) error {
	doing := "delete scheduled event " + id
	if _, err := s.table.change(ctx, doing, shard.Write{Doc: sched.doc(id), Drop: true}); err != nil {
		return err
	}
	if err := s.bodies.Delete(ctx, id); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
