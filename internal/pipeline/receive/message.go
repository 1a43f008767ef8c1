// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"cmp"
	"strconv"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// message is one message of the batch and its state.
type message struct {
	queue.Message
	events int  // number of events in the message
	open   int  // number of events that are not done
	later  int  // number of events to be scheduled
	held   bool // the flight must hold an event of the message
	failed bool // an event could not be judged: the message is received again, outside the flight
	full   bool // the batch has no room for the message
	newer  bool // the message is a dead letter that a newer lull sent: it stays in the queue
	// Reason of the dead letter, if SQS's own redrive brought one here. It is empty for any other
	// message.
	letter deadletter.Reason
	maker  *deadletter.Maker
}

// tenant is the owner of a message: the message's group, or the message itself if it has no group.
// One tenant must not block another.
type tenant struct {
	group string
	msg   *message
}

// tenant returns the owner of the message.
func (m *message) tenant() tenant {
	if g := cmp.Or(m.Group, queue.Group(m.Attributes)); g != "" {
		return tenant{group: g}
	}
	return tenant{msg: m}
}

// pending is one event that is to be judged.
type pending struct {
	event.Event
	msg  *message
	doc  *document // nil until collapse has grouped the events
	hold bool
	due  shard.Micros
}

func (p *pending) about(step journal.Step, detail string) journal.Note {
	return journal.Note{
		Step: step, Doc: p.Doc, Key: p.Key, Op: p.Op, Message: p.msg.ID, Event: p.Index, Sent: p.msg.Sent,
		Trace: p.msg.Attributes[queue.AttrTrace].String, Detail: detail,
	}
}

// copied returns the attributes for a copy of the message that carries only this event. If the
// message has several events, the copy names this one. The other events are done or have their own
// copies. If each copy carried all events, each would make copies of the others.
func (p *pending) copied() map[string]queue.Attribute {
	if p.msg.events == 1 {
		return p.msg.Attributes
	}
	return queue.With(p.msg.Attributes, queue.AttrEvent, queue.Text(strconv.Itoa(p.Index)))
}

// document is one document of the batch, with its events and its row.
type document struct {
	id       shard.DocID
	place    int        // position in the order of admission
	events   []*pending // newest first
	read     bool       // the row was read before ADMIT, with a consistent read
	before   shard.Row
	after    shard.Row
	asked    *pending // the last event that ADMIT was tried for
	answered bool     // an ADMIT was applied or refused
	admitted bool
	err      error // why the last ADMIT was neither applied nor refused
}

// fault is an event that becomes a dead letter.
type fault struct {
	p      pending
	reason deadletter.Reason
	detail string
}

// faults holds the events of a stage that become dead letters. The dead letters are sent together,
// after every event is judged.
type faults []fault

func (f *faults) add(p *pending, reason deadletter.Reason, detail string) {
	*f = append(*f, fault{p: *p, reason: reason, detail: detail})
}
