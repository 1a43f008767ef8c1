package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// Letters keeps dead letters: facts in the table, messages in Bodies. It is safe for concurrent
// use.
//
// The message is stored before the facts and deleted after them. So facts without a message mean
// that the dead letter was dropped at the moment at which it was parked again. Get says so.
type Letters struct{ items }

var _ deadletter.Store = (*Letters)(nil)

// NewLetters returns the dead letters of a table.
func NewLetters(t *Table, bodies Bodies) *Letters {
	return &Letters{items{t, bodies, dead, "dead letter"}}
}

// lookFactor is how many items List looks at for each one that it may return.
const lookFactor = 20

// Park stores the message and then the facts.
func (s *Letters) Park(ctx context.Context, l deadletter.Letter) (bool, error) {
	c := []shard.Action{
		setText("reason", string(l.Reason)),
		setText("detail", l.Detail),
		setText("about", string(l.Doc)),
		setBytes("order_key", string(l.Key)),
		setNumber("event", int64(l.Event)),
		setText("sink", l.Sink),
		setText("lane", l.Lane),
		setText("message", l.MessageID),
		setTime("first_sent", l.FirstSent),
		setTime("sent", l.Sent),
		setNumber("refusals", l.Refusals),
		setText("last_error", l.LastError),
		setTime("died", l.Died),
		setText("state", string(deadletter.Parked)),
	}
	if l.FirstError != "" {
		c = append(c, shard.Action{
			Verb: shard.SetIfAbsent, Attr: "first_error", Val: shard.Value{Kind: shard.KindString, Text: l.FirstError},
		})
	}
	old, err := s.put(ctx, "park", l.ID, l.Died, l.Body, l.Attributes, c)
	return err == nil && len(old) == 0, err
}

func facts(it item) deadletter.Facts {
	f := fields(it)
	return deadletter.Facts{
		ID: dead.id(f), Reason: deadletter.Reason(f.text("reason")),
		Detail: f.text("detail"),
		Doc:    shard.DocID(f.text("about")), Key: shard.OrderKey(f.bytes("order_key")), Event: int(f.number("event")),
		Sink: f.text("sink"), Lane: f.text("lane"), MessageID: f.text("message"),
		FirstSent: f.time("first_sent"), Sent: f.time("sent"),
		Refusals: f.number("refusals"), FirstError: f.text("first_error"), LastError: f.text("last_error"),
		Died:  f.time("died"),
		State: deadletter.State(f.text("state")), RedrivenAt: f.time("redriven_at"),
		Redrives: int(f.number("redrives")), Auto: int(f.number("auto")),
	}
}

// Get reads the facts consistently, then the message.
func (s *Letters) Get(ctx context.Context, id string) (deadletter.Letter, bool, error) {
	it, err := s.table.get(ctx, dead.doc(id))
	if err != nil || len(it) == 0 {
		return deadletter.Letter{}, false, err
	}
	body, attrs, ok, err := s.bodies.Get(ctx, id)
	if err != nil {
		return deadletter.Letter{}, false, fmt.Errorf("get dead letter %s: %w", id, err)
	}
	if !ok {
		return deadletter.Letter{}, false, backoff.Permanent(
			fmt.Errorf("get dead letter %s: its message is gone: drop the dead letter and publish the document again", id))
	}
	return deadletter.Letter{Facts: facts(it), Body: body, Attributes: attrs}, true, nil
}

// List goes through the index, oldest first. It may return fewer than limit dead letters, even
// none, and still a cursor: then the filter passed over the rest of what it looked at. The index
// follows the table within moments.
func (s *Letters) List(ctx context.Context, f deadletter.Filter, cursor string, limit int) ([]deadletter.Facts, string,
	error,
) {
	if limit < 1 {
		return nil, "", fmt.Errorf("list dead letters: limit %d is not positive", limit)
	}
	within := whole(cursor)
	if !f.After.IsZero() {
		within.after = max(within.after, moment(f.After))
	}
	if !f.Before.IsZero() {
		within = within.until(f.Before)
	}
	items, next, err := s.table.waiting(ctx, dead, within, limit, lookFactor*limit,
		func(it item) bool { return f.Matches(facts(it)) })
	if err != nil {
		return nil, "", fmt.Errorf("list dead letters: %w", err)
	}
	out := make([]deadletter.Facts, len(items))
	for i, it := range items {
		out[i] = facts(it)
	}
	return out, next, nil
}

// MarkRedriven counts a redrive of a dead letter that is there.
func (s *Letters) MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error {
	c := []shard.Action{
		setText("state", string(deadletter.Redriven)),
		setTime("redriven_at", at),
		count("redrives"),
	}
	if auto {
		c = append(c, count("auto"))
	}
	_, err := s.table.change(ctx, "mark dead letter "+id, shard.Write{
		Doc: dead.doc(id), Update: c, Cond: []shard.Clause{{{Attr: PartitionKey, Op: shard.Exists}}},
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return backoff.Permanent(fmt.Errorf("mark dead letter %s: it is not there", id))
	}
	return err
}

// Drop deletes the facts and then the message.
func (s *Letters) Drop(ctx context.Context, id string) error {
	return s.remove(ctx, "drop", id)
}
