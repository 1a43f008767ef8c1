package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// judgeHealth opens the sink's circuit on throttles and on requests that got no answer for any
// document, so that all flights slow down together. One document's trouble does not open it, nor
// does one index's.
func (t *turn) judgeHealth(ctx context.Context, docs []*document, outcomes []sink.Outcome) {
	var throttled, unknown int
	var after time.Duration
	for _, o := range outcomes {
		switch o.Kind {
		case sink.Throttled, sink.Configuration:
			if !o.Apart {
				throttled++
			}
			after = max(after, o.RetryAfter)
		case sink.Unknown:
			unknown++
		}
	}
	// A document alone in its request after claims without an answer is under suspicion itself.
	suspect := len(docs) == 1 && docs[0].row.Attempts > 1
	// One throttle is enough. Missing answers count only where the whole request got none.
	if throttled > 0 || unknown == len(outcomes) && !suspect {
		t.trip(ctx, after)
	}
}

// openFor is how long the circuit stays open at a level: doubled from level to level.
func (t *turn) openFor(level int64) time.Duration {
	r := t.h.Config.Retry
	// The bound on the level keeps the shift from overflowing.
	if level > 16 || r.BackoffMin<<max(level-1, 0) > r.BackoffMax {
		return r.BackoffMax
	}
	return r.BackoffMin << max(level-1, 0)
}

// behindCircuit is when this flight asks again. Those who wait are spread over as long as the
// circuit is open. So a sink that is back after hours gets a share of them at a time; and live goes
// before bulk.
func (t *turn) behindCircuit(open shard.Micros, level int64) shard.Micros {
	spread := t.openFor(level)
	if t.manifest.Lane == flight.Bulk {
		open = open.Add(spread) // live may take as long as that
		spread *= 4
	}
	return open.Add(time.Duration(t.h.Jitter() * float64(spread)))
}

// trip opens the circuit, for longer at each level, or for as long as the sink asked.
func (t *turn) trip(ctx context.Context, retryAfter time.Duration) {
	level := t.health.Level + 1
	until := t.now().Add(max(t.openFor(level), retryAfter))
	t.tripped, t.circuitNext = true, t.behindCircuit(until+1, level)
	if _, err := t.put(ctx, shard.Trip(t.h.SinkName, t.now(), until, level)); err == nil {
		n := journal.Note{Step: journal.CircuitOpened, Count: int(level)}
		n.Until = until.Time()
		t.note(n)
	}
}
