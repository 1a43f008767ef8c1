// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// event is one change by the upstream, with every place in which it is stored. Until an event is
// done, the event must be in one of these places.
type event struct {
	doc       shard.DocID
	key       shard.OrderKey // empty if no order key is possible: the event can only become a dead letter
	stray     shard.OrderKey // the order key, if the event arrived in the wrong queue
	op        shard.Operation
	sent      time.Duration  // when the event was first sent
	waiting   int            // messages in the ingest queues that carry the event
	copies    map[string]int // messages that lull sent with the event, by message id: scheduled, given back or redriven
	dying     int            // messages in the dead-letter queues that carry the event
	parked    bool           // a dead letter of the event is parked
	scheduled bool
	lost      bool // SQS itself lost the event, which is not lull's fault
	seen      bool // the event's version, or a newer version, was committed
	died      bool // the event was a dead letter at some time
	outdone   bool // the event's dead letter was deleted, because a newer version was committed
	dropping  bool // an operator drops the dead letter
	given     bool // the dropped dead letter is deleted, so that the event may be lost

	stored time.Duration // when the dead letter was last parked
	death  time.Time     // when it died, as it was parked last
	moved  time.Duration // when it was last parked with another time of death
	marked time.Duration // when the row last had the event's version as the dead one
}

// truth is an event in a message that must not be lost.
type truth struct {
	*event
	id string
	at time.Duration // when the message came to its queue
}

// arrived records the events of a message that enters a queue.
func (o *oracle) arrived(q *sqsQueue, m *message) {
	for i := range q.carried[m] {
		t := &q.carried[m][i]
		if t.at = o.w.now; q.dead == nil {
			t.dying++
			t.died = true
			continue
		}
		t.waiting++
		t.lost = false // the event was sent again
		if copied(m) {
			if t.copies == nil {
				t.copies = map[string]int{}
			}
			t.copies[m.ID]++
		}
	}
	o.w.trace.message(q, m, "is here")
}

// copied reports whether lull sent the message.
func copied(m *message) bool { return m.Attributes[queue.AttrFirstSent].String != "" }

// elsewhere reports whether another message, sent by lull, carries the event as well.
func (e *event) elsewhere(id string) bool {
	for other, n := range e.copies {
		if other != id && n > 0 {
			return true
		}
	}
	return false
}

// carries decodes a message, independently of the code that handles the message.
func (o *oracle) carries(q *sqsQueue, m queue.Message) []truth {
	if q.dead == nil {
		if l, err := deadletter.Read(m); err == nil {
			if o.w.astray(q.sink, l.Doc) && l.Reason == deadletter.Contract && l.Key != "" {
				return []truth{o.stray(q, l.Doc, l.Key, m)}
			}
			if l.Doc == "" || l.Key == "" {
				l.ID = o.unkeyed(q, l.ID)
			}
			return []truth{o.event(l.ID, l.Doc, l.Key, "", m)}
		}
	}
	m, _, _ = deadletter.Inside(m)
	var list []truth
	for _, r := range o.w.sources.At(q.sink).Decode(m) {
		switch {
		case r.Skip != "":
		case r.Invalid != nil:
			id := deadletter.ID(r.Invalid.Doc, r.Invalid.Key, o.unkeyed(q, deadletter.Hash(m.Body, m.Attributes)))
			list = append(list, o.event(id, r.Invalid.Doc, "", "", m))
		case o.w.astray(q.sink, r.Event.Doc) && o.w.cfg.Queues.Elsewhere == config.ElsewhereSkip:
			// The event is skipped, because the queue of the right sink also gets the event.
		case o.w.astray(q.sink, r.Event.Doc): // in this queue it can only become a dead letter
			list = append(list, o.stray(q, r.Event.Doc, r.Event.Key, m))
		default:
			e := r.Event
			list = append(list, o.event(deadletter.ID(e.Doc, e.Key, ""), e.Doc, e.Key, e.Op, m))
		}
	}
	return list
}

func (o *oracle) event(id string, doc shard.DocID, key shard.OrderKey, op shard.Operation, m queue.Message) truth {
	e := o.events[id]
	if e == nil {
		e = &event{doc: doc, key: key, op: op, sent: m.Sent.Sub(epoch)}
		o.events[id] = e
		if key != "" {
			l := o.ledger(doc)
			l.keys = append(l.keys, key)
		}
	}
	return truth{event: e, id: id}
}

// unkeyed returns the id of a dead letter without an order key. Each sink that gets the message has
// its own id.
func (o *oracle) unkeyed(q *sqsQueue, hash string) string {
	if q.sink == o.w.cfg.DefaultSink {
		return hash
	}
	return deadletter.OfSink(q.sink, hash)
}

