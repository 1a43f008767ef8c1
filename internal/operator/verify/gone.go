// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"

	"github.com/lullhq/lull/internal/operator/operate"
)

// hasForEach is how many documents the source must have for each one that is removed without a
// confirmation. A source that suddenly lacks everything must not empty the index.
const hasForEach = 10

// gone notes a document that the source does not have, also when it was asked again.
func (s step) gone(a operate.SourceAnswer) {
	s.Lacks++
	if more := append(s.Gone, a.Copy); s.Repair && size(more) <= maxBytes {
		s.Gone = more
		return
	}
	s.tell(Line{Key: a.Key, Difference: orphan, Version: a.Version, Outcome: Found})
}

// mayRemove reports whether the orphans may be removed without an operator.
func (s step) mayRemove() bool {
	return s.Confirmed || s.Lacks <= s.MaxRemovals && s.Lacks*hasForEach <= s.Has
}

// removeGone removes the next orphans. If there are more of them than MaxRemovals, or if the source
// has fewer than hasForEach documents for each, the removal needs an operator.
func (s step) removeGone(ctx context.Context) error {
	switch {
	case len(s.Gone) == 0:
		s.next(finished)
		return nil
	case s.mayRemove():
	case !s.Unattended:
		return &Unconfirmed{s.Lacks, s.Documents}
	default:
		s.out.Say(Line{Note: fmt.Sprintf("%d documents are not at the source, which has %d: none was removed, and "+
			"`lull index repair %s --from-source` asks before it removes them", s.Lacks, s.Has, s.Collection)})
		for _, c := range s.Gone {
			s.tell(Line{Key: c.Key, Difference: orphan, Outcome: Found})
		}
		s.Gone = nil
		s.next(finished)
		return nil
	}
	n := min(len(s.Gone), removeBatch)
	batch := s.Gone[:n:n]
	s.Gone = s.Gone[n:]
	if err := s.remove(ctx, batch); err != nil {
		return err
	}
	if len(s.Gone) == 0 {
		s.next(finished)
	}
	return nil
}
