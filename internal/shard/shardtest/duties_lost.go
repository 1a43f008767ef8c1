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
		return shard.Row{}, fmt.Errorf("%s: %w", w.Name, err)
	}
	_, err := e.Store.Write(ctx, w)
	refused, ok := shard.AsRefused(err)
	if !ok {
		return shard.Row{}, fmt.Errorf("%s again: %s, want a refusal", w.Name, answer(err))
	}
	return refused.Row, nil
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
		theirs := mine
		theirs.Token = other
		older := mine
		older.Key = k1
		if shard.OwnClaim(row, theirs) || shard.OwnClaim(row, older) {
			return errors.New("a claim took another one for itself")
		}
	}
	return nil
}

// lost repeats the end of a lease and asks whether the refusal is recognised, and that a stranger's
// lease is not.
func (e *Env) lost(ctx context.Context, before shard.Row, make func(shard.Lease) shard.Write,
	stranger func(*shard.Row),
) error {
	doc := e.Doc()
	before.Doc = doc
	l := shard.Lease{Doc: doc, Key: k2, Token: token, At: at}
	if err := e.put(ctx, before); err != nil {
		return err
	}
	w := make(l)
	row, err := e.again(ctx, w)
	if err != nil {
		return err
	}
	if !shard.Ended(row, l, w) {
		return fmt.Errorf("%s did not recognise itself", w.Name)
	}
	stranger(&before)
	if err := e.put(ctx, before); err != nil {
		return err
	}
	_, err = e.Store.Write(ctx, w)
	refused, ok := shard.AsRefused(err)
	if !ok {
		return fmt.Errorf("%s of a lost lease: %s, want a refusal", w.Name, answer(err))
	}
	if shard.Ended(refused.Row, l, w) {
		return fmt.Errorf("%s took another owner's work for its own", w.Name)
	}
	return nil
}

func lostCommit(ctx context.Context, e *Env) error {
	for _, p := range []shard.OrderKey{k2, k3} {
		before := with(held, pending(p))
		err := e.lost(ctx, before, func(l shard.Lease) shard.Write {
			return shard.Commit(l, shard.Put, now, expires,
				before)
		},
			func(r *shard.Row) { r.Owner = other })
		if err != nil {
			return err
		}
	}
	return nil
}

func lostRelease(ctx context.Context, e *Env) error {
	for _, refused := range []bool{false, true} {
		err := e.lost(ctx, held, func(l shard.Lease) shard.Write { return shard.Release(l, "throttled", refused) },
			func(r *shard.Row) { r.Owner = other })
		if err != nil {
			return err
		}
	}
	return nil
}

func lostReject(ctx context.Context, e *Env) error {
	for _, p := range []shard.OrderKey{k2, k3} {
		before := with(held, pending(p))
		err := e.lost(ctx, before, func(l shard.Lease) shard.Write {
			return shard.Reject(l, "mapping", expires,
				before)
		},
			func(r *shard.Row) { r.Owner = other })
		if err != nil {
			return err
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
		return fmt.Errorf("write: %s, want an error that is no refusal", answer(err))
	}
	if _, err := e.Store.Read(ended, []shard.DocID{doc}, shard.Consistent); err == nil {
		return errors.New("read: no error")
	}
	return nil
}
