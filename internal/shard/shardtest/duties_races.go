// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"fmt"
	"sync"

	"github.com/lullhq/lull/internal/seam/storetest"
	"github.com/lullhq/lull/internal/shard"
)

func claimRace(e *Env) {
	for round := range e.Rounds {
		doc := e.Doc()
		e.put(shard.Row{Doc: doc, Pending: k2, BurstStart: begin})
		bids, images, won := make([]shard.Bid, e.Claimers), make([]shard.Row, e.Claimers), make([]bool, e.Claimers)
		storetest.AtOnce(e.Claimers, func(i int) {
			bids[i] = shard.Bid{
				Doc: doc, Key: k2, Token: shard.Token(fmt.Sprintf("claimer-%d", i)),
				Now: now + shard.Micros(i), Until: until,
			}
			images[i], won[i] = e.try(shard.Claim(bids[i]))
		})
		row, winners := e.row(doc), 0
		for i, b := range bids {
			switch {
			case won[i] && row.Owner != b.Token:
				e.Fatalf("round %d: %s got the answer that it won, but the row says %s", round, b.Token, row.Owner)
			case won[i]:
				winners++
			case images[i].Owner != row.Owner || shard.OwnClaim(images[i], b):
				e.Fatalf("round %d: the refusal of %s shows owner %q, want the winner %q", round, b.Token, images[i].Owner,
					row.Owner)
			}
		}
		if winners != 1 || row.Attempts != 1 {
			e.Fatalf("round %d: got %d winners and %d attempts in the row, want 1 of each", round, winners, row.Attempts)
		}
	}
}

// fences lets claimers win, release and win again, although their clocks differ. No fence may be
// repeated or smaller than an earlier one.
func fences(e *Env) {
	doc := e.Doc()
	e.put(shard.Row{Doc: doc, Pending: k2, BurstStart: begin})
	var mu sync.Mutex
	var won []shard.Micros
	storetest.AtOnce(8, func(i int) {
		for n := range 10 {
			b := shard.Bid{
				Doc: doc, Key: k2, Token: shard.Token(fmt.Sprintf("%d-%d", i, n)), Now: now + shard.Micros(7*n+3*i),
				Until: until, Again: n > 0,
			}
			if _, allowed := e.try(shard.Claim(b)); !allowed {
				continue
			}
			mu.Lock()
			won = append(won, b.Now)
			mu.Unlock()
			release := shard.Release(shard.Lease{Doc: doc, Key: k2, Token: b.Token, At: b.Now}, "throttled", false)
			if _, allowed := e.try(release); !allowed {
				e.Errorf("the release of %s was refused", b.Token)
			}
		}
	})
	if len(won) == 0 {
		e.Fatalf("no claimer won")
	}
	for i := range won[1:] {
		if won[i+1] <= won[i] {
			e.Fatalf("fences %v do not grow", won)
		}
	}
}

func admitRace(e *Env) {
	doc := e.Doc()
	const n = 40
	storetest.AtOnce(n, func(i int) {
		k := key(fmt.Sprint(1 + i*17%n))
		w := shard.Admit(shard.Admission{Doc: doc, Key: k, Class: shard.ClassInt, Flight: "f", Now: now})
		if image, allowed := e.try(w); !allowed && image.Pending <= k {
			e.Errorf("admission of %s was refused with %s pending", k, image.Pending)
		}
	})
	if row, newest := e.row(doc), key(fmt.Sprint(n)); row.Pending != newest {
		e.Errorf("pending %s, want %s", row.Pending, newest)
	}
}

func addRace(e *Env) {
	doc := e.Doc()
	w := shard.Write{Doc: doc, Update: []shard.Action{
		{Verb: shard.Add, Attr: shard.AttrRefusals, Val: shard.Value{Kind: shard.KindNumber, Num: 1}},
	}, Cond: Put(shard.Row{}).Cond}
	storetest.AtOnce(e.Claimers, func(int) { e.try(w) })
	e.expect(shard.Row{Doc: doc, Refusals: int64(e.Claimers)})
}
