// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// claimer does step 3 of a turn: it takes the leases of documents.
type claimer struct {
	*holding
	newToken func() shard.Token
}

// claim does step 3: a CLAIM for each document, with a bounded number in parallel. It returns the
// documents whose lease this turn has. If the row in a refusal asks for the other form of CLAIM,
// claim tries again with a new token.
func (s *claimer) claim(ctx context.Context, docs []*document) []*document {
	var ours []*document
	// There are at most three rounds. If a row changed before each round, its document waits for
	// the next turn.
	for range 3 {
		bid := func(d *document) claimAnswer { return s.bid(ctx, d) }
		docs = each(s.invocation, docs, bid, func(d *document, a claimAnswer) bool {
			won, retry := s.handleClaim(d, a)
			if won {
				ours = append(ours, d)
			}
			return retry
		})
	}
	s.waitAll(docs, s.now(), errChanging.Error())
	return ours
}

type claimAnswer struct {
	answer
	bid shard.Bid
}

// bid sends one CLAIM with its retries. All retries have the same token. If an earlier try was
// applied, the row refuses the later try, and the token shows that the claim is ours. A new bid has
// a new token, so an older claim is never mistaken for the new one.
func (s *claimer) bid(ctx context.Context, d *document) claimAnswer {
	a := claimAnswer{bid: shard.Bid{
		Doc: d.id, Key: d.newest().Key, Token: s.newToken(), Now: s.now(), Until: s.leaseEnd(), Cap: d.step.Cap,
		MinInterval: s.config.Timing(d.id.Collection()).MinInterval, Again: d.step.Again,
	}}
	a.bid.Fence = shard.NextFence(d.row, a.bid.Now)
	a.answer = s.ask(ctx, shard.Claim(a.bid))
	if a.refused && shard.OwnClaim(a.row, a.bid) {
		a.err = nil // an earlier try was applied, but its answer was lost
	}
	return a
}

// handleClaim handles the answer of one CLAIM. It reports whether the lease is ours (won), or
// whether to try again with the newest image of the row (retry).
func (s *claimer) handleClaim(d *document, a claimAnswer) (won, retry bool) {
	e := d.newest()
	if a.err == nil {
		before := a.old
		d.row, d.before = a.row, &before
		// The time of the claim becomes the fence. A sink with versions compares fences (design
		// section 5).
		d.lease = a.bid.Lease()
		if off := a.bid.Fence - a.bid.Now; off > 0 {
			s.note(s.about(d, e, journal.ClockOff, "the row's last write lies "+a.bid.Fence.Sub(a.bid.Now).String()+" ahead"))
		}
		n := s.about(d, e, journal.Claimed, "")
		n.Until, n.Old = a.bid.Until.Time(), a.old
		s.note(n)
		return true, false
	}
	if a.unknown() {
		// The lease may belong to this turn, but the turn cannot know. The lease expires by itself.
		s.wait(d, a.bid.Until+1, "CLAIM got no answer")
		return false, false
	}
	return false, s.decideAfterRefusal(d, a.row)
}
