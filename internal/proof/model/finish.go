package model

import "cmp"

// rest ends the claim of an invocation: the flight waits for its next turn.
func (x *step) rest(t *Edge[State], e int) {
	f := &t.To.Execs[e]
	*f = Exec{Messages: f.Messages, Done: f.Done, Token: f.Token}
	if !x.Rules.TokenOfFlight && !x.Rules.TokenOfInvocation {
		f.Token = 0
	}
}

// crashed ends an invocation by a crash: the flight's next turn has a token of its own.
func (x *step) crashed(t *Edge[State], e int) {
	x.rest(t, e)
	if !x.Rules.TokenOfFlight {
		t.To.Execs[e].Token = 0
	}
}

// finish carries out COMMIT, RELEASE or REJECT: applied or refused, lost with the invocation, or
// still on its way.
func (x *step) finish(e int, kind WriteKind) {
	f := x.s.Execs[e]
	w := RowWrite{Kind: kind, Key: f.Key, Token: f.Token, Fence: f.Fence}
	if kind == CommitWrite {
		w.Bytes = x.recognised(f)
	}
	l := Label{Exec: uint8(e), Key: f.Key, By: "index ({f}): crash before ", Text: writeNames[kind]}
	x.crashed(x.fault(Crashes, *x.s, l), e)
	l.By, l.Then = "index ({f}): ", " gets no answer and is still on its way"
	if !x.Rules.ClaimedInHand || kind != RejectWrite {
		x.crashed(x.late(*x.s, w, l), e)
	}
	l.Then = ": applied"
	t := x.free(*x.s, l)
	x.rest(t, e)
	if !x.apply(t, w, f) {
		t.Label.Then = ": refused, the lease is lost"
		if kind == RejectWrite {
			t.Label.Then = ": refused"
		}
		return
	}
	if kind == RejectWrite && !x.Rules.DoneForgotten {
		done, own := x.alone(f.Messages, f.Key), &t.To.Execs[e]
		own.Done |= 1 << f.Key
		own.Messages &^= done
		x.remove(t, done)
		if done != 0 {
			t.Label.Messages, t.Label.Then = done, ": applied; deletes {m}"
		}
	}
	if !x.Rules.ClaimedInHand {
		x.copied(*t, w)
	}
}

// copied is a write that was applied and of which a copy is still on its way.
func (x *step) copied(applied Edge[State], w RowWrite) {
	applied.Label.Then = ": applied; a copy of it is still on its way"
	x.late(applied.To, w, applied.Label).Broken = applied.Broken
}

// apply carries out a write of the row that w says, where its condition holds.
func (x *step) apply(t *Edge[State], w RowWrite, f Exec) (applied bool) {
	r, rk := t.To.Row, x.rowKey(w.Key)
	after, has := r, true
	switch w.Kind {
	case CommitWrite:
		applied, after = r.commits(x.Rules, rk, w.Token), r.commit(x.Rules, rk, w.Fence, w.Bytes)
		has = t.To.Sink.shows() >= rk
	case KeepWrite:
		applied, after = r.keeps(x.Rules, rk, w.Was, x.capPast(), x.same), r.keep(rk)
		has = x.holds(t.To.Sink, rk)
	case ReleaseWrite:
		applied, after = r.releases(w.Token), r.release(x.Rules, w.Fence, f.Phase == Refused, f.First)
	case AdmitWrite:
		applied, after = r.admits(x.Rules, rk, x.aged(x.s, maxMessages, w.Key)), r.admit(rk)
	case ClaimWrite, ClaimAgainWrite:
		again := w.Kind == ClaimAgainWrite
		applied = r.claims(x.Rules, rk, again, x.capPast(), w.Fence)
		after = r.claim(x.Rules, rk, again, w.Token, w.Fence)
		// Fences that are not times: lease_until says nothing of them, so last_write remembers them.
		if x.Bounds.Ahead && !x.Rules.AheadForgotten {
			after.LastWrite = w.Fence
		}
	case RejectWrite:
		applied = r.rejects(x.Rules, w.Token)
		if x.Rules.ClaimedInHand {
			r.ClaimedWas = cmp.Or(f.Hand, Lowest)
		}
		after = r.reject(x.Rules, rk, w.Fence)
	}
	if !applied {
		return false
	}
	if x.Bounds.Ahead {
		after.LeaseUntil = 0
	}
	// A build without KEEP leaves content as it was.
	if x.Bounds.Older.Has(w.Key) && (w.Kind == CommitWrite || w.Kind == ClaimWrite || w.Kind == ClaimAgainWrite) {
		after.Content, after.Bytes = r.Content, r.Bytes
	}
	t.To.Row = after
	switch {
	case !has:
		t.Broken |= Untrue
	case w.Kind == KeepWrite:
		t.To.Sink.Kept = w.Key
	case w.Kind == RejectWrite:
		x.stale(t)
	}
	return true
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
		t := x.free(*x.s, Label{Key: w.Key, By: "the late ", Text: writeNames[w.Kind], Then: " arrives"})
		t.To.Writes[i] = RowWrite{}
		x.apply(t, w, Exec{})
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
	for k := range msg.Keys.All() {
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
	if set != 0 {
		x.deleteHeld(e, set, Label{Exec: uint8(e), Key: k, Messages: set, Text: text})
	} else if !x.Rules.DoneForgotten {
		l := Label{Exec: uint8(e), Key: k, Text: "index ({f}): dead = {k}: this event is done"}
		x.free(*x.s, l).To.Execs[e].Done |= 1 << k
	}
}

// deleteHeld deletes by the handles of the manifest. A handle that SQS replaced since may be
// refused.
func (x *step) deleteHeld(e int, set Set, l Label) {
	t := *x.s
	t.Execs[e].Messages &^= set
	x.remove(x.free(t, l), set)
	stale := (t.at(Queued)|t.held())&set != 0
	x.unless(stale, Crashes, t, l.says("index ({f}): done, but deleting {m} fails"))
}
