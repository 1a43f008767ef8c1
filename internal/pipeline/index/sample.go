// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// secondLook is how long a difference must last to count as drift. The reason for a shorter
// difference may be a resync, a restore or a write with an unknown outcome.
const secondLook = 2 * time.Minute

// sample compares documents that prune picked with their rows. It only reads. A document that
// differs is compared a second time, and counts as drift if it still differs.
func (h *Handler) sample(ctx context.Context, s flight.State) flight.State {
	docs := s.Sample
	s.Sample = nil
	if h.Reader == nil {
		return finished(s)
	}
	l := reconcile.Looker{
		Shards: h.Shards, Reader: h.Reader, SinkName: h.SinkName, Config: h.Config, Clock: h.Clock,
		Parallel: h.Parallel,
	}
	found, err := l.Look(ctx, docs)
	if err != nil {
		h.note(journal.Note{
			Step: journal.CallFailed, Flight: string(s.Flight), Detail: "compare a sample: " + backoff.Class(err),
		})
		return finished(s)
	}
	for _, f := range found {
		switch {
		case !f.Difference.Drift(), unanswered(f), f.Unsure:
		case s.Turn == 0:
			s.Sample = append(s.Sample, f.Row.Doc)
		default:
			h.note(journal.Note{
				Step: journal.Drift, Doc: f.Row.Doc, Key: f.Row.Committed, Flight: string(s.Flight), Old: f.Row,
				Detail: f.Difference.String() + ": the sink has " + shown(f.Copy.Key) + ", the row " +
					shown(f.Row.Committed),
			})
		}
	}
	if len(s.Sample) == 0 {
		return finished(s)
	}
	s.Turn++
	s.WakeAt = flight.WakeText(h.Clock.Now().Add(secondLook))
	return s
}

// unanswered reports whether the row explains the copy in the sink: a write of the claimed version,
// or of a version that was claimed before, got no answer. A waiting message still decides the
// version, perhaps hours later if the sink is away.
func unanswered(f reconcile.Finding) bool {
	return f.Difference == shard.Behind && f.Row.Claimed >= f.Copy.Key && f.Row.Pending > f.Row.Committed
}

// shown returns the key as text, or "nothing" if the document has no version.
func shown(k shard.OrderKey) string {
	if k == "" {
		return "nothing"
	}
	return k.String()
}
