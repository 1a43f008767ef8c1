package bench

import (
	"fmt"
	"math"
	"time"
)

// Cost is what an event costs this machine.
type Cost struct {
	CPU    time.Duration
	Allocs float64
}

// Pair is lull and the idempotency loop over the same workload, in turns.
type Pair struct {
	Name       string
	Burst, A   int
	Flight     int // events of one, about
	Sink       bool
	Lull, Loop Cost      // medians
	Ratios     []float64 // of processor time, one each round, sorted
}

// Ratio is the median.
func (p Pair) Ratio() float64 { return p.Ratios[len(p.Ratios)/2] }

// Least is the smallest ratio of all rounds.
func (p Pair) Least() float64 { return p.Ratios[0] }

// Greatest is the largest ratio of all rounds.
func (p Pair) Greatest() float64 { return p.Ratios[len(p.Ratios)-1] }

// Allocs are allocations a message.
type Allocs struct {
	Read   float64 // to read the SQS event
	Handle float64 // to decode, collapse, judge, pack into the manifest and answer
}

// few reports whether they reach their target. What a batch of another size allocates shows in
// hundredths.
func (a Allocs) few() bool { return math.Round(10*a.Handle) <= 80 }

// Intake is how fast the embedded stack settles events on this machine: the newest version written
// to the sink, committed in the row, its message deleted. Superseded messages come back later, and
// are acknowledged then.
type Intake struct {
	Sink   string
	Burst  int
	Events int
	Took   time.Duration // from the first event sent to the last document settled, without the quiet window between
	CPU    time.Duration // an event, of all that the process did until nothing was left
}

// PerSecond is settled events a second.
func (i Intake) PerSecond() int { return int(float64(i.Events) / i.Took.Seconds()) }

// Name says what was measured.
func (i Intake) Name() string {
	if i.Burst == 1 {
		return i.Sink + ", single events"
	}
	return fmt.Sprintf("%s, bursts of %d", i.Sink, i.Burst)
}

// Binary is a function as it is deployed.
type Binary struct {
	Name  string
	Bytes int64 // for arm64
}

// Start is a cold start of receive: from the process to its first answer, a batch of ten messages
// that is admitted and held.
type Start struct {
	Wall, CPU time.Duration // medians
}
