package shardtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lullhq/lull/internal/shard"
)

func claimRace(ctx context.Context, e *Env) error {
	for round := range e.Rounds {
		doc := e.Doc()
		if err := e.put(ctx, shard.Row{Doc: doc, Pending: k2, BurstStart: begin}); err != nil {
			return err
		}
		errs := make([]error, e.Claimers)
		bids := make([]shard.Bid, e.Claimers)
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for i := range bids {
			bids[i] = shard.Bid{
				Doc: doc, Key: k2, Token: shard.Token(fmt.Sprintf("claimer-%d", i)),
				Now: now + shard.Micros(i), Until: until,
			}
			wg.Go(func() {
				<-begin
				_, errs[i] = e.Store.Write(ctx, shard.Claim(bids[i]))
			})
		}
		close(begin)
		wg.Wait()
		row, err := e.read(ctx, doc)
		if err != nil {
			return err
		}
		winners := 0
		for i, err := range errs {
			refused, ok := shard.AsRefused(err)
			switch {
			case err == nil:
				winners++
				if row.Owner != bids[i].Token {
					return fmt.Errorf("round %d: %s was told that it won, the row says %s", round, bids[i].Token,
						row.Owner)
				}
			case !ok:
				return fmt.Errorf("round %d: claim: %w", round, err)
			case refused.Row.Owner != row.Owner || shard.OwnClaim(refused.Row, bids[i]):
				return fmt.Errorf("round %d: the refusal of %s shows owner %q, want the winner %q", round,
					bids[i].Token, refused.Row.Owner, row.Owner)
			}
		}
		if winners != 1 {
			return fmt.Errorf("round %d: %d winners, want 1", round, winners)
		}
		if row.Attempts != 1 {
			return fmt.Errorf("round %d: %d attempts are noted, want 1", round, row.Attempts)
		}
	}
	return nil
}

// fences lets claimers win, release and win again with clocks that are not in order: no fence may
// repeat or go back.
func fences(ctx context.Context, e *Env) error {
	doc := e.Doc()
	if err := e.put(ctx, shard.Row{Doc: doc, Pending: k2, BurstStart: begin}); err != nil {
		return err
	}
	var mu sync.Mutex
	var won []shard.Micros
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			for n := range 10 {
				b := shard.Bid{
					Doc: doc, Key: k2, Token: shard.Token(fmt.Sprintf("%d-%d", i, n)), Now: now + shard.Micros(7*n+3*i),
					Until: until, Again: n > 0,
				}
				if _, err := e.Store.Write(ctx, shard.Claim(b)); err != nil {
					if _, ok := shard.AsRefused(err); !ok {
						errs[i] = fmt.Errorf("claim: %w", err)
						return
					}
					continue
				}
				mu.Lock()
				won = append(won, b.Now)
				mu.Unlock()
				if _, err := e.Store.Write(ctx, shard.Release(shard.Lease{Doc: doc, Key: k2, Token: b.Token, At: b.Now},
					"throttled", false)); err != nil {
					errs[i] = fmt.Errorf("release: %w", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(won) == 0 {
		return errors.New("nobody won")
	}
	for i := range won[1:] {
		if won[i+1] <= won[i] {
			return fmt.Errorf("fences %v do not grow", won)
		}
	}
	return nil
}

func admitRace(ctx context.Context, e *Env) error {
	doc := e.Doc()
	const n = 40
	keys := make([]shard.OrderKey, n)
	for i := range keys {
		keys[i] = key(fmt.Sprint(i + 1))
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			w := shard.Admit(shard.Admission{Doc: doc, Key: keys[i*17%n], Class: shard.ClassInt, Flight: "f", Now: now})
			_, err := e.Store.Write(ctx, w)
			if refused, ok := shard.AsRefused(err); ok {
				if err = nil; refused.Row.Pending <= keys[i*17%n] {
					err = fmt.Errorf("admission of %s was refused with %s pending", keys[i*17%n], refused.Row.Pending)
				}
			}
			errs[i] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	row, err := e.read(ctx, doc)
	if err != nil {
		return err
	}
	if row.Pending != keys[n-1] {
		return fmt.Errorf("pending %s, want %s", row.Pending, keys[n-1])
	}
	return nil
}

func addRace(ctx context.Context, e *Env) error {
	doc := e.Doc()
	w := shard.Write{Doc: doc, Update: []shard.Action{
		{Verb: shard.Add, Attr: shard.AttrRefusals, Val: shard.Value{Kind: shard.KindNumber, Num: 1}},
	}, Cond: Put(shard.Row{}).Cond}
	errs := make([]error, e.Claimers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = e.Store.Write(ctx, w) })
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), e.expect(ctx, shard.Row{Doc: doc, Refusals: int64(len(errs))}))
}
