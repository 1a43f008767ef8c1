package bench

import (
	"context"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/simulation/price"
)

// Counts are what a contender asked for.
type Counts struct {
	RowWrites   int // conditional or not, refused ones too
	RowRefused  int
	RowReads    int
	SinkWrites  int // documents
	Starts      int // executions
	Turns       int // invocations of the function behind the timer
	Transitions int // of state machines, billed or not
	Receives    int // ReceiveMessage, ten at a time wherever there are ten in the batch
	EagerPolls  int // ReceiveMessage, if a poller asks again as soon as it is answered
	Deletes     int // DeleteMessageBatch, the event source mapping's own too
	Holds       int // ChangeMessageVisibilityBatch
	Invocations int
	Admissions  int // documents per first received batch, summed: A, for all bursts together
	Received    int // messages handed to functions: more than were sent where holding costs a receive

	Manifests     int // flights whose manifest was written
	ManifestBytes int
	Small         int           // manifests that would fit into an execution's input
	Flown         time.Duration // by all executions
}

// QueueCalls are SQS requests, those of the event source mapping counted in full tens.
func (c Counts) QueueCalls() int { return c.Receives + c.Deletes + c.Holds }

// Meter lets every I/O take its time and counts what it is billed as. It is safe for concurrent
// use.
type Meter struct {
	clk  clock.Clock
	lat  *latency
	next fault.Injector

	mu     sync.Mutex
	counts Counts
	usage  price.Usage
	busy   map[*fault.Invocation]*core
}

// core is the part of a processor that an invocation has.
type core struct {
	share float64
	until time.Time
}

var _ fault.Injector = (*Meter)(nil)

func newMeter(clk clock.Clock, lat *latency, next fault.Injector) *Meter {
	return &Meter{clk: clk, lat: lat, next: next, busy: map[*fault.Invocation]*core{}}
}

// Decide waits as long as the I/O takes: for the invocation's processor, then for the answer.
func (m *Meter) Decide(ctx context.Context, v *fault.Invocation, op fault.Op) fault.Verdict {
	d, requests := m.lat.of(op)
	// A wait that ends with the invocation's time is noticed by what follows.
	_ = m.clk.Sleep(ctx, m.compute(v, time.Duration(requests)*requestCPU)+d)
	return m.next.Decide(ctx, v, op)
}

// compute is how long the invocation needs for that much processor time, after what it already has
// to do.
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

// count changes the counters.
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
