// SPDX-License-Identifier: Apache-2.0

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

// Turn is a function that runs one turn of a flight, as the index function does.
type Turn func(ctx context.Context, s flight.State) (flight.State, error)

// MachineSettings contains the settings of a Machine.
type MachineSettings struct {
	Retries    int           // how often a failed turn is retried
	RetryAfter time.Duration // the wait before a retry; at least as long as the lease of a lost invocation
	Name       string        // the name of the room for executions in the Keeper
	Report     func(error)   // called with the error of each failed execution, also concurrently; may be nil
}

// Machine runs [emulation.Execution]s with a clock. If an execution is stopped during a turn, the
// turn continues, as a Lambda function would, but its answer is lost.
type Machine struct {
	clk  clock.Clock
	set  MachineSettings
	turn Turn
	keep Keeper

	all  context.Context // the context of the machine: all executions end with it
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	seq     int64
	running map[int64]execution
	left    []flight.State // the states of executions that ran when the last process ended
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

// Keep reads the executions that the Keeper has stored, each with the answer of its last turn. From
// then on, the machine stores all changes in the Keeper. Call Keep before any other method, and
// then Resume to continue the executions.
func (m *Machine) Keep(k Keeper) error {
	m.keep = k
	return restore(k, m.room(), func(key string, s flight.State) error {
		m.left = append(m.left, s)
		k.Delete(m.room(), key)
		return nil
	})
}

func (m *Machine) room() string { return "execution " + m.set.Name }

// Resume starts the executions again that ran when the last process ended. Each execution continues
// after its last finished turn.
func (m *Machine) Resume(ctx context.Context) error {
	var errs []error
	for _, s := range m.left {
		errs = append(errs, m.Start(ctx, s))
	}
	m.left = nil
	return errors.Join(errs...)
}

// Start begins an execution. Two executions of one flight can run at the same time, as with Express
// workflows.
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
		stop() // release the context without a deadline, which is replaced
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
			// if the execution ends because the machine closes, it stays stored for the next
			// process
			if m.all.Err() == nil {
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

// run runs one execution. A turn may continue after its execution has ended, but not after the
// machine is closed.
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

// wait sleeps until the next turn, or until the retry of a failed turn.
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

// Stop ends all executions of a flight, as StopExecution does, and returns how many it ended.
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

// Running returns the number of running executions.
func (m *Machine) Running() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.running)
}

// Close ends all executions and cancels their turns, and waits until they have ended. After Close,
// Start fails.
func (m *Machine) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop()
	m.wg.Wait()
}
