package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// Turn is the index function: one turn of a flight.
type Turn func(ctx context.Context, s flight.State) (flight.State, error)

// MachineSettings describe the state machine.
type MachineSettings struct {
	Retries    int           // how often a turn is retried
	RetryAfter time.Duration // at least the lease of a lost invocation
	Name       string        // of its executions in the Keeper
	Report     func(error)   // called with the error of a failed execution, concurrently; may be nil
}

// Machine runs [emulation.Execution]s with a clock. When an execution ends during a turn, the turn
// continues, as a Lambda function would, and its answer is lost.
type Machine struct {
	clk  clock.Clock
	set  MachineSettings
	turn Turn
	keep Keeper

	all  context.Context // the machine's own context: every execution ends with it
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	seq     int64
	running map[int64]execution
	left    []flight.State // states of executions that the last process left
}

type execution struct {
	flight flight.ID
	stop   context.CancelFunc
}

var _ flight.Launcher = (*Machine)(nil)

// NewMachine returns a machine whose executions call turn. Close stops it.
func NewMachine(clk clock.Clock, set MachineSettings, turn Turn) *Machine {
	if set.Report == nil {
		set.Report = func(error) {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Machine{
		clk:     clk,
		set:     set,
		turn:    turn,
		keep:    forgetful{},
		all:     ctx,
		stop:    cancel,
		running: map[int64]execution{},
	}
}

// Keep restores the stored executions, each with the answer of its last turn, and stores all
// changes from now on. Call it before any use, and then Resume to continue the executions.
func (m *Machine) Keep(k Keeper) error {
	m.keep = k
	return restore(k, m.room(), func(key string, s flight.State) error {
		m.left = append(m.left, s)
		k.Delete(m.room(), key)
		return nil
	})
}

func (m *Machine) room() string { return "execution " + m.set.Name }

// Resume starts the executions that the last process left, as Step Functions continues after a lost
// turn.
func (m *Machine) Resume(ctx context.Context) error {
	var errs []error
	for _, s := range m.left {
		errs = append(errs, m.Start(ctx, s))
	}
	m.left = nil
	return errors.Join(errs...)
}

// Start begins an execution. Two executions of one flight run at the same time, as with Express.
func (m *Machine) Start(ctx context.Context, s flight.State) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start execution: %w", err)
	}
	e, err := emulation.NewExecution(s, m.clk.Now(), m.set.Retries)
	if err != nil {
		return err
	}
	defer m.keep.Flush()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("start execution: the machine is closed")
	}
	alive, stop := context.WithCancel(m.all)
	if limit := e.Limit(); limit > 0 {
		stop() // of the context without a deadline
		alive, stop = m.clk.Deadline(m.all, limit)
	}
	m.seq++
	id := m.seq
	m.running[id] = execution{flight: s.Flight, stop: stop}
	key := fmt.Sprintf("%016x", id)
	m.keep.Put(m.room(), key, s)
	m.wg.Go(func() {
		defer func() {
			stop()
			m.mu.Lock()
			delete(m.running, id)
			m.mu.Unlock()
			if m.all.Err() == nil { // an execution that ends with the machine continues in the next process
				m.keep.Delete(m.room(), key)
				m.keep.Flush()
			}
		}()
		if err := m.run(alive, key, e); err != nil && m.all.Err() == nil {
			m.set.Report(fmt.Errorf("execution of flight %s: %w", s.Flight, err))
		}
	})
	return nil
}

// run runs one execution. Its turns may outlive the execution, but not the machine.
func (m *Machine) run(alive context.Context, key string, e *emulation.Execution) error {
	for step := emulation.Hold; step != emulation.Done; {
		if err := m.wait(alive, e, step); err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		in, err := e.Input()
		if err != nil {
			return err
		}
		in.Entered = shard.MicrosOf(m.clk.Now())
		out, failure := m.turn(m.all, in)
		if err := alive.Err(); err != nil {
			return fmt.Errorf("ended during a turn: %w", err)
		}
		if step, err = e.Answer(out, failure); err != nil {
			return err
		}
		if step == emulation.Hold {
			m.keep.Put(m.room(), key, out)
			m.keep.Flush()
		}
	}
	return nil
}

// wait waits for the next turn, or for the retry of a failed one.
func (m *Machine) wait(alive context.Context, e *emulation.Execution, step emulation.Step) error {
	if step == emulation.Retry {
		return m.clk.Sleep(alive, m.set.RetryAfter)
	}
	wake, err := e.Wake()
	if err != nil {
		return err
	}
	return m.clk.Sleep(alive, wake.Sub(m.clk.Now()))
}

// Stop ends the executions of a flight, as StopExecution does, and returns their number.
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

// Running is the number of running executions.
func (m *Machine) Running() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.running)
}

// Close ends every execution and the contexts of their turns, and waits for them. After that, Start
// fails.
func (m *Machine) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop()
	m.wg.Wait()
}
