// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"context"
	"slices"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// decider does step 1 of a turn: it reads the rows and decides what to do with each document.
type decider struct{ *holding }

// decide does step 1 of a turn. It reads the rows of the documents that are due, and shard.Decide
// says what to do with the newest version of each document. decide returns the documents to claim,
// and the documents to admit because a newer version is a dead letter.
func (s *decider) decide(ctx context.Context) (claims, behind []*document) {
	due := s.due()
	if len(due) == 0 {
		return nil, nil
	}
	docs := due
	// Try the cheap read first. If that read is not enough to decide about a row, read the row
	// again, consistently (design section 5).
	for _, c := range []shard.Consistency{shard.Eventual, shard.Consistent} {
		// The claims from the first read stay valid, because CLAIM checks its condition.
		if err := s.read(ctx, docs, c); err != nil {
			s.wakeBy(s.now().Add(s.delay(0)))
			return claims, nil
		}
		var doubtful []*document
		for _, d := range docs {
			switch s.decideDocument(d, bool(c)) {
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
	return claims, behind
}

// due returns the documents whose newest held version is due, at most maxItemsPerTurn. The other
// documents set the next wake. If more documents are due, each turn begins where the last turn
// ended. Otherwise a flight could look at the same waiting documents in each turn, and never at the
// others.
func (s *decider) due() []*document {
	now, limit := s.now(), s.config.Index.MaxItemsPerTurn
	first := 0
	if n := len(s.docs); n > limit {
		first = s.state.Turn % n * limit % n
	}
	var due []*document
	for _, d := range slices.Concat(s.docs[first:], s.docs[:first]) {
		switch e := d.newest(); {
		case e == nil:
		case e.Due > now:
			s.wakeBy(e.Due)
		case len(due) >= limit:
			// The next turn takes the other due documents, as soon as it can start.
			s.wakeBy(now)
		default:
			due = append(due, d)
		}
	}
	return due
}

// rounds groups the claims by how many earlier claims of their document got no answer. Documents
// with none or one are sent together, documents with two in quarters, and documents with more one
// by one. So lull finds a document that kills requests or invocations.
func rounds(claims []*document, s *flight.State, cautious, inSlot bool) [][]*document {
	var healthy, some, alone []*document
	for _, d := range claims {
		switch {
		case d.row.Attempts >= 3, s.Panicked.Has(d.newest().item):
			alone = append(alone, d)
		case d.row.Attempts == 2:
			some = append(some, d)
		default:
			healthy = append(healthy, d)
		}
	}
	var out [][]*document
	if n := len(healthy); n > 0 {
		// Start at another document in each turn, so that slow payloads do not block the documents
		// behind them.
		first := s.Turn * maxParallel % n
		if cautious {
			first = s.Turn % n // after a failure, lull first loads only one document of an origin
		}
		if inSlot {
			first = 0 // in a slot, the oldest document goes first
		}
		out = append(out, slices.Concat(healthy[first:], healthy[:first]))
	}
	out = slices.AppendSeq(out, slices.Chunk(some, shard.GroupSize(2, len(claims))))
	// Documents with the fewest attempts go first: a document that kills invocations must not block
	// the documents behind it.
	slices.SortStableFunc(alone, func(a, b *document) int { return cmp.Compare(a.row.Attempts, b.row.Attempts) })
	return slices.AppendSeq(out, slices.Chunk(alone, 1))
}
