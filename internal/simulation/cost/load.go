// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/simulation/sim"
)

// Load describes the events that arrive.
type Load struct {
	Rate      float64       `json:"eventsPerSecond"`
	Burst     int           `json:"eventsPerBurst"`
	Spread    time.Duration `json:"-"`                      // the time within which the events of a burst are sent
	Hours     float64       `json:"hoursPerDay"`            // the hours of a day with events
	Documents int           `json:"documents"`              // documents whose rows are in the table
	Bytes     int           `json:"bytesPerEvent"`          // bytes of a message
	Key       bool          `json:"key"`                    // your own KMS key encrypts table, queues and bucket
	Used      float64       `json:"capacityUsed,omitempty"` // used part of a provisioned capacity, percent; 0: UsualUse
	// Questions are asked at the URL of searchableCalls, in a month.
	Questions int `json:"questionsPerMonth,omitempty"`
	// the most events to simulate, because they stay in memory; 0 means no limit
	Most int `json:"-"`
}

// Bounds of a Load.
const (
	MaxRate   = 100_000 // events a second
	MaxBurst  = 100
	minHours  = 0.02 // about a minute
	maxBytes  = 64 << 10
	maxSpread = time.Minute
)

// Validate returns the first fault of a load.
func (l Load) Validate() error {
	return cmp.Or(
		want(l.Rate >= 0 && l.Rate <= MaxRate, "%g events a second: use 0 to %d", l.Rate, MaxRate),
		want(l.Rate == 0 || l.Rate >= 1.0/3600, "%g events a second: use at least one an hour, or 0", l.Rate),
		want(l.Burst >= 1 && l.Burst <= MaxBurst, "bursts of %d events: use 1 to %d", l.Burst, MaxBurst),
		want(l.Spread >= 0 && l.Spread <= maxSpread, "bursts over %s: use 0s to %s", l.Spread, maxSpread),
		want(l.Hours >= minHours && l.Hours <= 24, "%g hours a day: use %g to 24", l.Hours, minHours),
		want(l.Used == 0 || l.Used >= 1 && l.Used <= 100, "%g %% of the capacity used: use 1 to 100", l.Used),
		want(l.Documents >= 0 && l.Documents <= 1e9, "%d documents: use 0 to a billion", l.Documents),
		want(l.Questions >= 0 && l.Questions <= 1e9, "%d questions: use 0 to a billion", l.Questions),
		want(l.Bytes >= minBytes && l.Bytes <= maxBytes, "%d bytes an event: use %d to %d", l.Bytes, minBytes, maxBytes),
	)
}

// want returns an error unless the condition holds.
func want(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// A month has 30 days.
const month = 30 * 24 * time.Hour

// events returns the number of events in a month.
func (l Load) events() float64 { return l.Rate * l.Hours * 3600 * 30 }

const (
	// sample is the number of simulated events. The simulated time is at least shortest and at most
	// longest. There are never more events than most, because a simulation cannot hold more.
	sample, most      = 6_000, 100_000
	shortest, longest = time.Minute, 7 * 24 * time.Hour
	rows              = 100 // documents of an unused stack
	minBytes          = 200
)

// upstream returns the messages of the load for a while. Bursts begin at random times, the first
// burst at once. Each burst changes another document. The same load always gives the same messages.
func (l Load) upstream() sim.Upstream {
	of := func(events float64) time.Duration { return time.Duration(events / l.Rate * float64(time.Second)) }
	lasting := max(min(of(sample), longest), shortest)
	lasting = min(lasting, of(float64(cmp.Or(l.Most, most))))
	up := sim.Upstream{Calm: lasting + l.Spread}
	r := rand.New(rand.NewPCG(1, 0x636f7374))
	gap := func() time.Duration {
		return time.Duration(r.ExpFloat64() / l.Rate * float64(l.Burst) * float64(time.Second))
	}
	for doc, at := 0, time.Duration(0); at < lasting; doc, at = doc+1, at+gap() {
		offsets := make([]time.Duration, l.Burst)
		for i := range offsets {
			offsets[i] = time.Duration(r.Int64N(int64(l.Spread) + 1))
		}
		slices.Sort(offsets)
		for version, offset := range offsets {
			up.Arrivals = append(up.Arrivals, arrival(at+offset, doc, version+1, l.Bytes))
		}
	}
	sim.InOrder(up.Arrivals)
	return up
}

// quietly returns a few documents at the beginning, and no further messages.
func quietly(lasting time.Duration) sim.Upstream {
	up := sim.Upstream{Calm: lasting}
	for doc := range rows {
		up.Arrivals = append(up.Arrivals, arrival(0, doc, 1, minBytes))
	}
	return up
}

func arrival(at time.Duration, doc, version, bytes int) sim.Arrival {
	body := fmt.Sprintf(`{"type":"doc.changed","subject":"cost-%09d","sequence":"%d","data":{"text":"`, doc, version)
	body += strings.Repeat("x", max(bytes-len(body)-3, 0)) + `"}}`
	return sim.Arrival{At: at, Message: queue.Outgoing{Body: body}}
}
