// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// exec appends the next steps of an execution of a flight (design section 8).
func (x *step) exec(e int) {
	f := &x.s.Execs[e]
	if f.Messages == 0 && f.Phase == Waiting {
		return
	}
	switch f.Phase {
	case Waiting, HasRead:
		x.turn(e)
	case Claimed:
		x.load(e)
	case Sent:
		x.send(e)
	case Applied:
		x.finish(e, CommitWrite)
	case Throttled, Refused:
		x.finish(e, ReleaseWrite)
	case DeadLettered:
		x.finish(e, RejectWrite)
	}
	x.flight(e)
}

// flight appends what can happen to an execution: it is lost, started twice, or continued twice.
func (x *step) flight(e int) {
	s, f := x.s, &x.s.Execs[e]
	l := Label{Exec: uint8(e)}
	place := s.freeExec()
	full := place >= x.Bounds.Execs
	if f.Phase == Waiting {
		x.addFault(Crashes, *s, l.withText("flight {f} is lost")).To.Execs[e] = Exec{}
		// The execution ends only if nothing else could continue, because a flight may wait for
		// half a day.
		if full || x.Bounds.NoCap || x.blocked(x.keys(f.Messages)) {
			x.addFree(*s, l.withText("flight {f} ends before twelve hours are over")).To.Execs[e] = Exec{}
		}
	}
	if f.Messages != 0 && !full {
		l.Text = "flight {f} runs a second time (double start, or a forked continuation)"
		again := &x.addFault(Duplicates, *s, l).To.Execs[place]
		*again = Exec{Messages: f.Messages, Done: f.Done}
		if x.Rules.TokenOfFlight {
			again.Token = f.Token
		}
	}
	if x.Rules.TokenOfInvocation && f.Phase == Waiting && f.Token != 0 {
		x.addFree(*s, l.withText("index ({f}): the invocation ends")).To.Execs[e].Token = 0
	}
}

// blocked reports whether a dead version that may be in the sink keeps one of these versions out.
func (x *step) blocked(keys KeySet) bool {
	r := x.s.Row
	if r.Claimed == None || x.s.DeadLetters[r.Claimed] == NoDeadLetter || x.Rules.NoDeadline {
		return false
	}
	return keys&(1<<r.Claimed-1) != 0
}

// turn handles one version that the flight holds. The version need not be the newest, because due
// times differ.
func (x *step) turn(e int) {
	s, f := x.s, &x.s.Execs[e]
	if f.Phase == HasRead {
		x.endClaim(x.addFree(*s, Label{Exec: uint8(e), Text: "index ({f}): its turn ends"}), e)
	}
	x.deleteCommitted(e)
	for k := range (x.keys(f.Messages) &^ f.Done).Down() {
		rk := x.rowKey(k)
		switch {
		case s.Row.Committed >= rk:
			continue
		case s.Row.Dead == rk:
			x.deleteDead(e, k, "index ({f}): dead = {k}: its dead letter is stored: deletes {m}")
			continue
		case s.Row.withdrawn(x.Rules, rk):
			x.deleteDead(e, k, "index ({f}): a reset withdrew {k}: deletes {m}")
			continue
		case x.Rules.DeadFromStaleRead && s.StaleDead == rk && s.Left[Stale] > 0:
			x.deleteDead(e, k, "index ({f}): reads an older image, dead = {k}: deletes {m}")
		}
		if s.Row.Pending < rk {
			if max(s.Row.Dead, s.Row.Taken.Newest()) > rk && !x.Rules.LeaveBehindDead {
				x.admitNext(e, k)
				continue
			}
			x.leave(e, k, "index ({f}): pending < {k}: leaves the flight")
			continue
		}
		if s.Row.Pending > rk {
			x.superseded(e, k)
		}
		x.keep(e, k)
		switch {
		case x.Rules.LoadBeforeClaim && f.Phase == Waiting:
			read := x.readFirst(e, k, "index ({f}): loads the payload of {k} before it claims it")
			read.Body = max(s.Source, k)
		case x.Rules.ClaimedInHand && f.Phase == Waiting:
			x.readFirst(e, k, "index ({f}): reads the row before it claims {k}").Hand = s.Row.Claimed
		case f.Phase == Waiting || f.Key == k:
			x.claim(e, k)
		}
	}
}

