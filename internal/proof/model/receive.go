package model

import "math/bits"

// queue is what SQS does on its own account: it delivers twice, and moves messages whose receive
// count is used up.
func (x *step) queue() {
	s := x.s
	held := s.held()
	for i := range x.Bounds.Messages {
		only := Set(1) << i
		switch {
		case s.Messages[i] == HeldPlace && s.Parker.Message != only:
			if t, ok := x.duplicate(*s); ok {
				t.Messages[i] = Queued
				x.edge(t, false, 0, Label{Text: "SQS: {m} is delivered a second time while it is held", Messages: only})
			}
		case s.Messages[i] == Gone && held&only == 0 && x.Bounds.Messages[i].Spare:
			if t, ok := x.duplicate(*s); ok {
				t.Messages[i] = Queued
				t.Young &^= only
				x.edge(t, false, 0, Label{Text: "upstream sends {m} a second time", Messages: only})
			}
		}
		if s.Messages[i] == Queued && s.Left.Moves > 0 {
			t := *s
			t.Left.Moves--
			t.Messages[i] = DeadQueue
			x.edge(t, false, 0,
				Label{
					Text:     "SQS: the receive count of {m} is used up, it moves to the dead-letter queue",
					Messages: only,
				})
		}
	}
}

// receive is one invocation for each choice of visible messages.
func (x *step) receive() {
	var visible Set
	for i, p := range x.s.Messages {
		if p == Queued {
			visible |= 1 << i
		}
	}
	for sub := visible; sub > 0; sub = (sub - 1) & visible {
		if bits.OnesCount8(uint8(sub)) <= max(1, x.Bounds.Batch) {
			x.batch(sub)
		}
	}
	if x.s.Parker.Message != 0 {
		return
	}
	for i := range x.Bounds.Messages {
		if only := Set(1) << i; visible.Has(i) {
			x.deadline(only)
		}
	}
}

// batch is design section 6, steps 1 to 3: dead letters for what is too old to judge, ADMIT for the
// newest that is not done, and a verdict on each message by the row that it left.
func (x *step) batch(batch Set) {
	t := *x.s
	var old Set
	top := x.top(batch)
	for i, msg := range x.Bounds.Messages {
		if !batch.Has(i) || x.Rules.RidersUnjudged && !msg.Keys.Has(top) {
			continue
		}
		for k := MaxKey; k > None; k-- {
			if msg.Keys.Has(k) && x.aged(&t, i, k) && !t.Row.judges(x.Rules) && !x.done(t.Row, k) {
				old |= 1 << i
				t.Letters[k] = Parked
			}
		}
	}
	keys := x.keys(batch &^ old)
	x.admitLater(keys)
	admitted := None
	for k := MaxKey; k > None && admitted == None; k-- {
		if !keys.Has(k) {
			continue
		}
		rk := x.rowKey(k)
		if t.Row.admits(x.Rules, rk, false) {
			t.Row = t.Row.admit(rk)
			admitted = k
		}
		if x.Rules.AdmitHighestOnly || t.Row.Pending >= rk {
			break
		}
	}
	var v Receiver
	v.Ack = old
	for i, msg := range x.Bounds.Messages {
		only := Set(1) << i
		if batch&^old&only == 0 {
			continue
		}
		all, one := true, false
		for k := Key(1); k <= MaxKey; k++ {
			if !msg.Keys.Has(k) {
				continue
			}
			done := x.done(t.Row, k) || x.Rules.AckSuperseded && t.Row.Pending > x.rowKey(k)
			if done && !x.Rules.DoneForgotten {
				v.Done |= 1 << k
			}
			all, one = all && done, one || done
		}
		if x.Rules.DeleteByOneEvent {
			all = one || all
		} else if msg.Other && !t.Other {
			all = false
		}
		if all {
			v.Ack |= only
		} else {
			v.Hold |= only
		}
	}
	if old != 0 && !x.Rules.AgedUnparked {
		for k := MaxKey; k > None; k-- {
			if x.keys(old).Has(k) {
				t.Row = x.parkNow(t.Row, k)
			}
		}
	}
	if x.Rules.AckAtHold {
		v.Ack |= v.Hold
	}
	x.admitted(t, batch, v, admitted, old)
}

// admitLater is an ADMIT without an answer, whose invocation is gone when it is applied.
func (x *step) admitLater(keys KeySet) {
	t, ok := x.crash(*x.s)
	if !ok || !x.Bounds.LateAdmits {
		return
	}
	for k := MaxKey; k > None; k-- {
		if keys.Has(k) && x.s.Row.admits(x.Rules, x.rowKey(k), false) {
			if t.addWrite(RowWrite{Kind: AdmitWrite, Key: k}) {
				x.edge(t, false, 0, Label{Key: k, Text: "receive: crash; ADMIT {k} is still on its way"})
			}
			return
		}
	}
}

