// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
)

// began remembers when each sink became unhealthy. A status can only estimate the time from the
// sink's row, and the estimate moves with each probe and after a pause.
type began struct {
	since map[string]time.Time
	at    time.Time // of the status before
}

// forgets is how long after a status its times are believed. In a longer gap without a status, an
// outage may have ended, and another may have begun.
const forgets = time.Minute

// fix gives each unhealthy sink of a status the time at which its outage began. That time is the
// meter's, if the meter saw the beginning, and otherwise the earliest estimate.
func (b *began) fix(ctx context.Context, meter Meter, now time.Time, sinks []operate.SinkStatus) {
	before := b.since
	if now.Sub(b.at) > forgets {
		before = nil
	}
	b.since, b.at = map[string]time.Time{}, now
	var outages []Outage
	if meter != nil && slices.ContainsFunc(sinks, func(k operate.SinkStatus) bool { return k.Open }) {
		m, _ := meter.Measure(ctx) // without the measurements, the estimates stay
		outages = m.Outages
	}
	for i := range sinks {
		k := &sinks[i]
		if !k.Open {
			continue
		}
		if old, known := before[k.Sink]; known && old.Before(k.Since) {
			k.Since = old
		}
		for _, o := range outages {
			if o.Sink == k.Sink && !o.Paused && o.To.IsZero() {
				k.Since = o.From
			}
		}
		b.since[k.Sink] = k.Since
	}
}
