// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"github.com/lullhq/lull/internal/shard"
)

// again executes a write twice, as after a lost answer, and returns the image of the refusal.
func (e *Env) again(w shard.Write) shard.Row {
	e.Helper()
	if _, allowed := e.try(w); !allowed {
		e.Fatalf("%s was refused", w.Transition)
	}
	return e.refused(w, "again")
}

// refused executes a write that must be refused, and returns the image of the refusal.
func (e *Env) refused(w shard.Write, when string) shard.Row {
	e.Helper()
	image, allowed := e.try(w)
	if allowed {
		e.Fatalf("%s %s was allowed, want a refusal", w.Transition, when)
	}
	return image
}

func lostClaim(e *Env) {
	for _, again := range []bool{false, true} {
		r := shard.Row{Doc: e.Doc(), Pending: k2, BurstStart: begin}
		if again {
			r.Claimed, r.Owner, r.LeaseUntil = k2, other, at
		}
		e.put(r)
		mine := shard.Bid{Doc: r.Doc, Key: k2, Token: token, Now: now, Until: until, Again: again}
		row := e.again(shard.Claim(mine))
		theirs, older := mine, mine
		theirs.Token, older.Key = other, k1
		if !shard.OwnClaim(row, mine) {
			e.Errorf("a repeated claim was not recognised as its own")
		}
		if shard.OwnClaim(row, theirs) || shard.OwnClaim(row, older) {
			e.Errorf("another claim was recognised as the own claim")
		}
	}
}

// lostEnd repeats every write that ends a lease. Ended must be true for the refusal of the repeated
// write, and false for a refusal by another owner.
func lostEnd(e *Env) {
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
		e.put(before)
		if !shard.Ended(e.again(w), ours, w) {
			e.Errorf("a repeated %s was not recognised as its own", w.Transition)
		}
		before.Owner = other
		e.put(before)
		if shard.Ended(e.refused(w, "of a lost lease"), ours, w) {
			e.Errorf("the work of another owner was recognised as the own %s", w.Transition)
		}
	}
}
