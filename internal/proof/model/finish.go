// SPDX-License-Identifier: Apache-2.0

package model

import "cmp"

// endClaim ends the claim of an invocation. The flight waits for its next turn.
func (x *step) endClaim(t *Edge[State], e int) {
	f := &t.To.Execs[e]
	*f = Exec{Messages: f.Messages, Done: f.Done, Token: f.Token}
	if !x.Rules.TokenOfFlight && !x.Rules.TokenOfInvocation {
		f.Token = 0
	}
}

// crash ends an invocation by a crash. The flight's next turn has another token.
func (x *step) crash(t *Edge[State], e int) {
	x.endClaim(t, e)
	if !x.Rules.TokenOfFlight {
		t.To.Execs[e].Token = 0
	}
}

// finish carries out COMMIT, RELEASE or REJECT. The write is applied, refused, lost with the
// invocation, or still on its way.
func (x *step) finish(e int, kind WriteKind) {
	f := x.s.Execs[e]
	w := RowWrite{Kind: kind, Key: f.Key, Token: f.Token, Fence: f.Fence}
	if kind == CommitWrite {
		w.Bytes = x.committedBytes(f)
	}
	l := Label{Exec: uint8(e), Key: f.Key, By: "index ({f}): crash before ", Text: writeNames[kind]}
	x.crash(x.addFault(Crashes, *x.s, l), e)
	l.By, l.Then = "index ({f}): ", " gets no answer and is still on its way"
	if !x.Rules.ClaimedInHand || kind != RejectWrite {
		x.crash(x.addLateWrite(*x.s, w, l), e)
	}
	l.Then = ": applied"
	t := x.addFree(*x.s, l)
	x.endClaim(t, e)
	if !x.apply(t, w, f) {
		t.Label.Then = ": refused, the lease is lost"
		if kind == RejectWrite {
			t.Label.Then = ": refused"
		}
		return
	}
	if kind == RejectWrite && !x.Rules.DoneForgotten {
		done, own := x.carryingOnly(f.Messages, f.Key), &t.To.Execs[e]
		own.Done |= 1 << f.Key
		own.Messages &^= done
		x.remove(t, done)
		if done != 0 {
			t.Label.Messages, t.Label.Then = done, ": applied; deletes {m}"
		}
	}
	if !x.Rules.ClaimedInHand {
		x.appliedTwice(*t, w)
	}
}

// appliedTwice is a write that was applied while a second copy of it is still on its way.
func (x *step) appliedTwice(applied Edge[State], w RowWrite) {
	applied.Label.Then = ": applied; a copy of it is still on its way"
	x.addLateWrite(applied.To, w, applied.Label).Broken = applied.Broken
}

// apply carries out a row write if the write's condition holds.
func (x *step) apply(t *Edge[State], w RowWrite, f Exec) (applied bool) {
	r, rk := t.To.Row, x.rowKey(w.Key)
	after, has := r, true
	switch w.Kind {
	case CommitWrite:
		applied, after = r.commits(x.Rules, rk, w.Token), r.commit(x.Rules, rk, w.Fence, w.Bytes)
		has = t.To.Sink.shows() >= rk
	case KeepWrite:
		applied, after = r.keeps(x.Rules, rk, w.Was, x.capPast(), x.sameBytes), r.keep(rk)
		has = x.holds(t.To.Sink, rk)
	case ReleaseWrite:
		applied, after = r.releases(w.Token), r.release(x.Rules, w.Fence, f.Phase == Refused, f.First)
	case AdmitWrite:
		applied, after = r.admits(x.Rules, rk, x.aged(x.s, maxMessages, w.Key)), r.admit(rk)
	case ClaimWrite, ClaimAgainWrite:
		again := w.Kind == ClaimAgainWrite
		applied = r.claims(x.Rules, rk, again, x.capPast(), w.Fence)
		after = r.claim(x.Rules, rk, again, w.Token, w.Fence)
		// Fences ahead of every clock are not times. lease_until says nothing about them, so
		// last_write remembers them.
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
	// A build without KEEP does not change content.
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
		x.rememberDead(t)
	}
	return true
}

var writeNames = [...]string{
	CommitWrite: "COMMIT {k}", ReleaseWrite: "RELEASE {k}", RejectWrite: "REJECT {k}", AdmitWrite: "ADMIT {k}",
	ClaimWrite: "CLAIM {k}", ClaimAgainWrite: "CLAIM again {k}", KeepWrite: "KEEP {k}",
}

// lateWrites lets row writes arrive whose sender no longer waits.
func (x *step) lateWrites() {
	for i, w := range x.s.Writes {
		if w == (RowWrite{}) {
			continue
		}
		t := x.addFree(*x.s, Label{Key: w.Key, By: "the late ", Text: writeNames[w.Kind], Then: " arrives"})
		t.To.Writes[i] = RowWrite{}
		x.apply(t, w, Exec{})
	}
}

// committedBytes returns the bytes whose digest COMMIT stores, or None.
func (m *Model) committedBytes(f Exec) Key {
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

// mayGo reports whether message i may be deleted, because every event in the message is done.
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

// deleteCommitted deletes the messages in which every event is committed or known to be done.
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

// deleteDead marks k as done after its dead letter is stored. deleteDead also deletes the messages
// that carry only k.
func (x *step) deleteDead(e int, k Key, text string) {
	f := x.s.Execs[e]
	set := x.carryingOnly(f.Messages, k)
	if set != 0 {
		x.deleteHeld(e, set, Label{Exec: uint8(e), Key: k, Messages: set, Text: text})
	} else if !x.Rules.DoneForgotten {
		l := Label{Exec: uint8(e), Key: k, Text: "index ({f}): dead = {k}: this event is done"}
		x.addFree(*x.s, l).To.Execs[e].Done |= 1 << k
	}
}

// deleteHeld deletes messages by the handles of the manifest. SQS may refuse a handle that a newer
// delivery replaced.
func (x *step) deleteHeld(e int, set Set, l Label) {
	t := *x.s
	t.Execs[e].Messages &^= set
	x.remove(x.addFree(t, l), set)
	stale := (t.messagesAt(Queued)|t.held())&set != 0
	x.addFreeIf(stale, Crashes, t, l.withText("index ({f}): done, but deleting {m} fails"))
}
