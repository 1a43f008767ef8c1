// SPDX-License-Identifier: Apache-2.0

package refine

import (
	"fmt"

	"github.com/lullhq/lull/internal/local/emulation"
	"github.com/lullhq/lull/internal/proof/model"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/sim"
)

func (c *Checker) message(s sim.Step) {
	switch s.What {
	case sim.Arrived:
		c.arrives(s)
	case sim.Received:
		c.receipts[s.Receipt] = c.messages[s.Message]
		c.count(receives)
	case sim.Acknowledges, sim.Deletes:
		c.deleter, c.index = c.holders[s.Receipt], s.What == sim.Deletes
	case sim.Left:
		c.leaves(s)
		c.deleter = nil
	case sim.Parked:
		keys := c.set(s.Keys...)
		c.stored |= keys
		c.mark(keys, model.Parked)
		c.count(parks)
	case sim.Redriven:
		c.mark(c.set(s.Keys...), model.Redriven)
		c.count(redriven)
	case sim.Dropped:
		for _, k := range s.Keys {
			if c.row.Committed < k {
				c.part(drops, "version %d is not committed, but its dead letter is deleted", c.key(k))
			}
		}
		keys := c.set(s.Keys...)
		c.stored &^= keys
		c.mark(keys, model.NoDeadLetter)
		c.count(drops)
	default:
		c.part(Step(s.What), "the mapping has no such step")
	}
}

// mark sets the state of the dead letters of versions.
func (c *Checker) mark(keys model.KeySet, as model.DeadLetter) {
	for k := range keys.All() {
		c.letters[k] = as
	}
}

func (c *Checker) arrives(s sim.Step) {
	m := &message{keys: c.set(s.Keys...), dead: s.Dead, moved: s.Message.MovedFrom != ""}
	c.messages[s.Message] = m
	switch {
	case m.dead && m.moved:
		c.count(moves)
	case m.dead:
		c.mark(m.keys, model.Parked)
		c.count(letterSent)
	default:
		c.count(arrives)
	}
}

// holds checks a manifest. receive has judged each of its messages. A message in which every event
// is done must not be in a manifest.
func (c *Checker) holds(s sim.Step) {
	h := &holder{}
	for _, r := range s.Manifest.Records {
		receipt := fmt.Sprintf("%s-%s %s", s.Manifest.Sink, s.Manifest.Lane, r.Message.Receipt)
		m := c.receipts[receipt]
		by := c.holders[receipt]
		if m == nil || by == nil {
			continue
		}
		h.messages = append(h.messages, m)
		var held model.KeySet
		for _, e := range r.Events {
			held |= c.set(e.Key)
		}
		done := by.known | c.dead()
		switch leaves := m.keys &^ held; {
		case held&^by.known == 0:
			c.part(flies, "holds a message although every event of it is done")
		case leaves&^done != 0:
			c.part(flies, "leaves out versions %b of a message, which are not done", leaves&^done)
		default:
			h.known |= leaves
		}
		c.holders[receipt] = h
	}
	c.flights[s.Flight] = h
	c.count(flies)
}

// leaves handles a message that is no longer in its queue.
func (c *Checker) leaves(s sim.Step) {
	m := c.messages[s.Message]
	if m == nil || m.gone {
		return
	}
	m.gone = true
	switch {
	case s.Why == emulation.Expired:
		c.count(expires)
	case s.Why == emulation.Moved:
		l := c.local()
		n := l.put(m, model.Queued)
		if !l.step(func(t *model.State) bool { return t.Messages[n] == model.DeadQueue }) {
			c.part(moves, "the model does not move such a message")
		}
	case m.dead:
		c.buried(m)
	default:
		c.judged(m)
	}
}

// judged checks the deletion of a message of an ingest queue. index deletes a message because of
// the row in an answer, or because of a row that its flight has read. The event source mapping
// deletes a message that receive acknowledged. For each event of an acknowledged message, the row
// had this version or a newer one, or the dead letter is stored.
func (c *Checker) judged(m *message) {
	known, l := c.deleter.seen(), c.local()
	n := model.Set(1 << l.put(m, model.HeldPlace))
	l.carry(m)
	what, who := deletes, "the flight"
	if c.index {
		l.s.Execs[0] = model.Exec{Messages: n, Done: known}
	} else {
		what, who, known = acknowledges, "receive", known|c.dead()
		l.s.Receivers[0] = model.Receiver{Ack: n}
		if m.keys&^known != 0 {
			l.s.Receivers[0] = model.Receiver{Hold: n}
		}
	}
	c.judge(what, l.step(func(t *model.State) bool { return t.Messages[0] == model.Gone }),
		"versions %b: not all are done, as far as %s knows (%b)", m.keys, who, known)
}

// buried checks the deletion of a message of the dead-letter queue. The dead letter must be parked
// or superseded, or the message must be in its queue again.
func (c *Checker) buried(m *message) {
	upToCommitted := model.KeySet(1)<<(c.key(c.row.Committed)+1) - 1
	safe := c.deleter.seen() | c.stored | c.waiting(nil) | upToCommitted
	if m.keys&^safe != 0 {
		c.part(buries, "versions %b leave the dead-letter queue, and are nowhere else", m.keys&^safe)
	}
	c.count(buries)
}

// dead returns the versions whose dead letter is stored.
func (c *Checker) dead() (dead model.KeySet) {
	for k, d := range c.letters {
		if d == model.Parked {
			dead |= model.Keys(model.Key(k))
		}
	}
	return dead
}

// waiting returns the versions that other messages of the ingest queues carry.
func (c *Checker) waiting(not *message) (keys model.KeySet) {
	for _, m := range c.messages {
		if m != not && !m.dead && !m.gone {
			keys |= m.keys
		}
	}
	return keys
}

// done returns the versions that are done according to an image of the row, as the model's receive
// judges.
func (c *Checker) done(image shard.Row) (done model.KeySet) {
	for i := range c.keys {
		k := model.Key(i + 1)
		l := c.local()
		l.s.Row = l.abstract(image)
		l.put(&message{keys: model.Keys(k)}, model.Queued)
		if l.step(func(t *model.State) bool { return t.Receivers[0].Ack.Has(0) }) {
			done |= model.Keys(k)
		}
	}
	return done
}
