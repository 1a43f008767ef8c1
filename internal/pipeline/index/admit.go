// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"

	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// admitter makes an older version pending if the newer version of the document became a dead
// letter.
type admitter struct{ *messages }

// admit does ADMIT in index (step 1, ADR 0014). If a newer version became a dead letter, the newest
// remaining version of this flight must become pending. Redelivery cannot do this, because
// redelivery tries all versions of a message from the start, and a row remembers only one dead
// version. admit returns the documents to claim.
func (s *admitter) admit(ctx context.Context, docs []*document) []*document {
	// Extend before ADMIT (design section 8). If SQS refuses the extension, redelivery admits
	// the version.
	held := s.stillHeld(ctx, docs)
	return each(s.invocation, held, func(d *document) answer { return s.admitOne(ctx, d) }, s.handleAdmit)
}

// stillHeld keeps the messages invisible for this turn and the next, and returns the documents
// whose messages still exist. A version must not become pending without a message. If this flight
// no longer holds the message of a document, redelivery admits the version.
func (s *admitter) stillHeld(ctx context.Context, docs []*document) []*document {
	if len(docs) == 0 {
		return nil
	}
	// This turn ends at s.hard at the latest. The next turn needs one more index timeout.
	until := shard.MicrosOf(s.hard.Add(s.config.Index.Timeout))
	receipts := make([]string, len(docs))
	for i, d := range docs {
		receipts[i] = s.message(d.newest()).Receipt
		until = max(until, s.visible(d.newest().record))
	}
	until = min(until, s.longestHold())
	errs := s.hold(ctx, receipts, until)
	var ours []*document
	for i, d := range docs {
		if err := queue.ErrorAt(errs, i); err == nil {
			ours = append(ours, d)
			continue
		}
		s.giveUp(d, d.newest(), "a newer version is dead, and this message is not held any more: redelivery admits it")
		s.waitForOlder(d)
	}
	return ours
}

// admitOne sends one ADMIT under the id of this flight. If the message is older than the age guard,
// the condition of this ADMIT also needs a committed version (design section 5).
func (s *admitter) admitOne(ctx context.Context, d *document) answer {
	e := d.newest()
	now := s.clock.Now()
	return s.ask(ctx, shard.Admit(shard.Admission{
		Doc: d.id, Key: e.Key, Class: e.Class, Flight: string(s.state.Flight), Now: shard.MicrosOf(now),
		Group: queue.Group(s.message(e).Attributes), Aged: s.config.Lifecycle.Aged(s.message(e).FirstSent(), now),
	}))
}

// handleAdmit handles the answer of one ADMIT. If ADMIT was refused, handleAdmit decides again by
// the row that the refusal returned. A version that would need another ADMIT leaves the flight.
func (s *admitter) handleAdmit(d *document, a answer) (claim bool) {
	e := d.newest()
	if a.unknown() {
		// The row shows whether ADMIT was applied. The next turn reads the row.
		s.wait(d, s.now().Add(s.delay(s.state.Turn)), "ADMIT got no answer")
		return false
	}
	// Whether ADMIT was applied or refused, a.row is the newest image of the row.
	d.row = a.row
	if a.err == nil {
		n := s.about(d, e, journal.Admitted, "behind a dead letter")
		n.Old = a.old
		s.note(n)
	}
	switch s.decideDocument(d, true) {
	case shard.ActClaim:
		return true
	case shard.ActAdmit:
		if d.newest() == e {
			s.giveUp(d, e, "ADMIT refused: redelivery judges it")
		}
		s.waitForOlder(d)
	}
	return false
}
