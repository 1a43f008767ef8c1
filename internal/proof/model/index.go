package model

import "slices"

// exec is what an execution of a flight can do next: design section 8.
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

// flight is what happens to executions: they are lost, started twice, continued twice.
func (x *step) flight(e int) {
	s, f := x.s, &x.s.Execs[e]
	l := Label{Exec: uint8(e)}
	place := s.freeExec()
	full := place >= x.Bounds.Execs
	if f.Phase == Waiting {
		x.fault(Crashes, *s, l.says("flight {f} is lost")).To.Execs[e] = Exec{}
		// Only where nothing else could go on: a flight may wait for half a day.
		if full || x.Bounds.NoCap || x.blocked(x.keys(f.Messages)) {
			x.free(*s, l.says("flight {f} ends before twelve hours are over")).To.Execs[e] = Exec{}
		}
	}
	if f.Messages != 0 && !full {
		l.Text = "flight {f} runs a second time (double start, or a forked continuation)"
		again := &x.fault(Duplicates, *s, l).To.Execs[place]
		*again = Exec{Messages: f.Messages, Done: f.Done}
		if x.Rules.TokenOfFlight {
			again.Token = f.Token
		}
	}
	if x.Rules.TokenOfInvocation && f.Phase == Waiting && f.Token != 0 {
		x.free(*s, l.says("index ({f}): the invocation ends")).To.Execs[e].Token = 0
	}
}

// blocked reports that a dead version, which may be in the sink, keeps one of these out.
func (x *step) blocked(keys KeySet) bool {
	r := x.s.Row
	if r.Claimed == None || x.s.DeadLetters[r.Claimed] == NoDeadLetter || x.Rules.NoDeadline {
		return false
	}
	return keys&(1<<r.Claimed-1) != 0
}

// turn deals with one version that the flight holds. Any of them, not only the newest: due times
// differ.
func (x *step) turn(e int) {
	s, f := x.s, &x.s.Execs[e]
	if f.Phase == HasRead {
		x.rest(x.free(*s, Label{Exec: uint8(e), Text: "index ({f}): its turn ends"}), e)
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
		case s.Row.took(x.Rules, rk):
			x.deleteDead(e, k, "index ({f}): {k} was taken back: deletes {m}")
			continue
		case x.Rules.DeadFromStaleRead && s.StaleDead == rk && s.Left[Stale] > 0:
			x.deleteDead(e, k, "index ({f}): reads an older image, dead = {k}: deletes {m}")
		}
		if s.Row.Pending < rk {
			if max(s.Row.Dead, s.Row.Taken.Newest()) > rk && !x.Rules.LeaveBehindDead {
				x.next(e, k)
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
			read := x.reads(e, k, "index ({f}): loads the payload of {k} before it claims it")
			read.Body = max(s.Source, k)
		case x.Rules.ClaimedInHand && f.Phase == Waiting:
			x.reads(e, k, "index ({f}): reads the row before it claims {k}").Hand = s.Row.Claimed
		case f.Phase == Waiting || f.Key == k:
			x.claim(e, k)
		}
	}
}

// reads is a turn that looks at k before it claims it, where a change needs that as a step.
func (x *step) reads(e int, k Key, text string) *Exec {
	f := &x.free(*x.s, Label{Exec: uint8(e), Key: k, Text: text}).To.Execs[e]
	f.Phase, f.Key = HasRead, k
	return f
}

// leave takes the messages with k out of the flight: redelivery admits k again.
func (x *step) leave(e int, k Key, text string) {
	f := &x.free(*x.s, Label{Exec: uint8(e), Key: k, Text: text}).To.Execs[e]
	f.Messages &^= x.with(f.Messages, k)
}

// superseded is k behind a newer pending version: its messages may leave the flight, and are judged
// when they return. How often they do is left open. Nothing may depend on it, so the edge is not
// free: whatever can settle can do so without it, and without a version leaving for ever.
func (x *step) superseded(e int, k Key) {
	f := &x.s.Execs[e]
	if f.Phase != Waiting {
		return
	}
	set := x.with(f.Messages, k)
	t := x.edge(*x.s, x.Rules.LeaveForEver, Label{
		Exec: uint8(e), Key: k, Messages: set, Text: "index ({f}): pending > {k}: {m} leaves the flight",
	})
	t.To.Execs[e].Messages &^= set
	if x.Rules.DeleteSuperseded {
		t.Label.Text = "index ({f}): pending > {k}: deletes {m}"
		x.remove(t, set)
	}
}

