// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"time"
)

// Cost is the processor time and the allocations of one event on this machine.
type Cost struct {
	CPU    time.Duration
	Allocs float64
}

// Pair is a comparison of lull and the idempotency loop over the same workload. The two take turns.
type Pair struct {
	Name       string
	Burst, A   int
	Flight     int // the approximate number of events in a flight
	Sink       bool
	Lull, Loop Cost      // medians
	Ratios     []float64 // ratios of processor time, one for each round, sorted
}

// Ratio returns the median ratio.
func (p Pair) Ratio() float64 { return p.Ratios[len(p.Ratios)/2] }

// Least returns the smallest ratio of all rounds.
func (p Pair) Least() float64 { return p.Ratios[0] }

// Greatest returns the largest ratio of all rounds.
func (p Pair) Greatest() float64 { return p.Ratios[len(p.Ratios)-1] }

// Allocs are the allocations for one message.
type Allocs struct {
	Read   float64 // allocations to read the SQS event
	Handle float64 // allocations to decode, collapse, judge, pack into the manifest and answer
}

// few reports whether the allocations reach their target. Batch sizes change the figure only in the
// second decimal place, so the figure is rounded to one decimal place.
func (a Allocs) few() bool { return math.Round(10*a.Handle) <= 80 }

// Intake is how fast the embedded stack settles events on this machine. An event is settled when
// the newest version is written to the sink and committed in the row, and the message is deleted.
// Superseded messages return later, and are acknowledged then.
type Intake struct {
	Sink   string
	Burst  int
	Events int
	Took   time.Duration // from the first event sent to the last document settled, without the quiet window
	CPU    time.Duration // processor time for one event; it includes all work of the process until no event is left
}

// PerSecond returns how many events are settled in a second.
func (i Intake) PerSecond() int { return int(float64(i.Events) / i.Took.Seconds()) }

// Name says what was measured.
func (i Intake) Name() string {
	if i.Burst == 1 {
		return i.Sink + ", single events"
	}
	return fmt.Sprintf("%s, bursts of %d", i.Sink, i.Burst)
}

// Binary is the program of a function as it is deployed.
type Binary struct {
	Name  string
	Bytes int64 // the size for arm64
}

// Start is a cold start of receive, from the start of the process to the first answer. The first
// batch has ten messages, which are admitted and held.
type Start struct {
	Wall, CPU time.Duration // medians
}
