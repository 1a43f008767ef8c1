// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// enricher is what a turn knows of the enrichment service of one collection.
type enricher struct {
	service
	collection shard.Collection
	set        *config.Enrich
	caller     enrich.Caller
	inputs     enrich.Inputs

	read    bool         // the health row of the service was read
	probing shard.Micros // until when this turn is the only prober; 0 if another turn or none probes
	rounds  int
}

// isAway reports whether a service is away, so that documents must not wait for it in a flight.
func (e *enricher) isAway() bool {
	return e.circuit == shard.CircuitOpen && e.config.Retry.Away(e.row, e.now())
}

// room returns how many of the documents a service may be asked about now. If n is 0, until says
// when to try again and why gives the reason.
func (e *enricher) room(ctx context.Context, documents int) (n int, until shard.Micros, why string) {
	// The first round has enough time, which cdk synth has checked. A later round starts only if a
	// request still has its whole time-out.
	if e.rounds > 0 && e.window() < e.set.Timeout {
		return 0, e.now(), "no time is left to enrich it"
	}
	if e.read = e.read || e.readHealth(ctx); !e.read {
		return 0, e.now().Add(e.config.Retry.BackoffMin), "the enricher's health could not be read"
	}
	if e.circuit == shard.CircuitProbe && e.probing == 0 {
		until := e.now().Add(e.set.Timeout + e.config.Index.Guard)
		if e.isProber(ctx, until) {
			e.probing, e.rounds = until, e.rounds+1
			return 1, 0, ""
		}
	}
	if e.circuit != shard.CircuitClosed {
		return 0, e.behindCircuit(e.next, e.row.Level), "the enricher of the collection is away"
	}
	size, atOnce := e.size(e.now())
	n = min(documents, size*atOnce)
	if pace := shard.Pace(e.row, e.now()); pace > 0 {
		if ahead := e.awaitTime(ctx, shard.Cost(float64(n), pace)); ahead > 0 {
			return 0, e.now().Add(ahead + time.Duration(e.jitter()*float64(ahead+slotMost))),
				"the enricher throttles: other flights have taken its budget"
		}
	}
	e.rounds++
	return n, 0, ""
}

// awaitTime takes the next free time of a service's budget and waits for it. If too much time is
// already taken, awaitTime returns how much.
func (e *enricher) awaitTime(ctx context.Context, long time.Duration) time.Duration {
	end, ok := e.spend(ctx, long, slotNear)
	if !ok {
		return max(shard.Ahead(e.row, e.now()), slotNear)
	}
	// If the invocation ends here, only this time is lost.
	_ = e.clock.Sleep(ctx, end.Add(-long).Sub(e.now()))
	return 0
}

// size returns the number of documents in a request, and atOnce, the number of requests in
// parallel. A service that answered late gets one request at a time, as large as its pace allows
// within the time-out.
func (e *enricher) size(now shard.Micros) (size, atOnce int) {
	if pace := shard.Pace(e.row, now); pace > 0 {
		return min(max(int(shard.Worth(e.set.Timeout, pace)), 1), e.set.Batch), 1
	}
	return e.set.Batch, e.set.MaxConcurrency
}

// window returns how long the next enrichment may take. The rest of the remaining time is for the
// sink.
func (e *enricher) window() time.Duration {
	left := e.remaining() - sinkMargin
	return max(left-e.config.Index.SinkDeadline, left/2)
}

// judge updates the health row of the service for the other flights, as health.judge does for the
// sink.
func (e *enricher) judge(ctx context.Context, n tally) {
	switch pace := shard.Pace(e.row, e.now()); {
	case n.throttled > 0 && n.served == 0 && (n.after > 0 || e.probing != 0 || pace > 0 && pace <= shard.TripPace),
		n.throttled == 0 && n.down && !n.answered:
		e.trip(ctx, n.after)
	case n.throttled > 0:
		e.lowerPace(ctx, n.served, n.throttled, 0, 0)
	case e.probing != 0 && n.answered:
		e.closeCircuit(ctx, e.probing, shard.Restart(e.row, e.now()))
		e.probing = 0
	}
}

// trip opens the service's circuit for all flights. The circuit stays open longer at each level.
func (e *enricher) trip(ctx context.Context, after time.Duration) {
	level, until := e.opening(e.now(), e.now(), after)
	e.circuit, e.next, e.probing = shard.CircuitOpen, until+1, 0
	if e.openCircuit(ctx, level, until) {
		e.note(journal.Note{
			Step: journal.EnrichAway, Count: int(level), Until: until.Time(), Detail: string(e.collection),
		})
	}
	// another flight opened the circuit first
	if other := e.row.OpenUntil; other > e.now() && !shard.Absurd(other, e.now()) {
		e.next = other + 1
	}
}
