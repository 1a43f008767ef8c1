// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"

	"github.com/lullhq/lull/internal/seam/journal"
)

// Outage is a time in which lull claimed no documents for a sink.
type Outage struct {
	Sink   string
	Paused bool      // an operator paused the sink; otherwise the sink was unhealthy
	From   time.Time // when the circuit breaker opened, or when the pause began
	To     time.Time // zero while the outage lasts
}

// maxOutages is how many of the latest outages are kept.
const maxOutages = 100

// outage records when an outage begins and ends.
func (l *Ledger) outage(n journal.Note) {
	paused := n.Step == journal.Paused || n.Step == journal.Resumed
	lasts := slices.IndexFunc(l.outages, func(o Outage) bool {
		return o.Sink == n.Sink && o.Paused == paused && o.To.IsZero()
	})
	switch begins := n.Step == journal.CircuitOpened || n.Step == journal.Paused; {
	case begins && lasts < 0:
		l.outages = append(l.outages, Outage{Sink: n.Sink, Paused: paused, From: n.At})
		l.outages = l.outages[max(0, len(l.outages)-maxOutages):]
	case !begins && lasts >= 0:
		l.outages[lasts].To = n.At
	}
}

// Outages returns the latest outages, oldest first.
func (l *Ledger) Outages() []Outage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.outages)
}
