// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
)

// Monitor observes a simulated run from outside, as CloudWatch does, and breaks parts of it
// permanently. The run calls the methods that break something before each operation.
type Monitor interface {
	// Call makes a function's call fail. If it returns an error, the call returns this error and
	// changes nothing.
	Call(function string, op fault.Op) error
	// Fate decides what happens to an invocation that is about to start.
	Fate(function string) Fate
	// Write makes a write to the sink fail. If it returns true, the outcome becomes the sink's
	// answer, and nothing is written.
	Write(op sink.Op) (sink.Outcome, bool)
	// Polls reports whether a queue's event source mapping receives messages. Deletes reports
	// whether the mapping deletes messages.
	Polls(queue string) bool
	Deletes(queue string) bool

	// Note is called with each note of a function, and the number of the function's invocation.
	Note(invocation int64, n journal.Note)
	// Ended is called at the end of each invocation. The error says why the invocation failed or
	// was killed. The error is nil if the invocation answered.
	Ended(function string, invocation int64, began time.Time, err error)
	// Flight is called with the end of each execution that did not succeed.
	Flight(end FlightEnd)
}

// Fate is what happens to an invocation.
type Fate byte

// The possible fates of an invocation.
const (
	Runs      Fate = iota
	Throttled      // Lambda refuses the invocation because there is no concurrency left
	Denied         // the caller has no permission to invoke the function
	Throws         // the invocation ends at once with an error, or is killed during its start
	Hangs          // the invocation does nothing until its time-out
	Refuses        // the function refuses its settings, and reports every message as failed
)

// FlightEnd is how an execution ended.
type FlightEnd byte

// The unsuccessful ends of an execution, as AWS/States counts them.
const (
	FlightFailed FlightEnd = iota
	FlightTimedOut
	FlightAborted
)

// errBroken is the error of an invocation that did not run because of its fate.
var errBroken = errors.New("the invocation did not run")

// fate returns the monitor's decision about an invocation, or Runs without a monitor.
func (w *World) fate(function string) Fate {
	if w.options.Monitor == nil {
		return Runs
	}
	return w.options.Monitor.Fate(function)
}

// polls reports whether the mapping of a queue receives messages.
func (w *World) polls(q *sqsQueue) bool {
	return !w.halted && (w.options.Monitor == nil || w.options.Monitor.Polls(q.Name))
}

// broken ends an invocation according to its fate, and reports whether it did. A hanging invocation
// ends later.
func (w *World) broken(name string, timeout time.Duration, ended func(error)) bool {
	fate, began := w.fate(name), epoch.Add(w.now)
	fail := func(why error) {
		w.options.Monitor.Ended(name, 0, began, why)
		ended(why)
	}
	switch fate {
	case Runs:
		return false
	case Hangs:
		w.after(timeout, func() { fail(errKilled) })
	case Throttled, Denied: // no invocation starts
		w.after(0, func() { ended(errBroken) })
	default:
		w.after(0, func() { fail(errBroken) })
	}
	return true
}

// Observe simulates for a time, calls look at the end of each minute, and returns the broken
// promises. The injected failures do not end, and Observe does not wait until everything has
// settled. Call Observe once, instead of Run.
func (w *World) Observe(lasting time.Duration, look func(now time.Time)) []Violation {
	defer w.close()
	w.begin()
	var minute func()
	minute = func() {
		look(epoch.Add(w.now))
		w.after(time.Minute, minute)
	}
	w.after(time.Minute, minute)
	w.run(lasting)
	return w.oracle.found
}

// Sends plans a message for a queue with the given name, at a given time.
func (w *World) Sends(name string, at time.Duration, m queue.Outgoing) {
	for _, q := range w.queues {
		if q.Name == name {
			w.after(at, func() { _ = q.send(m) }) // a message that the queue refuses is not sent
		}
	}
}

// QueueState has the metrics that SQS publishes for a queue.
type QueueState struct {
	Name     string
	InFlight int
	Oldest   time.Duration // the age of the oldest message
	Holds    bool          // whether the queue has a message to which Oldest applies
}

// Queues returns the queues as the metrics of SQS show them. The age of the oldest message leaves
// out messages that were received three times or more.
func (w *World) Queues() []QueueState {
	const received = 3
	states := make([]QueueState, len(w.queues))
	for i, q := range w.queues {
		age, ok := q.Oldest(w.now, received)
		states[i] = QueueState{q.Name, q.Counts().InFlight, age, ok}
	}
	return states
}

// Now returns the true time of the simulated run.
func (w *World) Now() time.Time { return epoch.Add(w.now) }

// ErrKilled is the error of an invocation that the platform killed.
var ErrKilled = errKilled

// call asks the monitor whether a call fails.
func (w *World) call(v *fault.Invocation, op fault.Op) error {
	if w.options.Monitor == nil {
		return nil
	}
	return w.options.Monitor.Call(v.Name, op)
}

// notifyEnd tells the monitor that an invocation has ended.
func (w *World) notifyEnd(v *invocation) {
	if w.options.Monitor == nil {
		return
	}
	err := v.failed
	if v.Killed() {
		err = errKilled
	}
	w.options.Monitor.Ended(v.Name, v.ID, epoch.Add(v.began), err)
}
