package sim

import (
	"errors"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
)

// Monitor looks at a world from outside, as CloudWatch does, and breaks parts of it permanently.
// The world calls the methods that break something each time.
type Monitor interface {
	// Call breaks a call that a function makes: with an error it fails so, and changes nothing.
	Call(function string, op fault.Op) error
	// Fate decides what happens to an invocation that is about to begin.
	Fate(function string) Fate
	// Write breaks a write of the sink: with true, the outcome is the sink's answer.
	Write(op sink.Op) (sink.Outcome, bool)
	// Polls reports whether a queue's event source mapping receives, Deletes whether it deletes.
	Polls(queue string) bool
	Deletes(queue string) bool

	// Note gets each note of a function, with the number of its invocation.
	Note(invocation int64, n journal.Note)
	// Ended is called at each invocation's end. The error says why it failed or was killed; nil for
	// an invocation that answered.
	Ended(function string, invocation int64, began time.Time, err error)
	// Flight is called with the end of each execution that did not succeed.
	Flight(end FlightEnd)
}

// Fate is what happens to an invocation.
type Fate byte

// The fates.
const (
	Runs      Fate = iota
	Throttled      // Lambda refuses it: there is no concurrency
	Denied         // its caller may not invoke it
	Throws         // it ends at once with an error, or was killed while it started
	Hangs          // it does nothing until its time-out
	Refuses        // it starts with settings that it refuses, and answers every message as failed
)

// FlightEnd is how an execution ended.
type FlightEnd byte

// The ends that are not a success, as AWS/States counts them.
const (
	FlightFailed FlightEnd = iota
	FlightTimedOut
	FlightAborted
)

// errBroken is the error of an invocation that its fate did not let run.
var errBroken = errors.New("the invocation did not run")

// fate is the monitor's decision about an invocation, if there is a monitor.
func (w *World) fate(function string) Fate {
	if w.options.Monitor == nil {
		return Runs
	}
	return w.options.Monitor.Fate(function)
}

// polls reports whether the mapping of a queue receives.
func (w *World) polls(q *sqsQueue) bool {
	return !w.halted && (w.options.Monitor == nil || w.options.Monitor.Polls(q.Name))
}

// broken ends an invocation by its fate, and reports whether it did. A hanging one ends later.
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
	case Throttled, Denied: // there is no invocation
		w.after(0, func() { ended(errBroken) })
	default:
		w.after(0, func() { fail(errBroken) })
	}
	return true
}

// Observe runs the world for a time, calls look at each minute's end, and returns the broken
// promises. The injected failures do not end, and Observe does not wait until everything has
// settled. Call it once, in place of Run.
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

// Sends puts a message into a queue, by the queue's name, at a moment.
func (w *World) Sends(name string, at time.Duration, m queue.Outgoing) {
	for _, q := range w.queues {
		if q.Name == name {
			w.after(at, func() { _ = q.send(m) }) // a message that the queue refuses is not sent
		}
	}
}

// QueueState holds SQS's metrics of a queue.
type QueueState struct {
	Name     string
	InFlight int
	Oldest   time.Duration // how long ago the oldest message came
	Holds    bool          // whether there is a message that Oldest is about
}

// Queues are the queues as SQS's metrics show them. A message that was received three times or more
// is not in the age of the oldest.
func (w *World) Queues() []QueueState {
	const received = 3
	states := make([]QueueState, len(w.queues))
	for i, q := range w.queues {
		age, ok := q.Oldest(w.now, received)
		states[i] = QueueState{q.Name, q.Counts().InFlight, age, ok}
	}
	return states
}

// Now is the world's true time.
func (w *World) Now() time.Time { return epoch.Add(w.now) }

// ErrKilled is the error of an invocation that the platform killed.
var ErrKilled = errKilled

// call asks the monitor about a call.
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
