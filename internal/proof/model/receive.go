// SPDX-License-Identifier: Apache-2.0

package model

import "math/bits"

// queue appends the steps of SQS itself: SQS delivers twice, and moves messages whose receive count
// is used up.
func (x *step) queue() {
	s := *x.s
	held := s.held()
	for i, msg := range x.Bounds.Messages {
		l := Label{Messages: 1 << i}
		switch place := s.Messages[i]; {
		case place == HeldPlace && s.Parker.Message != l.Messages:
			l.Text = "SQS: {m} is delivered a second time while it is held"
			x.addFault(Duplicates, s, l).To.Messages[i] = Queued
		case place == Gone && held&l.Messages == 0 && msg.Spare:
			t := x.addFault(Duplicates, s, l.withText("upstream sends {m} a second time"))
			t.To.Messages[i] = Queued
			t.To.Young &^= l.Messages
		case place == Queued:
			l.Text = "SQS: the receive count of {m} is used up, it moves to the dead-letter queue"
			x.addFault(Moves, s, l).To.Messages[i] = DeadQueue
		}
	}
}

// receive appends one invocation for each possible batch of visible messages.
func (x *step) receive() {
	visible := x.s.messagesAt(Queued)
	for sub := visible; sub > 0; sub = (sub - 1) & visible {
		if bits.OnesCount8(uint8(sub)) <= max(1, x.Bounds.Batch) {
			x.batch(sub)
		}
	}
	if x.s.Parker.Message == 0 {
		for i := range visible.All() {
			x.deadline(1 << i)
		}
	}
}

// batch is design section 6, steps 1 to 3. A message that is too old to judge becomes a dead
// letter. ADMIT takes the newest version that is not done. The resulting row decides on each
// message.
func (x *step) batch(batch Set) {
	t := *x.s
	var old Set
	judged := batch
	if x.Rules.RidersUnjudged {
		judged = x.carrying(batch, x.keys(batch).Newest())
	}
	for i := range judged.All() {
		for k := range x.Bounds.Messages[i].Keys.Down() {
			if x.aged(&t, i, k) && !t.Row.canJudgeAge(x.Rules) && !x.done(t.Row, k) {
				old |= 1 << i
				t.DeadLetters[k] = Parked
			}
		}
	}
	keys := x.keys(batch &^ old)
	x.admitLater(keys)
	admitted := None
	for k := range keys.Down() {
		rk := x.rowKey(k)
		if t.Row.admits(x.Rules, rk, false) {
			t.Row = t.Row.admit(rk)
			admitted = k
		}
		if x.Rules.AdmitHighestOnly || t.Row.Pending >= rk {
			break
		}
	}
	v := Receiver{Ack: old}
	for i := range (batch &^ old).All() {
		if x.mayGo(i, func(k Key) bool {
			done := x.done(t.Row, k) || x.Rules.AckSuperseded && t.Row.Pending > x.rowKey(k)
			if done && !x.Rules.DoneForgotten {
				v.Done |= 1 << k
			}
			return done
		}) {
			v.Ack |= 1 << i
		} else {
			v.Hold |= 1 << i
		}
	}
	if !x.Rules.AgedUnparked {
		for k := range x.keys(old).Down() {
			t.Row = x.parkNow(t.Row, k)
		}
	}
	if x.Rules.AckAtHold {
		v.Ack |= v.Hold
	}
	x.admitted(t, batch, v, admitted, old)
}

// admitLater is an ADMIT that is applied after its invocation has crashed.
func (x *step) admitLater(keys KeySet) {
	for k := range keys.Down() {
		if x.Bounds.LateAdmits && x.s.Row.admits(x.Rules, x.rowKey(k), false) {
			x.addLateWrite(*x.s, RowWrite{Kind: AdmitWrite, Key: k},
				Label{Key: k, Text: "receive: crash; ADMIT {k} is still on its way"})
			return
		}
	}
}