// readFirst is a turn that reads the row or the payload of k before the claim, if a change needs
// that as a separate step.
func (x *step) readFirst(e int, k Key, text string) *Exec {
	f := &x.addFree(*x.s, Label{Exec: uint8(e), Key: k, Text: text}).To.Execs[e]
	f.Phase, f.Key = HasRead, k
	return f
}

// leave removes the messages with k from the flight. A redelivery admits k again.
func (x *step) leave(e int, k Key, text string) {
	f := &x.addFree(*x.s, Label{Exec: uint8(e), Key: k, Text: text}).To.Execs[e]
	f.Messages &^= x.carrying(f.Messages, k)
}

// superseded handles a version k that is older than the pending version. The messages of k may
// leave the flight, and receive judges these messages when they return. They may leave and return
// any number of times, and the design must not depend on that number. So the edge is not free:
// every state must settle without this edge, unless [Rules.LeaveForEver] is set.
func (x *step) superseded(e int, k Key) {
	f := &x.s.Execs[e]
	if f.Phase != Waiting {
		return
	}
	set := x.carrying(f.Messages, k)
	t := x.addEdge(*x.s, x.Rules.LeaveForEver, Label{
		Exec: uint8(e), Key: k, Messages: set, Text: "index ({f}): pending > {k}: {m} leaves the flight",
	})
	t.To.Execs[e].Messages &^= set
	if x.Rules.DeleteSuperseded {
		t.Label.Text = "index ({f}): pending > {k}: deletes {m}"
		x.remove(t, set)
	}
}

// admitNext is ADMIT by index. A newer version died, and k is the newest version behind it that
// this flight holds. The age of any message that carries k may count. If the message is deleted, or
// the row refuses the ADMIT, k leaves the flight.
func (x *step) admitNext(e int, k Key) {
	s, f := x.s, &x.s.Execs[e]
	rk := x.rowKey(k)
	for i := range x.carrying(f.Messages, k).All() {
		if s.Messages[i] == Gone || !s.Row.admits(x.Rules, rk, x.aged(s, i, k)) {
			x.leave(e, k, "index ({f}): cannot ADMIT {k}: leaves the flight")
			continue
		}
		if x.Bounds.LateAdmits {
			x.addLateWrite(*s, RowWrite{Kind: AdmitWrite, Key: k}, Label{
				Exec: uint8(e), Key: k, Text: "index ({f}): crash; ADMIT {k} is still on its way",
			}).To.Execs[e] = Exec{}
		}
		x.addFree(*s, Label{
			Exec: uint8(e), Key: k, Text: "index ({f}): a newer version is dead: ADMIT {k}: applied",
		}).To.Row = s.Row.admit(rk)
	}
}

// keep is KEEP. index has the bytes of k, and the row says that the sink already shows the same
// bytes.
func (x *step) keep(e int, k Key) {
	s, w := x.s, RowWrite{Kind: KeepWrite, Key: k, Was: x.s.Row.Committed}
	if s.Execs[e].Phase != Waiting || x.Bounds.Same == 0 || x.Bounds.References || x.Bounds.Deletes.Has(k) ||
		!s.Row.keeps(x.Rules, x.rowKey(k), w.Was, x.capPast(), x.sameBytes) {
		return
	}
	l := Label{Exec: uint8(e), Key: k, By: "index ({f}): ", Text: "the sink has these bytes already: KEEP {k}"}
	l.Then = ": crash; it is still on its way"
	x.addLateWrite(*s, w, l).To.Execs[e] = Exec{}
	l.Then = ": applied"
	t := x.addFree(*s, l)
	x.apply(t, w, Exec{})
	x.appliedTwice(*t, w)
}

// capPast reports whether max wait may have ended. After max wait, index claims a version behind a
// newer pending one.
func (x *step) capPast() bool { return !x.Bounds.NoCap && !x.Rules.LeaveForEver }

const goes = "the request goes to the sink"

