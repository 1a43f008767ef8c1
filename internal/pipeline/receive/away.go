// SPDX-License-Identifier: Apache-2.0

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

// readHealth reads the sink's health row, once per batch. An eventual read is enough, because
// safety does not depend on the health. If the read fails, the sink counts as healthy.
func readHealth(ctx context.Context, in *invocation, store shard.Store) (health shard.Row, readable bool) {
	ctx, cancel := in.until(ctx, healthShare)
	defer cancel()
	rows, err := store.Read(ctx, []shard.DocID{shard.HealthRow(in.sink)}, shard.Eventual)
	in.noteFailed("read the sink's health", err)
	if err != nil {
		return shard.Row{}, false
	}
	return rows[0], true
}

// sendAway leaves messages in the queue, undecoded, while their sink is away. A flight could only
// wait, and would cost money. Messages past their dead deadline are judged, because otherwise SQS
// could delete them first. sendAway returns the messages to judge, and the messages that it left in
// the queue.
func sendAway(ctx context.Context, h hider, health shard.Row, msgs []queue.Message) (present, absent []queue.Message) {
	if !h.config.Retry.Away(health, h.now()) {
		return msgs, nil
	}
	now, draw, bulk := h.now(), draw(msgs), h.lane == flight.Bulk
	// The key of the map is the wait: one call of Hold serves all messages with the same wait.
	waits := map[time.Duration][]string{}
	for _, m := range msgs {
		if h.start.Sub(m.Sent) > h.config.Retry.DeadDeadline {
			present = append(present, m)
			continue
		}
		wait := queue.WholeSeconds(h.config.Retry.AwayWait(health, now, bulk, m.ReceiveCount, draw))
		waits[wait] = append(waits[wait], m.Receipt)
		absent = append(absent, m)
	}
	h.hide(ctx, "keep messages away", waits)
	for _, wait := range slices.Sorted(maps.Keys(waits)) {
		h.note(journal.Note{
			Step: journal.Away, Count: len(waits[wait]), Until: h.clock.Now().Add(wait),
			Detail: config.AwayText(health),
		})
	}
	return present, absent
}

// draw returns a number in [0, 1) that is computed from the batch, for the jitter.
func draw(msgs []queue.Message) float64 {
	h := fnv.New32a()
	for _, m := range msgs[:min(len(msgs), 1)] {
		_, _ = h.Write([]byte(m.Receipt))
	}
	return float64(h.Sum32()) / (1 << 32)
}
