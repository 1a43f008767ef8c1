// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// While a sink is away for long, lull puts its messages off (ADR 0027): each message is invisible
// in its queue for some minutes, without a flight. When the sink is back, nothing makes the
// messages visible earlier.

// putOffUntil returns until when messages may still be invisible, for a sink that accepts documents
// again. It is the zero time if the sink was not away for long, or if that time has passed. The row
// does not say how long a pause was. So after a pause, messages count as put off as long as the
// rate of writes grows.
func putOffUntil(retry config.Retry, health shard.Row, now shard.Micros) time.Time {
	until := health.LastWrite.Add(config.AwayMost)
	if health.LastWrite == 0 || until <= now || shard.Unavailable(health) {
		return time.Time{}
	}
	was := health
	was.OpenUntil = health.LastWrite
	if !retry.Away(was, health.LastWrite) && !shard.SlowStart(health, now) {
		return time.Time{}
	}
	return until.Time()
}

// putOff counts the messages of a sink that are invisible in its queues but are in none of these
// flights. It reads at most maxManifests flights. It also counts the messages of the flights that
// it does not read. So it may count too many messages, but never too few.
func (o *reporter) putOff(ctx context.Context, sink string, queues []QueueStatus, flights []flight.Stored) (n int) {
	for _, q := range queues {
		if q.Sink == sink {
			n += q.InFlight
		}
	}
	for _, f := range flights[:min(len(flights), maxManifests)] {
		if n <= 0 || ctx.Err() != nil {
			break
		}
		if m, err := o.manifest(ctx, f.ID); err == nil && m.Sink == sink {
			n -= len(m.Records)
		}
	}
	return max(n, 0)
}

// maxManifests is how many flights Status reads for a sink that is or was away.
const maxManifests = 100