func (x *step) claim(e int, k Key) {
	s, f := x.s, &x.s.Execs[e]
	rk := x.rowKey(k)
	w := RowWrite{Kind: ClaimWrite, Key: k, Token: f.Token}
	name := "CLAIM {k}"
	again := s.Row.Claimed == rk
	if again {
		w.Kind, name = ClaimAgainWrite, "CLAIM again {k}"
	}
	if w.Token == 0 {
		w.Token = s.freshToken()
	}
	top := s.latest() + 1
	low := top
	if x.Bounds.Clocks {
		low = max(s.Row.LeaseUntil, s.Row.LastWrite) + 1
	}
	if x.Bounds.Ahead {
		top = low
	}
	for w.Fence = low; w.Fence <= top; w.Fence++ {
		l := Label{Exec: uint8(e), Key: k, By: "index ({f}): ", Text: name, Then: ": applied; " + goes}
		if !s.Row.claims(x.Rules, rk, again, x.capPast(), w.Fence) {
			if x.Rules.TokenOfFlight && s.Row.Owner == w.Token && again {
				l.Text, l.Then = "CLAIM {k}", ": refused, but owner is this flight, so the claim is taken for its own; "+goes
				x.takeClaim(x.addFree(*s, l), e, w)
			}
			continue
		}
		if x.loadsUnderLease(k) {
			l.Then = ": applied"
		}
		if s.Row.Pending > rk {
			l.By = "index ({f}): the cap is past: "
		}
		if w.Fence < top {
			l.By = "index ({f}), whose clock is behind: "
		}
		if x.Bounds.Clocks {
			x.addLateWrite(*s, w, Label{
				Exec: uint8(e), Key: k, Text: "index ({f}): crash; CLAIM {k} is still on its way",
			})
		}
		t := Edge[State]{To: *s}
		x.apply(&t, w, Exec{})
		x.takeClaim(&t, e, w)
		if hand := &t.To.Execs[e].Hand; x.Rules.ClaimedInHand && *hand != s.Row.Claimed {
			x.addFault(Crashes, t.To, Label{
				Exec: uint8(e), Key: k, By: "index ({f}): ", Text: "CLAIM {k}",
				Then: ": applied, answer lost, recognised by its token; claimed stays in hand as it was read; " + goes,
			})
			*hand = s.Row.Claimed
		}
		claimed := x.addFree(t.To, l)
		if x.Rules.DeleteBeforeWrite {
			claimed.Label.Then = ": applied; deletes the message; " + goes
			x.remove(claimed, x.carrying(f.Messages, k))
		}
	}
}

// loadsUnderLease reports whether k has a payload to load under the document's lease.
func (m *Model) loadsUnderLease(k Key) bool {
	return m.Bounds.References && !m.Rules.LoadBeforeClaim && !m.Bounds.Deletes.Has(k)
}

// takeClaim gives the claim w to an execution.
func (x *step) takeClaim(t *Edge[State], e int, w RowWrite) {
	f := &t.To.Execs[e]
	f.Phase, f.Key, f.Token, f.Fence = Sent, w.Key, w.Token, w.Fence
	if x.loadsUnderLease(w.Key) {
		f.Phase = Claimed
	}
	if x.Bounds.Same != 0 && x.Bounds.References {
		f.Image = x.s.Row.bytesBeforeClaim(x.Rules)
	}
	f.First = x.Rules.ReleaseRestores && x.s.Row.Claimed != x.rowKey(w.Key)
	if x.Bounds.MaxRefusals > 0 {
		f.Refusals = t.To.Row.Refusals
	}
	switch {
	case x.Rules.UpstreamVersion:
		f.Fence = upstream[w.Key]
	case x.Bounds.Sink == Plain && !x.Bounds.Clocks:
		f.Fence = 0
	}
}

// endLease ends a lease. With a plain sink, the lease lasts longer than every request made under
// it. If payloads are references, it also lasts longer than the load. The settings promise that.
func (x *step) endLease() {
	s := x.s
	if !s.Row.Lease {
		return
	}
	plain := x.Bounds.Sink == Plain
	writing := func(f Exec) bool {
		return (f.Phase == Claimed || f.Phase == Sent) && f.Token == s.Row.Owner && !x.Rules.LeaseShorterThanWrite
	}
	late := func(r Request) bool {
		return r != (Request{}) && r.Token == s.Row.Owner && !x.Rules.LateRequest
	}
	if (plain || x.Bounds.References) && slices.ContainsFunc(s.Execs[:], writing) ||
		plain && slices.ContainsFunc(s.Requests[:], late) {
		return
	}
	x.addFree(*s, Label{Text: "the lease ends"}).To.Row.Lease = false
}