// next is ADMIT by index: a newer version died, and k is the newest that this flight holds behind
// it. Each message that carries k may be the one whose age counts; one that is gone, or has no
// place any more, is left.
func (x *step) next(e int, k Key) {
	s, f := x.s, &x.s.Execs[e]
	rk := x.rowKey(k)
	for i := range x.with(f.Messages, k).All() {
		if s.Messages[i] == Gone || !s.Row.admits(x.Rules, rk, x.aged(s, i, k)) {
			x.leave(e, k, "index ({f}): cannot ADMIT {k}: leaves the flight")
			continue
		}
		if x.Bounds.LateAdmits {
			x.late(*s, RowWrite{Kind: AdmitWrite, Key: k}, Label{
				Exec: uint8(e), Key: k, Text: "index ({f}): crash; ADMIT {k} is still on its way",
			}).To.Execs[e] = Exec{}
		}
		x.free(*s, Label{
			Exec: uint8(e), Key: k, Text: "index ({f}): a newer version is dead: ADMIT {k}: applied",
		}).To.Row = s.Row.admit(rk)
	}
}

// keep is KEEP: index has the bytes of k, and the row says that the sink shows the same.
func (x *step) keep(e int, k Key) {
	s, w := x.s, RowWrite{Kind: KeepWrite, Key: k, Was: x.s.Row.Committed}
	if s.Execs[e].Phase != Waiting || x.Bounds.Same == 0 || x.Bounds.References || x.Bounds.Deletes.Has(k) ||
		!s.Row.keeps(x.Rules, x.rowKey(k), w.Was, x.capPast(), x.same) {
		return
	}
	l := Label{Exec: uint8(e), Key: k, By: "index ({f}): ", Text: "the sink has these bytes already: KEEP {k}"}
	l.Then = ": crash; it is still on its way"
	x.late(*s, w, l).To.Execs[e] = Exec{}
	l.Then = ": applied"
	t := x.free(*s, l)
	x.apply(t, w, Exec{})
	x.copied(*t, w)
}

// capPast reports whether max wait may be over: a version behind a newer pending one is claimed.
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
				x.take(x.free(*s, l), e, w)
			}
			continue
		}
		if x.loads(k) {
			l.Then = ": applied"
		}
		if s.Row.Pending > rk {
			l.By = "index ({f}): the cap is past: "
		}
		if w.Fence < top {
			l.By = "index ({f}), whose clock is behind: "
		}
		if x.Bounds.Clocks {
			x.late(*s, w, Label{Exec: uint8(e), Key: k, Text: "index ({f}): crash; CLAIM {k} is still on its way"})
		}
		t := Edge[State]{To: *s}
		x.apply(&t, w, Exec{})
		x.take(&t, e, w)
		if hand := &t.To.Execs[e].Hand; x.Rules.ClaimedInHand && *hand != s.Row.Claimed {
			x.fault(Crashes, t.To, Label{
				Exec: uint8(e), Key: k, By: "index ({f}): ", Text: "CLAIM {k}",
				Then: ": applied, answer lost, recognised by its token; claimed stays in hand as it was read; " + goes,
			})
			*hand = s.Row.Claimed
		}
		claimed := x.free(t.To, l)
		if x.Rules.DeleteBeforeWrite {
			claimed.Label.Then = ": applied; deletes the message; " + goes
			x.remove(claimed, x.with(f.Messages, k))
		}
	}
}

// loads reports whether k has a payload to load under its lease.
func (m *Model) loads(k Key) bool {
	return m.Bounds.References && !m.Rules.LoadBeforeClaim && !m.Bounds.Deletes.Has(k)
}

// take makes the claim w that of an execution.
func (x *step) take(t *Edge[State], e int, w RowWrite) {
	f := &t.To.Execs[e]
	f.Phase, f.Key, f.Token, f.Fence = Sent, w.Key, w.Token, w.Fence
	if x.loads(w.Key) {
		f.Phase = Claimed
	}
	if x.Bounds.Same != 0 && x.Bounds.References {
		f.Image = x.s.Row.before(x.Rules)
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

// lease ends a lease. With a plain sink its length covers every request made under it, and where
// payloads are references the load as well: that is the promise of the settings.
func (x *step) lease() {
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
	x.free(*s, Label{Text: "the lease ends"}).To.Row.Lease = false
}
