// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/simulation/price"
)

// Counts are the numbers of requests and steps of a contender.
type Counts struct {
	RowWrites   int // all row writes, conditional or not, including refused ones
	RowRefused  int
	RowReads    int
	SinkWrites  int // documents written to the sink
	Starts      int // started executions
	Turns       int // invocations of the function that the timer starts
	Transitions int // state transitions, billed or not
	Receives    int // ReceiveMessage calls, with ten messages each as long as the batch has ten
	EagerPolls  int // ReceiveMessage calls if a poller asks again after each answer, without a wait
	Deletes     int // DeleteMessageBatch calls, including the ones of the event source mapping
	Holds       int // ChangeMessageVisibilityBatch calls
	Invocations int
	Admissions  int // sum over first batches of the number of documents in them: A, for all bursts together
	Received    int // messages given to functions; more than were sent, if holding a message costs a receive

	Manifests     int // flights whose manifest was written to S3
	ManifestBytes int
	Small         int // manifests that would fit into an execution's input
}

// Meter delays each operation by its latency, and counts what AWS bills for it. A Meter is safe for
// concurrent use.
type Meter struct {
	clk  clock.Clock
	lat  *latency
	next fault.Injector

	mu     sync.Mutex
	counts Counts
	usage  price.Usage
	busy   map[*fault.Invocation]*core
}

// core is the share of a processor core that an invocation has.
type core struct {
	share float64
	until time.Time
}

var _ fault.Injector = (*Meter)(nil)

func newMeter(clk clock.Clock, lat *latency, next fault.Injector) *Meter {
	return &Meter{clk: clk, lat: lat, next: next, busy: map[*fault.Invocation]*core{}}
}

// Decide waits as long as the operation takes: first for the invocation's processor, then for the
// answer.
func (m *Meter) Decide(ctx context.Context, v *fault.Invocation, op fault.Op) fault.Verdict {
	d, requests := m.lat.timeOf(op)
	// If the invocation's time ends during the wait, the next call notices it.
	_ = m.clk.Sleep(ctx, m.compute(v, time.Duration(requests)*requestCPU)+d)
	return m.next.Decide(ctx, v, op)
}

// compute returns how long the invocation needs for this processor time, after the work that it
// already has.
func (m *Meter) compute(v *fault.Invocation, cpu time.Duration) time.Duration {
	now := m.clk.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.busy[v]
	if c == nil {
		return 0
	}
	if c.until.Before(now) {
		c.until = now
	}
	c.until = c.until.Add(time.Duration(float64(cpu) / c.share))
	return c.until.Sub(now)
}

func (m *Meter) begin(v *fault.Invocation, megabytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[v] = &core{share: min(1, float64(megabytes)/coreMegabytes), until: m.clk.Now()}
}

func (m *Meter) end(v *fault.Invocation, took time.Duration, megabytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.busy, v)
	m.counts.Invocations++
	m.usage.Invocations++
	m.usage.LambdaGBSeconds += price.LambdaGBSeconds(took, megabytes)
}

// count changes the counters under the lock.
func (m *Meter) count(f func(c *Counts, u *price.Usage)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.counts, &m.usage)
}

func (m *Meter) read() (Counts, price.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts, m.usage
}
