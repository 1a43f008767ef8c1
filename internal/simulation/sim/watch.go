// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Step is one step of a simulated run, at the time at which a service carried it out.
// [Options.Watch] gets it. The caller may be killed, or may never get the answer. The field What
// says which fields are set.
type Step struct {
	At   time.Duration
	What StepKind
	By   int64  // the number of the invocation; 0 for a step of a service itself
	Name string // the function of the invocation

	Write    shard.Write // a row write, with the row before and after it
	Old, New shard.Row
	Rows     []shard.Row // rows that were read

	Op      sink.Op
	Outcome sink.Outcome
	Beside  bool // the step concerns the new index of a rebuild

	Message  *emulation.Message
	Keys     []shard.OrderKey // the order keys of the message's events
	Dead     bool             // the message is in the dead-letter queue
	Why      emulation.Departure
	Receipt  string // the queue's name and the receipt handle, because two queues may use the same handle
	Receipts []string

	Flight   flight.ID
	Manifest *flight.Manifest
}

// StepKind is the kind of a step.
type StepKind string

// The kinds of steps.
const (
	Wrote        StepKind = "a write of a row is applied"
	Refused      StepKind = "a write of a row is refused"
	Read         StepKind = "a row is read consistently"
	Glanced      StepKind = "a row is read, perhaps in an older state"
	Sent         StepKind = "a request goes to the sink"
	Answered     StepKind = "the sink decides on an item"
	Landed       StepKind = "a request to the sink has ended"
	Arrived      StepKind = "a message arrives"
	Received     StepKind = "a message is received"
	Left         StepKind = "a message leaves its queue"
	Acknowledges StepKind = "a mapping deletes messages that its function did not keep"
	Deletes      StepKind = "DeleteMessage"
	Batched      StepKind = "a function gets a batch"
	Held         StepKind = "a manifest is written"
	Turned       StepKind = "index begins a turn"
	Ended        StepKind = "an invocation ends"
	Parked       StepKind = "a dead letter is parked"
	Redriven     StepKind = "a dead letter is marked as redriven"
	Dropped      StepKind = "a parked dead letter is deleted"
	Copies       StepKind = "the engine begins to copy a document"
	Copied       StepKind = "the engine has finished copying"
	Compared     StepKind = "a rebuild reads a document's version in an index"
	Calls        StepKind = "a call that switches the name is sent"
	Called       StepKind = "a call that switches the name has ended"
	Switched     StepKind = "the name now means the new index"
)

// watch calls the watcher with a step.
func (w *World) watch(v *invocation, s Step) {
	if w.options.Watch == nil {
		return
	}
	if s.At = w.now; v != nil {
		s.By, s.Name = v.ID, v.Name
	}
	w.options.Watch(s)
}

// watchOps calls the watcher for each item of a request.
func (w *World) watchOps(v *invocation, what StepKind, ops []sink.Op) {
	for _, op := range ops {
		w.watch(v, Step{What: what, Op: op})
	}
}

// watchMessage calls the watcher for a message of a queue.
func (w *World) watchMessage(q *sqsQueue, m *message, s Step) {
	if w.options.Watch == nil {
		return
	}
	s.Message, s.Dead = m, q.dead == nil
	for _, t := range q.carried[m] {
		s.Keys = append(s.Keys, t.key)
	}
	w.watch(nil, s)
}

// named returns a receipt handle with the name of its queue before it, for a watcher. If there is
// no watcher, named returns "".
func (q *sqsQueue) named(receipt string) string {
	if q.w.options.Watch == nil {
		return ""
	}
	return q.Name + " " + receipt
}

// watchBatch reports which messages an invocation judges.
func (w *World) watchBatch(v *invocation, q *sqsQueue, batch []queue.Message) {
	if w.options.Watch == nil {
		return
	}
	receipts := make([]string, len(batch))
	for i := range batch {
		receipts[i] = q.named(batch[i].Receipt)
	}
	w.watch(v, Step{What: Batched, Receipts: receipts})
}
