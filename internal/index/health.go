package index

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/sink"
)

// judgeHealth opens the sink's gate on throttles and on requests that got no answer for any document, so that all flights
// slow down together. One document's trouble does not open it.
func (t *turn) judgeHealth(ctx context.Context, docs []*document, outcomes []sink.Outcome) {
	var throttled, unknown int
	var after time.Duration
	for _, o := range outcomes {
		switch o.Kind {
		case sink.Throttled:
			throttled++
			after = max(after, o.RetryAfter)
		case sink.Unknown:
			unknown++
		}
	}
	// A document alone in its request after claims without an answer is under suspicion itself.
	suspect := len(docs) == 1 && docs[0].row.Attempts > 1
	if throttled > 0 || unknown == len(outcomes) && !suspect {
		t.trip(ctx, after)
	}
}

// trip opens the gate, for longer at each level, or for as long as the sink asked.
func (t *turn) trip(ctx context.Context, retryAfter time.Duration) {
	level := t.health.Level + 1
	r := t.h.Config.Retry
	wait := r.BackoffMax
	if level < 16 && r.BackoffMin<<(level-1) < r.BackoffMax {
		wait = r.BackoffMin << (level - 1)
	}
	until := t.now().Add(max(wait, retryAfter))
	t.tripped, t.gateNext = true, until+1
	if _, err := t.put(ctx, shard.Trip(t.h.SinkName, t.now(), until, level)); err == nil {
		n := journal.Note{Step: journal.Tripped, Count: int(level)}
		n.Until = until.Time()
		t.note(n)
	}
}
