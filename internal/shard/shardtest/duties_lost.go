package shardtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/lullhq/lull/internal/shard"
)

// again repeats a write whose answer was lost and returns the image of its refusal.
func (e *Env) again(ctx context.Context, w shard.Write) (shard.Row, error) {
	if _, err := e.Store.Write(ctx, w); err != nil {
		return shard.Row{}, fmt.Errorf("%s: %w", w.Transition, err)
	}
	return e.refusal(ctx, w, "again")
}

// refusal is the image with which a write is refused.
func (e *Env) refusal(ctx context.Context, w shard.Write, when string) (shard.Row, error) {
	_, err := e.Store.Write(ctx, w)
	if refused, ok := shard.AsRefused(err); ok {
		return refused.Row, nil
	}
	return shard.Row{}, fmt.Errorf("%s %s: %s, want a refusal", w.Transition, when, answer(err))
}

func lostClaim(ctx context.Context, e *Env) error {
	for _, again := range []bool{false, true} {
		doc := e.Doc()
		r := shard.Row{Doc: doc, Pending: k2, BurstStart: begin}
		if again {
			r.Claimed, r.Owner, r.LeaseUntil = k2, other, at
		}
		if err := e.put(ctx, r); err != nil {
			return err
		}
		mine := shard.Bid{Doc: doc, Key: k2, Token: token, Now: now, Until: until, Again: again}
		row, err := e.again(ctx, shard.Claim(mine))
		if err != nil {
			return err
		}
		if !shard.OwnClaim(row, mine) {
			return errors.New("a claim did not recognise itself")
		}
		theirs, older := mine, mine
		theirs.Token, older.Key = other, k1
		if shard.OwnClaim(row, theirs) || shard.OwnClaim(row, older) {
			return errors.New("a claim took another one for itself")
		}
	}
	return nil
}

// lostEnd repeats every write that ends a lease: its own refusal is recognised, a refusal by
// another owner is not.
func lostEnd(ctx context.Context, e *Env) error {
	newer := with(held, pending(k3))
	for _, c := range []struct {
		before shard.Row
		write  shard.Write
	}{
		{held, shard.Commit(ours, shard.Put, now, expires, held)},
		{newer, shard.Commit(ours, shard.Put, now, expires, newer)},
		{held, shard.Release(ours, "throttled", false)},
		{held, shard.Release(ours, "refused", true)},
		{held, shard.Reject(ours, "mapping", expires, held)},
		{newer, shard.Reject(ours, "mapping", expires, newer)},
		{held, shard.Reasserted(ours)},
	} {
		w, before := c.write, c.before
		w.Doc = e.Doc()
		before.Doc = w.Doc
		if err := e.put(ctx, before); err != nil {
			return err
		}
		row, err := e.again(ctx, w)
		if err != nil {
			return err
		}
		if !shard.Ended(row, ours, w) {
			return fmt.Errorf("%s did not recognise itself", w.Transition)
		}
		before.Owner = other
		if err := e.put(ctx, before); err != nil {
			return err
		}
		if row, err = e.refusal(ctx, w, "of a lost lease"); err != nil {
			return err
		}
		if shard.Ended(row, ours, w) {
			return fmt.Errorf("%s took another owner's work for its own", w.Transition)
		}
	}
	return nil
}

func endedContext(ctx context.Context, e *Env) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	doc := e.Doc()
	_, err := e.Store.Write(ended, Put(shard.Row{Doc: doc, Level: 1}))
	if _, refused := shard.AsRefused(err); err == nil || refused {
		return fmt.Errorf("write: %s, want an error other than a refusal", answer(err))
	}
	if _, err := e.Store.Read(ended, []shard.DocID{doc}, shard.Consistent); err == nil {
		return errors.New("read: no error")
	}
	return nil
}
