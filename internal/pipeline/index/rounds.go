package index

import (
	"cmp"
	"slices"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// rounds groups the claims by how many of their claims got no answer: none or one together, two
// in quarters, more one by one. So a document that kills requests or invocations is found.
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
		// Start at another document in each turn, so that slow payloads do not block those
		// behind them.
		first := s.Turn * maxParallel % n
		if cautious {
			first = s.Turn % n // after a failure, only one document of an origin is loaded first
		}
		if inSlot {
			first = 0 // in a slot, the oldest is first
		}
		out = append(out, slices.Concat(healthy[first:], healthy[:first]))
	}
	out = slices.AppendSeq(out, slices.Chunk(some, shard.GroupSize(2, len(claims))))
	// Fewest attempts first: a document that kills invocations must not block those behind it.
	slices.SortStableFunc(alone, func(a, b *document) int { return cmp.Compare(a.row.Attempts, b.row.Attempts) })
	return slices.AppendSeq(out, slices.Chunk(alone, 1))
}
