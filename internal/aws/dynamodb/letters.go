// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// Letters stores dead letters: their facts in the table, and their messages in Bodies. This type is
// safe for concurrent use.
//
// Park stores the message first and then the facts. Drop removes the message first and then the
// facts. So facts without a message mean that a Drop was interrupted. Another Drop or Park of the
// same dead letter completes the interrupted Drop.
//
// Earlier versions of lull stored a message for each dead letter, under the dead letter's id. The
// facts of such a dead letter have no hash. Such a dead letter keeps its own message. Drop removes
// its facts first and then its message.
type Letters struct{ messages }

var _ deadletter.Store = (*Letters)(nil)

// NewLetters returns the dead letters of a table.
func NewLetters(t *Table, bodies Bodies) *Letters { return newLetters(t, bodies) }

func newLetters(t calls, bodies Bodies) *Letters { return &Letters{messages{t, bodies}} }

// lookFactor is how many items List reads at most for each item that it may return.
const lookFactor = 20

// changes is how often a call is repeated if the dead letter changes during the call.
const changes = 8

// errChanging says that a dead letter changed during every try.
var errChanging = errors.New("it keeps changing")

// again repeats try while a condition of its writes is refused.
func again(try func() error) error {
	for range changes {
		err := try()
		if _, refused := refusal(err); !refused {
			return err
		}
	}
	return errChanging
}