// parkNow applies whichever form of PARK the row allows.
func (m *Model) parkNow(r Row, k Key) Row {
	for _, second := range []bool{false, true} {
		if r.Exists && r.parks(k, second) {
			return r.park(m.Rules, k, second)
		}
	}
	return r
}

func (m *Model) top(batch Set) Key {
	keys := m.keys(batch)
	for k := MaxKey; k > None; k-- {
		if keys.Has(k) {
			return k
		}
	}
	return None
}

func (x *step) admitted(t State, batch Set, v Receiver, admitted Key, old Set) {
	for i := range x.Bounds.Messages {
		if batch.Has(i) {
			t.Messages[i] = HeldPlace
		}
	}
	text := "receive {m}: nothing to ADMIT"
	switch {
	case admitted != None:
		text = "receive {m}: ADMIT {k}: applied"
	case old == batch:
		text = "receive {m}: too old to judge: dead letter"
	case v.Hold == 0:
		text = "receive {m}: done already"
	}
	l := Label{Text: text, Key: admitted, Messages: batch}
	if x.Bounds.Receivers == 0 {
		x.answer(t, v, l)
		return
	}
	for i := range x.Bounds.Receivers {
		if t.Receivers[i] == (Receiver{}) {
			t.Receivers[i] = v
			x.free(t, l)
			return
		}
	}
}

// answers end the receive invocations that have admitted.
func (x *step) answers() {
	for i, v := range x.s.Receivers {
		if v != (Receiver{}) {
			t := *x.s
			t.Receivers[i] = Receiver{}
			x.answer(t, v, Label{Text: "receive", Messages: v.Hold | v.Ack})
		}
	}
}

// answer starts the flight and answers the event source mapping, which deletes what is
// acknowledged.
func (x *step) answer(t State, v Receiver, l Label) {
	if lost, ok := x.crash(t); ok {
		l := l
		l.Text = lostStart[l.Text]
		x.edge(lost, false, 0, l)
	}
	hold := v.Hold
	broken := x.remove(&t, v.Ack)
	if hold == 0 {
		l.Text = acknowledged[l.Text]
		x.edge(t, true, broken, l)
		return
	}
	e, ok := t.freeExec()
	if !ok || e >= x.Bounds.Execs {
		return
	}
	t.Execs[e] = Exec{Messages: hold, Done: v.Done}
	if x.Rules.TokenOfFlight {
		t.Execs[e].Token = t.freshToken()
	}
	l.Exec, l.Text = uint8(e), started[l.Text]
	x.edge(t, true, broken, l)
}

// The texts of what receive did and how its invocation ended.
var lostStart, acknowledged, started = map[string]string{}, map[string]string{}, map[string]string{}

func init() {
	for _, t := range []string{
		"receive", "receive {m}: nothing to ADMIT", "receive {m}: ADMIT {k}: applied",
		"receive {m}: too old to judge: dead letter",
		"receive {m}: done already",
	} {
		if t == "receive" {
			lostStart[t] = "receive ({m}): crash, or StartExecution is lost"
			acknowledged[t] = "receive answers: {m} acknowledged"
			started[t] = "receive starts flight {f} and answers: {m} held"
			continue
		}
		lostStart[t] = t + "; then a crash, or StartExecution is lost"
		acknowledged[t] = t + "; acknowledged"
		started[t] = t + "; flight {f} starts"
	}
}

// deadline is receive's other dead letter: dead_deadline, then PARK.
func (x *step) deadline(only Set) {
	k := x.top(only)
	if x.alone(only, k) == 0 {
		x.deadlines(only)
		return
	}
	if x.done(x.s.Row, k) {
		return
	}
	t := *x.s
	// A version that a dead one keeps out, because that one may be in the sink, gets there in the
	// end; others by budget.
	blocked := x.blocked(1 << k)
	if !blocked {
		if t.Left.Deadlines == 0 {
			return
		}
		t.Left.Deadlines--
	}
	t.Letters[k] = Parked
	t.Parker = Parker{Message: only, Receive: true}
	for i := range x.Bounds.Messages {
		if only.Has(i) {
			t.Messages[i] = HeldPlace
		}
	}
	x.edge(t, blocked, 0, Label{
		Text:     "receive {m}: its dead deadline is over: the dead letter is stored",
		Messages: only,
	})
}

// deadlines is the same for a message with several events, in one step and only where a dead
// version keeps one of them out: those that are not done become dead letters, and PARK follows
// each.
func (x *step) deadlines(only Set) {
	t := *x.s
	keys := x.keys(only)
	if !x.blocked(keys) || t.Row.Lease {
		return
	}
	for k := MaxKey; k > None; k-- {
		if keys.Has(k) && !x.done(t.Row, k) {
			t.Letters[k] = Parked
			t.Row = x.parkNow(t.Row, k)
		}
	}
	broken := x.remove(&t, only)
	x.edge(t, true, broken,
		Label{
			Text:     "receive {m}: its dead deadline is over: dead letters and PARK for what is not done; acknowledged",
			Messages: only,
		})
}
