package model

// rest ends the claim of an invocation: the flight waits for its next turn.
func (x *step) rest(t *State, e int) {
	f := &t.Execs[e]
	*f = Exec{Messages: f.Messages, Done: f.Done, Token: f.Token}
	if !x.Rules.TokenOfFlight && !x.Rules.TokenOfInvocation {
		f.Token = 0
	}
}

// crashed is a state after a crash of an invocation: the flight's next turn has a token of its own.
func (x *step) crashed(t State, e int) State {
	x.rest(&t, e)
	if !x.Rules.TokenOfFlight {
		t.Execs[e].Token = 0
	}
	return t
}

// finish carries out COMMIT, RELEASE or REJECT: applied or refused, lost with the invocation, or
// still on its way.
func (x *step) finish(e int, kind WriteKind) {
	f := x.s.Execs[e]
	w := RowWrite{Kind: kind, Key: f.Key, Token: f.Token, Fence: f.Fence}
	if kind == CommitWrite {
		w.Bytes = x.recognised(f)
	}
	l := Label{Exec: uint8(e), Key: f.Key}
	name := writeNames[kind]
	l.By, l.Text = "index ({f}): ", name
	t := *x.s
	x.rest(&t, e)
	crashed := x.crashed(*x.s, e)
	x.fault(Crashes, crashed, Label{Exec: l.Exec, Key: l.Key, By: "index ({f}): crash before ", Text: l.Text})
	if !x.Rules.ClaimedInHand || kind != RejectWrite {
		l.Then = " gets no answer and is still on its way"
		x.late(crashed, w, l)
	}
	row, applied, broken := x.apply(x.s, w, f)
	switch {
	case applied:
		l.Then = ": applied"
		t.Row = row
	case kind == RejectWrite:
		l.Then = ": refused"
	default:
		l.Then = ": refused, the lease is lost"
	}
	if applied && kind == RejectWrite {
		if !x.Rules.DoneForgotten {
			t.Execs[e].Done |= 1 << f.Key
			l.Messages = x.alone(f.Messages, f.Key)
			t.Execs[e].Messages &^= l.Messages
			broken |= x.remove(&t, l.Messages)
			if l.Messages != 0 {
				l.Then = ": applied; deletes {m}"
			}
		}
		x.stale(&t)
	}
	x.edge(t, true, broken, l)
	if applied && !x.Rules.ClaimedInHand {
		x.copied(t, w, broken, l)
	}
}

// copied is a write that was applied and of which a copy is still on its way.
func (x *step) copied(t State, w RowWrite, broken Broken, l Label) {
	if again, ok := x.spend(t, Crashes); ok && add(again.Writes[:], w) {
		l.Then = ": applied; a copy of it is still on its way"
		x.edge(again, false, broken, l)
	}
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
		if s.Sink.shows() < rk {
			b = Untrue
		}
		return x.older(w.Key, s.Row, s.Row.commit(x.Rules, rk, w.Fence, w.Bytes)), true, b
	case KeepWrite:
		if !s.Row.keeps(x.Rules, rk, w.Was, true, x.same) {
			return s.Row, false, 0
		}
		var b Broken
		if !x.holds(s.Sink, rk) {
			b = Untrue
		}
		return s.Row.keep(rk), true, b
	case ReleaseWrite:
		if !s.Row.releases(w.Token) {
			return s.Row, false, 0
		}
		r := s.Row.release(x.Rules, w.Fence, f.Phase == Refused, f.First)
		if x.Bounds.Ahead {
			r.LeaseUntil = 0
		}
		return r, true, 0
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
		return x.older(w.Key, s.Row, x.ahead(s.Row.claim(x.Rules, rk, again, w.Token, w.Fence), w.Fence)), true, 0
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
	if r = r.reject(x.Rules, rk, w.Fence); x.Bounds.Ahead {
		r.LeaseUntil = 0
	}
	return r, true, 0
}

var writeNames = [...]string{
	CommitWrite: "COMMIT {k}", ReleaseWrite: "RELEASE {k}", RejectWrite: "REJECT {k}", AdmitWrite: "ADMIT {k}",
	ClaimWrite: "CLAIM {k}", ClaimAgainWrite: "CLAIM again {k}", KeepWrite: "KEEP {k}",
}

// writesLater lets the writes arrive whose sender no longer waits.
func (x *step) writesLater() {
	for i, w := range x.s.Writes {
		if w == (RowWrite{}) {
			continue
		}
		t := *x.s
		t.Writes[i] = RowWrite{}
		l := Label{Key: w.Key, By: "the late ", Text: writeNames[w.Kind], Then: " arrives"}
		row, applied, broken := x.apply(x.s, w, Exec{Hand: None})
		if applied {
			t.Row = row
			x.kept(&t, w)
			if w.Kind == RejectWrite {
				x.stale(&t)
			}
		}
		x.edge(t, true, broken, l)
	}
}

// recognised are the bytes of which COMMIT leaves a digest, None for none.
func (m *Model) recognised(f Exec) Key {
	switch {
	case m.Bounds.Same == 0 || m.Bounds.Deletes.Has(f.Key) && !m.Rules.KeepOverDelete:
		return None
	case m.Bounds.References && m.Bounds.Gone.Has(f.Body):
		return None
	case m.Bounds.References:
		return f.Body
	}
	return f.Key
}

// mayGo reports whether message i may be deleted: every event in it is done.
func (x *step) mayGo(i int, done func(Key) bool) bool {
	msg := x.Bounds.Messages[i]
	all, one := !msg.Other || x.s.Other, false
	for k := range msg.Keys.Up() {
		ok := done(k)
		all = all && ok
		one = one || ok
	}
	return all || one && x.Rules.DeleteByOneEvent
}

// deleteCommitted deletes the messages whose every event is committed or known to be done.
func (x *step) deleteCommitted(e int) {
	f := x.s.Execs[e]
	var set Set
	committed := None
	for i := range f.Messages.All() {
		if x.mayGo(i, func(k Key) bool {
			if x.s.Row.Committed >= x.rowKey(k) {
				committed = x.s.Row.Committed
				return true
			}
			return f.Done.Has(k) || x.Rules.DoneForgotten && x.s.Row.Dead == x.rowKey(k)
		}) {
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
	stale := (kept.at(Queued)|kept.held())&set != 0
	l.Text = "index ({f}): done, but deleting {m} fails"
	if stale {
		x.edge(kept, true, 0, l)
	} else {
		x.fault(Crashes, kept, l)
	}
}
