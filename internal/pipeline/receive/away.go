package receive

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// readHealth reads the sink's health, once per batch. An eventual read is enough, because the
// health only steers. If the read fails, the sink counts as healthy.
func (b *batch) readHealth(ctx context.Context) {
	ctx, cancel := b.until(ctx, healthShare)
	defer cancel()
	rows, err := b.h.Shards.Read(ctx, []shard.DocID{shard.HealthRow(b.h.Sink)}, shard.Eventual)
	b.lost("read the sink's health", err)
	if err == nil {
		b.readable, b.health = true, rows[0]
	}
}

// sendAway leaves messages in the queue, undecoded, while their sink is away. A flight could
// only wait, and would cost money. Messages past their dead deadline are judged, because
// otherwise the queue could delete them first.
func (b *batch) sendAway(ctx context.Context) {
	if !b.h.Config.Retry.Away(b.health, b.now()) {
		return
	}
	var rest []queue.Message
	now, draw, bulk := b.now(), b.draw(), b.h.Lane == flight.Bulk
	// Receipts by wait: one call of Hold serves all messages with the same wait.
	waits := map[time.Duration][]string{}
	for _, m := range b.msgs {
		if b.start.Sub(m.Sent) > b.h.Config.Retry.DeadDeadline {
			rest = append(rest, m)
			continue
		}
		wait := queue.WholeSeconds(b.h.Config.Retry.AwayWait(b.health, now, bulk, m.ReceiveCount, draw))
		waits[wait] = append(waits[wait], m.Receipt)
		b.away = append(b.away, m.ID)
	}
	b.holdBack(ctx, "keep messages away", waits)
	for _, wait := range slices.Sorted(maps.Keys(waits)) {
		b.h.note(journal.Note{
			Step: journal.Away, Count: len(waits[wait]), Until: b.h.Clock.Now().Add(wait),
			Detail: config.AwayText(b.health),
		})
	}
	b.msgs, b.state = rest, b.state[:len(rest)] // all states are still empty
}

// draw returns a number in [0, 1) that is computed from the batch.
func (b *batch) draw() float64 {
	h := fnv.New32a()
	for _, m := range b.msgs[:min(len(b.msgs), 1)] {
		_, _ = h.Write([]byte(m.Receipt))
	}
	return float64(h.Sum32()) / (1 << 32)
}
