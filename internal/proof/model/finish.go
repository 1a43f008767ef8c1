package model

// rest ends the claim of an invocation: the flight waits for its next turn.
func (x *step) rest(t *State, e int) {
	f := &t.Execs[e]
	f.Phase, f.Key, f.Fence, f.Hand, f.Refusals, f.First = Waiting, None, 0, None, 0, false
	if !x.Rules.TokenOfFlight && !x.Rules.TokenOfInvocation {
		f.Token = 0
	}
}

// finish carries out COMMIT, RELEASE or REJECT: applied or refused, lost with the invocation, or
// still on its way.
func (x *step) finish(e int, kind WriteKind) {
	f := x.s.Execs[e]
	w := RowWrite{Kind: kind, Key: f.Key, Token: f.Token, Fence: f.Fence}
	l := Label{Exec: uint8(e), Key: f.Key}
	t := *x.s
	x.rest(&t, e)
	if t, ok := x.crash(t); ok {
		if !x.Rules.TokenOfFlight {
			t.Execs[e].Token = 0
		}
		l.Text = endTexts[kind].crash
		x.edge(t, false, 0, l)
		if (!x.Rules.ClaimedInHand || kind != RejectWrite) && t.addWrite(w) {
			l.Text = endTexts[kind].late
			x.edge(t, false, 0, l)
		}
	}
	l.Text = endTexts[kind].refused
	row, applied, broken := x.apply(x.s, w, f)
	if applied {
		l.Text = endTexts[kind].applied
		t.Row = row
		if kind == RejectWrite && !x.Rules.DoneForgotten {
			t.Execs[e].Done |= 1 << f.Key
			t.Execs[e].Messages &^= x.alone(f.Messages, f.Key)
			broken |= x.remove(&t, x.alone(f.Messages, f.Key))
			l.Messages = x.alone(f.Messages, f.Key)
			if l.Messages != 0 {
				l.Text = "index ({f}): REJECT {k}: applied; deletes {m}"
			}
		}
		if kind == RejectWrite {
			x.stale(&t)
		}
	}
	x.edge(t, true, broken, l)
	if again, ok := x.crash(t); ok && applied && !x.Rules.ClaimedInHand && again.addWrite(w) {
		l.Text = endTexts[kind].twice
		x.edge(again, false, broken, l)
	}
}

// alone are the messages that carry k and nothing else.
func (m *Model) alone(set Set, k Key) Set {
	var out Set
	for i, msg := range m.Bounds.Messages {
		if set.Has(i) && msg.Keys == Keys(k) && !msg.Other {
			out |= 1 << i
		}
	}
	return out
}

// apply evaluates a write that ends a claim.
func (x *step) apply(s *State, w RowWrite, f Exec) (Row, bool, Broken) {
	rk := x.rowKey(w.Key)
	switch w.Kind {
	case CommitWrite:
		if !s.Row.commits(x.Rules, rk, w.Token) {
			return s.Row, false, 0
		}
		var b Broken
		if s.Sink.Content < rk {
			b = Untrue
		}
		return s.Row.commit(x.Rules, rk, w.Fence), true, b
	case ReleaseWrite:
		if !s.Row.releases(w.Token) {
			return s.Row, false, 0
		}
		return s.Row.release(x.Rules, w.Fence, f.Phase == Refused, f.First), true, 0
	case AdmitWrite:
		if !s.Row.admits(x.Rules, rk, x.aged(s, maxMessages, w.Key)) {
			return s.Row, false, 0
		}
		return s.Row.admit(rk), true, 0
	case ClaimWrite, ClaimAgainWrite:
		again := w.Kind == ClaimAgainWrite
		if !s.Row.claims(x.Rules, rk, again, true, w.Fence) {
			return s.Row, false, 0
		}
		return s.Row.claim(x.Rules, rk, again, w.Token, w.Fence), true, 0
	}
	if !s.Row.rejects(x.Rules, w.Token) {
		return s.Row, false, 0
	}
	r := s.Row
	if x.Rules.ClaimedInHand {
		if r.ClaimedWas = f.Hand; f.Hand == None {
			r.ClaimedWas = Lowest
		}
	}
	return r.reject(x.Rules, rk, w.Fence), true, 0
}

