package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/shard"
)

// Limits of Step Functions.
const (
	MaxStateBytes = 256 << 10       // input and state
	ExpressLimit  = 5 * time.Minute // an Express execution is ended then
	maxTurns      = 25_000 / 7      // seven events a turn: a Standard execution has 25,000
)

// Turn is the index function: one turn of a flight.
type Turn func(ctx context.Context, s flight.State) (flight.State, error)

// MachineSettings describe the state machine.
type MachineSettings struct {
	Limit      time.Duration // how long an execution may take: [ExpressLimit], 0 for no limit (Standard)
	Retries    int           // how often a failed turn is tried again, each turn anew
	RetryAfter time.Duration // at least the lease of a lost invocation
	Report     func(error)   // told why an execution failed; nil for nobody. Called concurrently
}

// Machine runs executions of the flight state machine:
//
//	Hold (wait until wakeAt) -> Index (turn) -> done? -> Hold | end
//
// An execution that fails, is stopped or runs into its limit leaves its flight as it is: redelivery
// recovers it. As with a Lambda function, a turn that is under way then is not interrupted; what it
// answers is lost.
type Machine struct {
	clk  clock.Clock
	set  MachineSettings
	turn Turn

	all  context.Context // the life of the machine: every execution ends with it
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	seq     int64
	running map[int64]execution
}

type execution struct {
	flight flight.ID
	stop   context.CancelFunc
}

var _ flight.Launcher = (*Machine)(nil)

// NewMachine returns a machine whose executions call turn. Close ends it.
func NewMachine(clk clock.Clock, set MachineSettings, turn Turn) *Machine {
	if set.Report == nil {
		set.Report = func(error) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Machine{clk: clk, set: set, turn: turn, all: ctx, stop: cancel, running: map[int64]execution{}}
}

// Start begins an execution. Two of one flight run beside each other, as with Express.
func (m *Machine) Start(ctx context.Context, s flight.State) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start execution: %w", err)
	}
	s.Started = shard.MicrosOf(m.clk.Now())
	input, err := encodeState(s)
	if err != nil {
		return fmt.Errorf("start execution: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("start execution: the machine is closed")
	}
	alive, stop := context.WithCancel(m.all)
	if m.set.Limit > 0 {
		stop() // of the plain one
		alive, stop = m.clk.Deadline(m.all, m.set.Limit)
	}
	m.seq++
	id := m.seq
	m.running[id] = execution{flight: s.Flight, stop: stop}
	m.wg.Go(func() {
		defer func() {
			stop()
			m.mu.Lock()
			delete(m.running, id)
			m.mu.Unlock()
		}()
		if err := m.run(alive, input, s.Started); err != nil && m.all.Err() == nil {
			m.set.Report(fmt.Errorf("execution of flight %s: %w", s.Flight, err))
		}
	})
	return nil
}

// run is one execution. Between its states the state is JSON, as in Step Functions.
func (m *Machine) run(alive context.Context, state []byte, started shard.Micros) error {
	for range maxTurns {
		s, err := decodeState(state)
		if err != nil {
			return err
		}
		wake := s.Wake()
		if wake.IsZero() {
			return fmt.Errorf("wait: wakeAt %q is no time", s.WakeAt)
		}
		if err := m.clk.Sleep(alive, wake.Sub(m.clk.Now())); err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if s, err = m.index(alive, s); err != nil {
			return err
		}
		if err := alive.Err(); err != nil {
			return fmt.Errorf("ended during a turn: %w", err)
		}
		if s.Done {
			return nil
		}
		s.Started = started
		if state, err = encodeState(s); err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d turns", maxTurns)
}

// index is one turn with its retries. The turn itself lives as long as the machine.
func (m *Machine) index(alive context.Context, s flight.State) (flight.State, error) {
	for try := 0; ; try++ {
		in := s
		in.Remaining = s.Remaining.Clone()
		out, err := m.turn(m.all, in)
		if err == nil {
			return out, nil
		}
		if try == m.set.Retries {
			return out, fmt.Errorf("index: %w", err)
		}
		if err := m.clk.Sleep(alive, m.set.RetryAfter); err != nil {
			return out, fmt.Errorf("wait for a retry: %w", err)
		}
	}
}

// Stop ends the executions of a flight as StopExecution does, and says how many there were.
func (m *Machine) Stop(id flight.ID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, e := range m.running {
		if e.flight == id {
			e.stop()
			n++
		}
	}
	return n
}

// Running is the number of executions that have not ended.
func (m *Machine) Running() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.running)
}

// Close ends every execution, the contexts of their turns too, and waits for them. Starting another
// one fails then.
func (m *Machine) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop()
	m.wg.Wait()
}

func encodeState(s flight.State) ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	if len(b) > MaxStateBytes {
		return nil, fmt.Errorf("state has %d bytes, at most %d are allowed", len(b), MaxStateBytes)
	}
	return b, nil
}

func decodeState(b []byte) (flight.State, error) {
	var s flight.State
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("decode state: %w", err)
	}
	return s, nil
}
