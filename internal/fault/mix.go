// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Rates are probabilities of faults. Standard returns the standard mix of docs/faults.md.
type Rates struct {
	DeliverTwice float64       // for each message
	Reorder      float64       // for each message
	ReorderBy    time.Duration // the longest delay of a reordered message
	FlightLost   float64       // for each StartExecution that reported success
	FlightTwice  float64       // for each StartExecution
	IOFailBefore float64       // for each I/O
	IOFailAfter  float64       // for each I/O
	IOThrottle   float64       // for each I/O
	Kill         float64       // for each invocation, at a random I/O
	SinkThrottle float64       // for each sink request: status 429 with Retry-After 1 s
	Skew         time.Duration // the largest error of a clock
}

// Standard returns the standard mix of faults.
func Standard() Rates {
	return Rates{
		DeliverTwice: 0.02, Reorder: 0.05, ReorderBy: 5 * time.Second, FlightLost: 0.005, FlightTwice: 0.005,
		IOFailBefore: 0.001, IOFailAfter: 0.001, IOThrottle: 0.005, Kill: 0.003, SinkThrottle: 0.01,
		Skew: 500 * time.Millisecond,
	}
}

// Verdict returns the verdict about an I/O for p, a random number between 0 and 1.
func (r *Rates) Verdict(op Op, p float64) Verdict {
	if op.Writes() {
		if p -= r.SinkThrottle; p < 0 {
			return Throttle
		}
	}
	if p -= r.IOFailBefore; p < 0 {
		return FailBefore
	}
	if p -= r.IOFailAfter; p < 0 {
		return FailAfter
	}
	if p -= r.IOThrottle; p < 0 {
		return Throttle
	}
	return OK
}

// Mix makes random decisions with given rates. A Mix is safe for concurrent use. The same seed
// gives the same numbers, but concurrent callers get them in no fixed order.
type Mix struct {
	Rates Rates

	mu    sync.Mutex
	rnd   *rand.Rand
	kills map[int64]int // how many I/Os remain until an invocation is killed
}

var _ Injector = (*Mix)(nil)

// NewMix returns a mix with its own random sequence.
func NewMix(r Rates, seed uint64) *Mix {
	return &Mix{Rates: r, rnd: rand.New(rand.NewPCG(seed, 0x6c756c6c)), kills: map[int64]int{}}
}

// Chance returns true with probability p.
func (m *Mix) Chance(p float64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rnd.Float64() < p
}

// Between returns a random duration in [-d, d].
func (m *Mix) Between(d time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Duration((2*m.rnd.Float64() - 1) * float64(d))
}

// Deliver decides at random how late a message is delivered, and whether it is delivered twice.
func (m *Mix) Deliver() (late time.Duration, twice bool) {
	if m.Chance(m.Rates.Reorder) {
		late = max(m.Between(m.Rates.ReorderBy), 0)
	}
	return late, m.Chance(m.Rates.DeliverTwice)
}

// A kill happens at one of the first killWithin I/Os of an invocation.
const killWithin = 40

// Begin decides at random whether the invocation will be killed, and at which I/O.
func (m *Mix) Begin(v *Invocation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rnd.Float64() < m.Rates.Kill {
		m.kills[v.ID] = 1 + m.rnd.IntN(killWithin)
	}
}

// End removes the invocation. If the invocation has a kill left, because it did too little I/O, End
// kills it before it answers.
func (m *Mix) End(v *Invocation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, doomed := m.kills[v.ID]; doomed {
		delete(m.kills, v.ID)
		v.Kill()
	}
}

// Decide returns a random verdict.
func (m *Mix) Decide(_ context.Context, v *Invocation, op Op) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left, doomed := m.kills[v.ID]; doomed {
		if left--; left == 0 {
			delete(m.kills, v.ID)
			if m.rnd.IntN(2) == 0 {
				return CrashBefore
			}
			return CrashAfter
		}
		m.kills[v.ID] = left
	}
	return m.Rates.Verdict(op, m.rnd.Float64())
}
