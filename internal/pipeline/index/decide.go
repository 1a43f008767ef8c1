package index

import (
	"cmp"
	"context"
	"slices"

	"github.com/lullhq/lull/internal/shard"
)

// decide is step 1. It reads the rows of the documents that are due, and shard.Decide says what
// to do with the newest version of each. It returns the documents to claim.
func (t *turn) decide(ctx context.Context) []*document {
	due := t.due()
	if len(due) == 0 {
		return nil
	}
	var claims, behind []*document
	docs := due
	// Try the cheap read first. If a row cannot be decided by it, read that row again,
	// consistently (design section 5).
	for _, c := range []shard.Consistency{shard.Eventual, shard.Consistent} {
		// The claims from the first read stay valid, because CLAIM checks its condition.
		if err := t.read(ctx, docs, c); err != nil {
			t.again(t.now().Add(t.delay(0)))
			return t.unlessOpen(claims)
		}
		var doubtful []*document
		for _, d := range docs {
			switch t.settle(d, bool(c)) {
			case shard.ActClaim:
				claims = append(claims, d)
			case shard.ActReadAgain:
				doubtful = append(doubtful, d)
			case shard.ActAdmit:
				behind = append(behind, d)
			}
		}
		if docs = doubtful; len(docs) == 0 {
			break
		}
	}
	return t.unlessOpen(append(claims, t.admit(ctx, behind)...))
}

// due returns the documents whose newest held version is due, at most maxItemsPerTurn. The
// others set the next wake. If more are due, each turn begins where the last one ended.
// Otherwise documents that wait long could keep a flight from ever looking at the others.
func (t *turn) due() []*document {
	now, limit := t.now(), t.config.Index.MaxItemsPerTurn
	first := 0
	if n := len(t.docs); n > limit {
		first = t.state.Turn % n * limit % n
	}
	var due []*document
	for _, d := range slices.Concat(t.docs[first:], t.docs[:first]) {
		switch e := d.newest(); {
		case e == nil:
		case e.Due > now:
			t.again(e.Due)
		case len(due) >= limit:
			// The next turn takes the rest, as soon as it can start.
			t.again(now)
		default:
			due = append(due, d)
		}
	}
	return due
}

// unlessOpen postpones the claims while the circuit breaker of the sink is open (design section
// 8).
func (t *turn) unlessOpen(claims []*document) []*document {
	if t.sink.circuit == shard.CircuitClosed {
		return claims
	}
	t.waitAll(claims, t.sink.next, t.sink.shut())
	return nil
}

// rounds groups the claims by how many of their claims got no answer: none or one together, two
// in quarters, more one by one. So a document that kills requests or invocations is found.
func (t *turn) rounds(claims []*document) [][]*document {
	var healthy, some, alone []*document
	for _, d := range claims {
		switch {
		case d.row.Attempts >= 3, t.state.Panicked.Has(d.newest().item):
			alone = append(alone, d)
		case d.row.Attempts == 2:
			some = append(some, d)
		default:
			healthy = append(healthy, d)
		}
	}
	var out [][]*document
	if n := len(healthy); n > 0 {
		// Start at another document in each turn, so that slow payloads do not block those
		// behind them.
		first := t.state.Turn * maxParallel % n
		if t.cautious {
			first = t.state.Turn % n // after a failure, only one document of an origin is loaded first
		}
		if t.slot != 0 {
			first = 0 // in a slot, the oldest is first
		}
		out = append(out, slices.Concat(healthy[first:], healthy[:first]))
	}
	out = slices.AppendSeq(out, slices.Chunk(some, shard.GroupSize(2, len(claims))))
	// Fewest attempts first: a document that kills invocations must not block those behind it.
	slices.SortStableFunc(alone, func(a, b *document) int { return cmp.Compare(a.row.Attempts, b.row.Attempts) })
	return slices.AppendSeq(out, slices.Chunk(alone, 1))
}