// Park stores the message and then the facts.
func (s *Letters) Park(ctx context.Context, l deadletter.Letter) (parking deadletter.Parking, err error) {
	doing := "park dead letter"
	if l.ID == "" {
		return "", backoff.Permanent(fmt.Errorf("%s: it has no id", doing))
	}
	doing += " " + l.ID
	if l.Hash == "" {
		l.Hash = deadletter.Hash(l.Body, l.Attributes)
	}
	l.State = deadletter.Parked
	err = again(func() error {
		parking, err = s.park(ctx, doing, l)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", doing, err)
	}
	return parking, nil
}

func (s *Letters) park(ctx context.Context, doing string, l deadletter.Letter) (deadletter.Parking, error) {
	it, err := s.table.get(ctx, dead.doc(l.ID))
	if err != nil {
		return "", err
	}
	parking, as := deadletter.Fresh, shard.Clause{{Attr: PartitionKey, Op: shard.Absent}}
	stored, r := facts(it), refOf(fields(it))
	if len(it) > 0 {
		parking, as = deadletter.Again, equal("ref", r.token)
		if r.hash == "" { // written by an earlier version of lull: the dead letter keeps its own message
			l.Hash, as = "", shard.Clause{{Attr: "ref", Op: shard.Absent}}
			return parking, s.write(ctx, doing, l.Facts, ref{}, as)
		}
		now, stands, err := s.messages.current(ctx, l.ID, r)
		switch {
		case err != nil:
			return "", err
		case stands && l.Hash != r.hash:
			return deadletter.Other, s.write(ctx, doing, l.Under(stored), now, as)
		case stands && now == r && l.SameDeath(stored): // an earlier try has stored this dead letter
			return parking, nil
		case stands:
			return parking, s.write(ctx, doing, l.Facts, now, as)
		}
	}
	if r, err = s.messages.keep(ctx, doing, l); err != nil {
		return "", err
	}
	if err := s.write(ctx, doing, l.Facts, r, as); err != nil {
		return "", err
	}
	// Another caller may have parked or dropped the same dead letter in the meantime, and removed
	// this reference.
	now, stands, err := s.messages.current(ctx, l.ID, r)
	switch {
	case err != nil:
		return "", err
	case !stands:
		return "", errRefused
	case now != r:
		return parking, s.write(ctx, doing, l.Facts, now, equal("ref", r.token))
	}
	return parking, nil
}

// write stores the facts if the stored dead letter meets the clause.
func (s *Letters) write(ctx context.Context, doing string, f deadletter.Facts, r ref, as shard.Clause) error {
	c := []shard.Action{
		setText(IndexPartition, dead.bucket(f.ID)),
		setText(IndexSort, sortKey(f.Died, f.ID)),
		setText("hash", r.hash),
		setText("object", r.object),
		setText("ref", r.token),
		setText("reason", string(f.Reason)),
		setText("detail", f.Detail),
		setText("about", string(f.Doc)),
		setBytes("order_key", string(f.Key)),
		setNumber("event", int64(f.Event)),
		setText("sink", f.Sink),
		setText("lane", f.Lane),
		setText("message", f.MessageID),
		setTime("first_sent", f.FirstSent),
		setTime("sent", f.Sent),
		setNumber("refusals", f.Refusals),
		setText("last_error", f.LastError),
		setTime("died", f.Died),
		setText("state", string(f.State)),
	}
	if f.FirstError != "" {
		c = append(c, shard.Action{
			Verb: shard.SetIfAbsent, Attr: "first_error", Val: shard.Value{Kind: shard.KindString, Text: f.FirstError},
		})
	}
	_, err := s.table.change(ctx, doing, shard.Write{Doc: dead.doc(f.ID), Update: c, Cond: []shard.Clause{as}})
	return err
}

func facts(it item) deadletter.Facts {
	f := fields(it)
	return deadletter.Facts{
		ID: dead.id(f), Reason: deadletter.Reason(f.text("reason")),
		Detail: f.text("detail"),
		Doc:    shard.DocID(f.text("about")), Key: shard.OrderKey(f.bytes("order_key")), Event: int(f.number("event")),
		Sink: f.text("sink"), Lane: f.text("lane"), MessageID: f.text("message"), Hash: f.text("hash"),
		FirstSent: f.time("first_sent"), Sent: f.time("sent"),
		Refusals: f.number("refusals"), FirstError: f.text("first_error"), LastError: f.text("last_error"),
		Died:  f.time("died"),
		State: deadletter.State(f.text("state")), RedrivenAt: f.time("redriven_at"),
		Redrives: int(f.number("redrives")), Auto: int(f.number("auto")),
	}
}

// Get reads the facts with a consistent read, and then the message.
func (s *Letters) Get(ctx context.Context, id string) (deadletter.Letter, bool, error) {
	it, err := s.table.get(ctx, dead.doc(id))
	if err != nil || len(it) == 0 {
		return deadletter.Letter{}, false, err
	}
	name := cmp.Or(refOf(fields(it)).object, id)
	body, attrs, ok, err := s.bodies.Get(ctx, name)
	if err != nil {
		return deadletter.Letter{}, false, fmt.Errorf("get dead letter %s: %w", id, err)
	}
	if !ok {
		return deadletter.Letter{}, false, backoff.Permanent(
			fmt.Errorf("get dead letter %s: its message is gone: drop the dead letter and publish the document again", id))
	}
	return deadletter.Letter{Facts: facts(it), Body: body, Attributes: attrs}, true, nil
}

// Message returns the facts of all dead letters that refer to a message.
func (s *Letters) Message(ctx context.Context, hash string) ([]deadletter.Facts, error) {
	ids, err := s.messages.ids(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("list the dead letters of a message: %w", err)
	}
	found := make([]deadletter.Facts, len(ids))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxLoads)
	for i, id := range ids {
		g.Go(func() error {
			it, err := s.table.get(ctx, dead.doc(id))
			if err == nil && len(it) > 0 {
				found[i] = facts(it)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("list the dead letters of a message: %w", err)
	}
	// A reference may exist without its dead letter: Park writes the reference first, and a Drop
	// may be interrupted.
	found = slices.DeleteFunc(found, func(f deadletter.Facts) bool { return f.Hash != hash })
	slices.SortFunc(found, deadletter.ByPosition)
	return found, nil
}

// List reads the index, oldest first. List may return fewer than limit dead letters, or none,
// together with a cursor. The filter has then rejected the other items that List read. The index is
// updated a moment after the table.
func (s *Letters) List(ctx context.Context, f deadletter.Filter, cursor string, limit int) ([]deadletter.Facts, string,
	error,
) {
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

// Parked counts dead letters in the index, partition by partition. DynamoDB returns only the
// counts.
func (s *Letters) Parked(ctx context.Context, forgotten time.Time, atMost int) (n int, more bool, err error) {
	n, more, err = s.table.countWaiting(ctx, dead, "#state = :parked OR #redriven <= :forgotten",
		map[string]string{"#state": "state", "#redriven": "redriven_at"}, item{
			":parked":    &types.AttributeValueMemberS{Value: string(deadletter.Parked)},
			":forgotten": &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(shard.MicrosOf(forgotten)), 10)},
		}, atMost)
	if err != nil {
		return 0, false, fmt.Errorf("count dead letters: %w", err)
	}
	return n, more, nil
}

// MarkRedriven records that a dead letter was redriven. If the dead letter does not exist, the
// error is permanent.
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
	if _, refused := refusal(err); refused {
		return backoff.Permanent(fmt.Errorf("mark dead letter %s: it is not there", id))
	}
	return err
}

// Drop removes the message and then the facts.
func (s *Letters) Drop(ctx context.Context, id string) error {
	doing := "drop dead letter " + id
	err := again(func() error {
		it, err := s.table.get(ctx, dead.doc(id))
		if err != nil {
			return err
		}
		r, as := refOf(fields(it)), shard.Clause{{Attr: "ref", Op: shard.Absent}}
		if r.hash != "" {
			if err := s.messages.release(ctx, doing, id, r); err != nil {
				return err
			}
			as = equal("ref", r.token)
		}
		// A refusal means that the dead letter was parked again in the meantime.
		if _, err = s.table.change(ctx, doing, shard.Write{
			Doc: dead.doc(id), Drop: true, Cond: []shard.Clause{as},
		}); err != nil || r.hash != "" {
			return err
		}
		return s.bodies.Delete(ctx, id)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
