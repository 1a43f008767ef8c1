package index

import (
	"context"
	"net/http"
	"time"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// judgeHealth slows all flights down together where the sink has throttled a part of a request. It
// opens the circuit where that would not be enough. One document's trouble does neither, nor does
// one index's.
func (t *turn) judgeHealth(ctx context.Context, docs []*document, outcomes []sink.Outcome) {
	var applied, busy, throttled, unknown int
	var after time.Duration
	for _, o := range outcomes {
		switch o.Kind {
		case sink.Applied:
			applied++
		case sink.Throttled, sink.Configuration:
			if o.Apart && !(o.Kind == sink.Configuration && t.onlyIndex()) {
				break
			}
			throttled++
			// Where the sink is only busy, it says so.
			if o.Kind == sink.Throttled &&
				(o.Status == http.StatusTooManyRequests || o.Status == http.StatusServiceUnavailable) {
				busy++
			}
			after = max(after, o.RetryAfter)
		case sink.Unknown:
			unknown++
		}
	}
	// A document alone in its request after claims without an answer is under suspicion itself.
	suspect := len(docs) == 1 && docs[0].row.Attempts > 1
	pace := t.taken()
	// At the slowest pace, or where the sink says for how long, an open circuit is cheaper.
	stop := applied == 0 && (after > 0 || pace > 0 && pace <= shard.TripPace)
	switch {
	case unknown == len(outcomes) && !suspect, throttled > 0 && (busy == 0 || stop):
		// Missing answers count only where the whole request got none.
		t.trip(ctx, after)
	case throttled > 0:
		t.cut(ctx, applied, throttled)
	}
}

// cut takes the pace back for all flights, unless somebody has just done so.
func (t *turn) cut(ctx context.Context, applied, throttled int) {
	// The row as it is now says what the others had of the budget.
	if !t.readCircuit(ctx) {
		return
	}
	if t.circuit != shard.CircuitClosed { // somebody has done more than that
		t.tripped, t.circuitNext = true, t.behindCircuit(t.circuitNext, t.health.Level)
		return
	}
	w, due := shard.Cut(t.h.SinkName, t.health, t.now(), applied, throttled, t.ceiling())
	if !due {
		return
	}
	a := t.ask(ctx, w)
	if t.health = a.row; a.err == nil {
		t.note(journal.Note{Step: journal.Slowed, Count: int(a.row.Rate)})
	}
}

// onlyIndex reports whether the settings know that the sink has one collection: what its index does
// not take, nobody can write.
func (t *turn) onlyIndex() bool {
	return len(t.h.Config.Collections) > 0 && len(t.h.Config.CollectionsOf(t.h.SinkName)) == 1
}

// behindCircuit is when this flight asks again. Those who wait are spread over as long as the
// circuit is open. So a sink that is back after hours gets a share of them at a time; and live goes
// before bulk.
func (t *turn) behindCircuit(open shard.Micros, level int64) shard.Micros {
	spread := t.h.Config.Retry.OpenFor(level)
	if t.manifest.Lane == flight.Bulk {
		open = open.Add(spread) // live may take as long as that
		spread *= 4
	}
	return open.Add(time.Duration(t.h.Jitter() * float64(spread)))
}

// trip opens the circuit, for longer at each level, or for as long as the sink asked.
func (t *turn) trip(ctx context.Context, retryAfter time.Duration) {
	level := shard.NextLevel(t.health, t.now(), t.h.Config.Retry.OpenFor)
	until := t.now().Add(min(max(t.h.Config.Retry.OpenFor(level), retryAfter), shard.MaxOpen))
	t.tripped, t.circuitNext = true, t.behindCircuit(until+1, level)
	a := t.ask(ctx, shard.Trip(t.h.SinkName, t.now(), until, level))
	_, refused := shard.AsRefused(a.err)
	if a.err == nil || refused {
		t.health = a.row
	}
	if a.err == nil || refused && a.row.OpenUntil == until { // or ours, and its answer was lost
		// Who opens the circuit probes when its time is over. The others may leave.
		t.state.Probes, t.circuitNext = until, until+1
		n := journal.Note{Step: journal.CircuitOpened, Count: int(level)}
		n.Until = until.Time()
		t.note(n)
	}
}
