package sim

import (
	"time"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Step is something that happened, as [Options.Watch] gets it, at the moment at which a service
// carried it out. The caller may be dead, or may never get the answer. What decides which fields
// are set.
type Step struct {
	At   time.Duration
	What StepKind
	By   int64  // the invocation, 0 for a service on its own account
	Name string // its function

	Write    shard.Write // of a row, with the row before and after
	Old, New shard.Row
	Rows     []shard.Row // read

	Op      sink.Op
	Outcome sink.Outcome
	Beside  bool // it is about the new index of a rebuild

	Message  *emulation.Message
	Keys     []shard.OrderKey // of its events
	Dead     bool             // it is in the dead-letter queue
	Why      emulation.Departure
	Receipt  string // after its queue's name: two queues may give the same one
	Receipts []string

	Flight   flight.ID
	Manifest *flight.Manifest
}

// StepKind says what happened.
type StepKind string

// The kinds of steps.
const (
	Wrote        StepKind = "a write of a row is applied"
	Refused      StepKind = "a write of a row is refused"
	Read         StepKind = "a row is read consistently"
	Glanced      StepKind = "a row is read, perhaps as it was"
	Sent         StepKind = "a request goes to the sink"
	Answered     StepKind = "the sink decides on an item"
	Landed       StepKind = "nothing of a request is applied any more"
	Arrived      StepKind = "a message arrives"
	Received     StepKind = "a message is received"
	Left         StepKind = "a message leaves its queue"
	Acknowledges StepKind = "a mapping deletes what its function did not keep"
	Deletes      StepKind = "DeleteMessage"
	Batched      StepKind = "a function gets a batch"
	Held         StepKind = "a manifest is written"
	Turned       StepKind = "index begins a turn"
	Ended        StepKind = "an invocation ends"
	Parked       StepKind = "a dead letter is parked"
	Redriven     StepKind = "a dead letter is marked as redriven"
	Dropped      StepKind = "a parked dead letter is deleted"
	Copies       StepKind = "the engine begins to copy a document"
	Copied       StepKind = "the engine copies no more"
	Compared     StepKind = "a rebuild reads a document's version in an index"
	Calls        StepKind = "a call that switches the name is sent"
	Called       StepKind = "such a call is over"
	Switched     StepKind = "the name stands for the new index"
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

// named is a receipt handle after the name of its queue.
func (q *sqsQueue) named(receipt string) string { return q.Name + " " + receipt }

// watchBatch tells which messages an invocation judges.
func (w *World) watchBatch(v *invocation, q *sqsQueue, batch []queue.Message) {
	receipts := make([]string, len(batch))
	for i := range batch {
		receipts[i] = q.named(batch[i].Receipt)
	}
	w.watch(v, Step{What: Batched, Receipts: receipts})
}