// parkNow applies the form of PARK that the row allows.
func (m *Model) parkNow(r Row, k Key) Row {
	for _, second := range []bool{false, true} {
		if r.Exists && r.parks(k, second) {
			return r.park(m.Rules, k, second)
		}
	}
	return r
}

func (x *step) admitted(t State, batch Set, v Receiver, admitted Key, old Set) {
	t.move(batch, HeldPlace)
	l := Label{By: "receive {m}: nothing to ADMIT", Key: admitted, Messages: batch}
	switch {
	case admitted != None:
		l.By = "receive {m}: ADMIT {k}: applied"
	case old == batch:
		l.By = "receive {m}: too old to judge: dead letter"
	case v.Hold == 0:
		l.By = "receive {m}: done already"
	}
	if x.Bounds.Receivers == 0 {
		x.answer(t, v, l, endings{
			"; then a crash, or StartExecution is lost", "; acknowledged", "; flight {f} starts",
		})
	} else if add(t.Receivers[:x.Bounds.Receivers], v) {
		x.addFree(t, l)
	}
}

// answers ends the receive invocations that have done their ADMIT.
func (x *step) answers() {
	for i, v := range x.s.Receivers {
		if v != (Receiver{}) {
			t := *x.s
			t.Receivers[i] = Receiver{}
			x.answer(t, v, Label{By: "receive", Messages: v.Hold | v.Ack}, endings{
				" ({m}): crash, or StartExecution is lost", " answers: {m} acknowledged",
				" starts flight {f} and answers: {m} held",
			})
		}
	}
}

// endings are the texts for the possible ends of a receive invocation.
type endings struct{ lost, acknowledged, started string }

// answer starts the flight and answers the event source mapping. The mapping deletes the
// acknowledged messages.
func (x *step) answer(t State, v Receiver, l Label, how endings) {
	x.addFault(Crashes, t, l.withText(how.lost))
	if v.Hold == 0 {
		x.remove(x.addFree(t, l.withText(how.acknowledged)), v.Ack)
		return
	}
	e := t.freeExec()
	if e >= x.Bounds.Execs {
		return
	}
	l.Exec = uint8(e)
	started := x.addFree(t, l.withText(how.started))
	x.remove(started, v.Ack)
	f := &started.To.Execs[e]
	f.Messages, f.Done = v.Hold, v.Done
	if x.Rules.TokenOfFlight {
		f.Token = t.freshToken()
	}
}

// deadline is the dead letter that receive stores after a dead deadline. PARK follows.
func (x *step) deadline(only Set) {
	k := x.keys(only).Newest()
	if x.carryingOnly(only, k) == 0 {
		x.deadlines(only)
		return
	}
	if x.done(x.s.Row, k) {
		return
	}
	// If a dead version that may be in the sink keeps this version out, the deadline is reached in
	// the end. Without such a dead version, the deadline costs budget.
	t := &x.addFreeIf(x.blocked(1<<k), Deadlines, *x.s, Label{
		Text:     "receive {m}: its dead deadline is over: the dead letter is stored",
		Messages: only,
	}).To
	t.DeadLetters[k] = Parked
	t.Parker = Parker{Message: only, Receive: true}
	t.move(only, HeldPlace)
}

// deadlines is deadline for a message with several events, in one step. deadlines applies only if a
// dead version keeps one of the events out. Each event that is not done becomes a dead letter, and
// PARK follows.
func (x *step) deadlines(only Set) {
	t := *x.s
	keys := x.keys(only)
	if !x.blocked(keys) || t.Row.Lease {
		return
	}
	for k := range keys.Down() {
		if !x.done(t.Row, k) {
			t.DeadLetters[k] = Parked
			t.Row = x.parkNow(t.Row, k)
		}
	}
	x.remove(x.addFree(t, Label{
		Text:     "receive {m}: its dead deadline is over: dead letters and PARK for what is not done; acknowledged",
		Messages: only,
	}), only)
}