var endTexts = map[WriteKind]struct{ applied, refused, crash, late, twice string }{
	CommitWrite: {
		"index ({f}): COMMIT {k}: applied", "index ({f}): COMMIT {k}: refused, the lease is lost",
		"index ({f}): crash before COMMIT {k}", "index ({f}): COMMIT {k} gets no answer and is still on its way",
		"index ({f}): COMMIT {k}: applied; a copy of it is still on its way",
	},
	ReleaseWrite: {
		"index ({f}): RELEASE {k}: applied", "index ({f}): RELEASE {k}: refused, the lease is lost",
		"index ({f}): crash before RELEASE {k}", "index ({f}): RELEASE {k} gets no answer and is still on its way",
		"index ({f}): RELEASE {k}: applied; a copy of it is still on its way",
	},
	RejectWrite: {
		"index ({f}): REJECT {k}: applied", "index ({f}): REJECT {k}: refused",
		"index ({f}): crash before REJECT {k}", "index ({f}): REJECT {k} gets no answer and is still on its way",
		"index ({f}): REJECT {k}: applied; a copy of it is still on its way",
	},
}

// writesLater lets the writes arrive whose sender no longer waits.
func (x *step) writesLater() {
	for i, w := range x.s.Writes {
		if w == (RowWrite{}) {
			continue
		}
		t := *x.s
		t.Writes[i] = RowWrite{}
		l := Label{Key: w.Key, Text: [...]string{
			CommitWrite: "the late COMMIT {k} arrives", ReleaseWrite: "the late RELEASE of {k} arrives",
			RejectWrite: "the late REJECT {k} arrives", AdmitWrite: "the late ADMIT {k} arrives",
			ClaimWrite: "the late CLAIM {k} arrives", ClaimAgainWrite: "the late CLAIM again {k} arrives",
		}[w.Kind]}
		row, applied, broken := x.apply(x.s, w, Exec{Hand: None})
		if applied {
			t.Row = row
			if w.Kind == RejectWrite {
				x.stale(&t)
			}
		}
		x.edge(t, true, broken, l)
	}
}

// deleteCommitted deletes the messages whose every event is committed or known to be done.
func (x *step) deleteCommitted(e int) {
	f := x.s.Execs[e]
	var set Set
	committed := None
	for i, msg := range x.Bounds.Messages {
		if !f.Messages.Has(i) {
			continue
		}
		all, one := true, false
		for k := Key(1); k <= MaxKey; k++ {
			if !msg.Keys.Has(k) {
				continue
			}
			ok := x.s.Row.Committed >= x.rowKey(k)
			if ok {
				committed = max(committed, x.s.Row.Committed)
			}
			ok = ok || f.Done.Has(k) || x.Rules.DoneForgotten && x.s.Row.Dead == x.rowKey(k)
			all, one = all && ok, one || ok
		}
		if x.Rules.DeleteByOneEvent {
			all = one
		} else if msg.Other && !x.s.Other {
			all = false
		}
		if all {
			set |= 1 << i
		}
	}
	if set != 0 {
		l := Label{Exec: uint8(e), Messages: set, Key: committed, Text: "index ({f}): committed >= {k}: deletes {m}"}
		if committed == None {
			l.Text = "index ({f}): every event is done: deletes {m}"
		}
		x.deleteHeld(e, set, l)
	}
}

// deleteDead marks k as done where its dead letter is stored, and deletes the messages that carry
// nothing else.
func (x *step) deleteDead(e int, k Key, text string) {
	f := x.s.Execs[e]
	set := x.alone(f.Messages, k)
	if set == 0 {
		t := *x.s
		t.Execs[e].Done |= 1 << k
		if x.Rules.DoneForgotten {
			return
		}
		x.free(t, Label{Exec: uint8(e), Key: k, Text: "index ({f}): dead = {k}: this event is done"})
		return
	}
	x.deleteHeld(e, set, Label{Exec: uint8(e), Key: k, Messages: set, Text: text})
}

// deleteHeld deletes by the handles of the manifest. A handle that SQS replaced since may be
// refused.
func (x *step) deleteHeld(e int, set Set, l Label) {
	t := *x.s
	t.Execs[e].Messages &^= set
	kept := t
	b := x.remove(&t, set)
	x.edge(t, true, b, l)
	stale := false
	for i := range x.Bounds.Messages {
		stale = stale || set.Has(i) && kept.Messages[i] == Queued || kept.held()&set != 0
	}
	l.Text = "index ({f}): done, but deleting {m} fails"
	if stale {
		x.edge(kept, true, 0, l)
	} else if kept, ok := x.crash(kept); ok {
		x.edge(kept, false, 0, l)
	}
}