// stray returns an event that arrived in the wrong queue.
func (o *oracle) stray(q *sqsQueue, doc shard.DocID, k shard.OrderKey, m queue.Message) truth {
	t := o.event(deadletter.Astray(q.sink, doc, k), doc, "", "", m)
	t.stray = k
	return t
}

// astray reports whether a document belongs to another sink.
func (w *World) astray(sink string, doc shard.DocID) bool {
	return w.cfg.SinkOf(doc) != sink
}

// done reports whether the event's version, or a newer one, was committed.
func (o *oracle) done(e *event) bool {
	k := cmp.Or(e.key, e.stray)
	return k != "" && o.ledger(e.doc).committed >= k
}

// isDead reports whether a version is a dead letter, or is about to become one.
func (o *oracle) isDead(doc shard.DocID, k shard.OrderKey) bool {
	e := o.events[idOf(doc, k)]
	return e != nil && (e.dying > 0 || e.parked)
}

// left checks that a message that leaves its queue is no longer needed for its events.
func (o *oracle) left(q *sqsQueue, m *message, why emulation.Departure) {
	if o.purging {
		why = emulation.Expired
	}
	o.w.trace.message(q, m, [...]string{"is deleted", "moves to the dead-letter queue", "is past its retention"}[why])
	for _, e := range q.carried[m] {
		if q.dead == nil {
			e.dying--
		} else {
			e.waiting--
			if copied(m) {
				e.copies[m.ID]--
			}
		}
		switch {
		case why == emulation.Expired:
			e.lost = true
		case o.done(e.event), o.doneBeforeReset(e.event), e.dying > 0, e.parked, e.scheduled, e.elsewhere(m.ID),
			o.givenUp(e):
		case o.redriving && e.waiting > 0: // SQS itself has put the event back
		case o.w.loses && e.outdone: // a restored table may show it as dead again; the newer version is sent again too
		default:
			o.violate("a deleted message is done", fmt.Sprintf("%s left %s, but %s %s is neither committed nor parked",
				m.ID, q.Name, e.doc, e.key))
		}
	}
}

// parked records that a dead letter was parked.
func (o *oracle) parked(f deadletter.Facts) {
	o.w.worst.Letters++
	if e := o.events[f.ID]; e != nil {
		e.parked, e.died, e.given, e.stored = true, true, false, o.w.now
		if !f.Died.Equal(e.death) {
			e.death, e.moved = f.Died, o.w.now
		}
		return
	}
	o.violate("a dead letter belongs to an event", fmt.Sprintf("dead letter %s of %s", f.ID, f.Doc))
}

// dropped checks that a deleted dead letter is no longer needed.
func (o *oracle) dropped(f deadletter.Facts) {
	e := o.events[f.ID]
	if e == nil {
		return
	}
	e.parked = false
	e.outdone = o.done(e)
	e.given = !e.outdone && e.dropping
	// The dead letter of a version that an operator withdrew by a reset need not stay.
	if !e.outdone && !e.given && !o.ledger(f.Doc).tookBack(e.key) {
		o.violate("a dead letter stays until its version is committed", fmt.Sprintf("%s %s", f.Doc, f.Key))
	}
}

func (o *oracle) scheduled(it schedule.Item) {
	if e := o.events[it.ID]; e != nil {
		e.scheduled = true
	}
	o.waits(it.NotBefore.Sub(epoch) - o.w.now)
}

func (o *oracle) unscheduled(id string) {
	e := o.events[id]
	if e == nil || !e.scheduled {
		return
	}
	e.scheduled = false
	if !o.done(e) && e.waiting == 0 && e.dying == 0 && !e.parked {
		o.violate("a scheduled event is deleted after its sending", fmt.Sprintf("%s %s", e.doc, e.key))
	}
}

// fresh records the freshness of the version k when it is committed.
func (o *oracle) fresh(doc shard.DocID, k shard.OrderKey) {
	e := o.events[idOf(doc, k)]
	if e == nil || e.seen {
		return
	}
	e.seen = true
	if !e.died {
		o.w.freshness = append(o.w.freshness, o.w.now-e.sent)
		collection, sink := doc.Collection(), o.w.cfg.SinkOf(doc)
		o.w.freshBy[collection] = append(o.w.freshBy[collection], o.w.now-e.sent)
		o.w.freshIn[sink] = append(o.w.freshIn[sink], o.w.now-e.sent)
		o.w.timeline.committed(o.w.now - e.sent)
	}
}

// idOf returns the id of a version's dead letter, by which the oracle finds its event.
func idOf(doc shard.DocID, k shard.OrderKey) string { return deadletter.ID(doc, k, "") }
