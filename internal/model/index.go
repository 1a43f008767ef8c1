package model

// exec is what an execution of a flight can do next: DESIGN section 8.
func (x *step) exec(e int) {
	f := &x.s.Execs[e]
	if f.Messages == 0 && f.Phase == Waiting {
		return
	}
	switch f.Phase {
	case Waiting, HasRead:
		x.turn(e)
	case Sent:
		x.send(e)
	case Applied:
		x.finish(e, CommitWrite)
	case Throttled, Refused:
		x.finish(e, ReleaseWrite)
	case Lettered:
		x.finish(e, RejectWrite)
	}
	x.flight(e)
}

// flight is what happens to executions: they are lost, started twice, continued twice.
func (x *step) flight(e int) {
	f := &x.s.Execs[e]
	if t, ok := x.crash(*x.s); ok && f.Phase == Waiting {
		t.Execs[e] = Exec{}
		x.edge(t, false, 0, Label{Text: "flight {f} is lost", Exec: uint8(e)})
	}
	if n, ok := x.s.freeExec(); f.Phase == Waiting && (!ok || n >= x.Bounds.Execs || x.blocked(x.keys(f.Messages))) {
		// Only where nothing else could go on: a flight may wait for half a day.
		t := *x.s
		t.Execs[e] = Exec{}
		x.free(t, Label{Text: "flight {f} ends before twelve hours are over", Exec: uint8(e)})
	}
	if t, ok := x.duplicate(*x.s); ok && f.Messages != 0 {
		if n, ok := t.freeExec(); ok && n < x.Bounds.Execs {
			t.Execs[n] = Exec{Messages: f.Messages, Done: f.Done}
			if x.Rules.TokenOfFlight {
				t.Execs[n].Token = f.Token
			}
			x.edge(t, false, 0, Label{Text: "flight {f} runs a second time (double start, or a forked continuation)", Exec: uint8(e)})
		}
	}
	if x.Rules.TokenOfInvocation && f.Phase == Waiting && f.Token != 0 {
		t := *x.s
		t.Execs[e].Token = 0
		x.free(t, Label{Text: "index ({f}): the invocation ends", Exec: uint8(e)})
	}
}

// blocked reports that a dead version, which may be in the sink, keeps one of these out.
func (x *step) blocked(keys KeySet) bool {
	r := x.s.Row
	if r.Claimed == None || x.s.Letters[r.Claimed] == NoLetter || x.Rules.NoDeadline {
		return false
	}
	return keys&(1<<r.Claimed-1) != 0
}

// turn deals with one version that the flight holds. Any of them, not only the newest: due times differ.
func (x *step) turn(e int) {
	s, f := x.s, &x.s.Execs[e]
	if f.Phase == HasRead {
		t := *s
		x.rest(&t, e)
		x.free(t, Label{Exec: uint8(e), Text: "index ({f}): its turn ends"})
	}
	x.deleteCommitted(e)
	keys := x.keys(f.Messages) &^ f.Done
	for k := MaxKey; k > None; k-- {
		if !keys.Has(k) {
			continue
		}
		rk := x.rowKey(k)
		l := Label{Exec: uint8(e), Key: k}
		switch {
		case s.Row.Committed >= rk:
			continue
		case s.Row.Dead == rk:
			x.deleteDead(e, k, "index ({f}): dead = {k}: its letter is stored: deletes {m}")
			continue
		case x.Rules.DeadFromStaleRead && s.StaleDead == rk && s.Left.Stale > 0:
			x.deleteDead(e, k, "index ({f}): reads an older image, dead = {k}: deletes {m}")
		}
		if s.Row.Pending < rk {
			t := *s
			t.Execs[e].Messages &^= x.with(f.Messages, k)
			l.Text = "index ({f}): pending < {k}: leaves the flight"
			x.free(t, l)
			continue
		}
		if x.Rules.ClaimedInHand && f.Phase == Waiting {
			t := *s
			t.Execs[e].Phase, t.Execs[e].Key, t.Execs[e].Hand = HasRead, k, s.Row.Claimed
			l.Text = "index ({f}): reads the row before it claims {k}"
			x.free(t, l)
			continue
		}
		if f.Phase == Waiting || f.Key == k {
			x.claim(e, k)
		}
	}
}

func (x *step) claim(e int, k Key) {
	s, f := x.s, &x.s.Execs[e]
	rk := x.rowKey(k)
	again := s.Row.Claimed == rk
	token := f.Token
	if token == 0 {
		token = s.freshToken()
	}
	top := s.latest() + 1
	low := top
	if x.Bounds.Clocks {
		low = max(s.Row.LeaseUntil, s.Row.LastWrite) + 1
	}
	for now := low; now <= top; now++ {
		l := Label{Exec: uint8(e), Key: k, Text: "index ({f}): CLAIM {k}: applied; the request goes to the sink"}
		if again {
			l.Text = "index ({f}): CLAIM again {k}: applied; the request goes to the sink"
		}
		switch {
		case s.Row.claims(x.Rules, rk, again, true, now):
			if s.Row.Pending > rk {
				l.Text = "index ({f}): the cap is past: CLAIM {k}: applied; the request goes to the sink"
				if again {
					l.Text = "index ({f}): the cap is past: CLAIM again {k}: applied; the request goes to the sink"
				}
			}
			if now < top {
				l.Text = "index ({f}), whose clock is behind: CLAIM {k}: applied; the request goes to the sink"
			}
		case x.Rules.TokenOfFlight && s.Row.Owner == token && s.Row.Claimed == rk:
			l.Text = "index ({f}): CLAIM {k}: refused, but owner is this flight, so the claim is taken for its own; the request goes to the sink"
			t := *s
			x.take(&t, e, k, token, now)
			x.free(t, l)
			continue
		default:
			continue
		}
		x.claimLater(e, RowWrite{Kind: ClaimWrite, Key: k, Token: token, Fence: now}, again)
		t := *s
		t.Row = s.Row.claim(x.Rules, rk, again, token, now)
		x.take(&t, e, k, token, now)
		if x.Rules.ClaimedInHand {
			lost := t
			t.Execs[e].Hand = s.Row.Claimed
			if lost, ok := x.crash(lost); ok && lost.Execs[e] != t.Execs[e] {
				x.edge(lost, false, 0, Label{Exec: uint8(e), Key: k, Text: "index ({f}): CLAIM {k}: applied, answer lost, recognised by its token; claimed stays in hand as it was read; the request goes to the sink"})
			}
		}
		if x.Rules.DeleteBeforeWrite {
			b := x.remove(&t, x.with(f.Messages, k))
			l.Text = "index ({f}): CLAIM {k}: applied; deletes the message; the request goes to the sink"
			x.edge(t, true, b, l)
			continue
		}
		x.free(t, l)
	}
}

// claimLater is a CLAIM without an answer, whose invocation is gone when it is applied.
func (x *step) claimLater(e int, w RowWrite, again bool) {
	t, ok := x.crash(*x.s)
	if !ok || !x.Bounds.Clocks {
		return
	}
	if again {
		w.Kind = ClaimAgainWrite
	}
	if t.addWrite(w) {
		x.edge(t, false, 0, Label{Exec: uint8(e), Key: w.Key, Text: "index ({f}): crash; CLAIM {k} is still on its way"})
	}
}

func (x *step) take(t *State, e int, k Key, token Token, now Clock) {
	f := &t.Execs[e]
	f.Phase, f.Key, f.Token, f.Fence = Sent, k, token, now
	if x.Bounds.MaxRefusals > 0 {
		f.Refusals = t.Row.Refusals
	}
	if x.Bounds.Sink == Plain && !x.Bounds.Clocks || x.Rules.UpstreamVersion {
		f.Fence = 0
	}
}

// rest ends the claim of an invocation: the flight waits for its next turn.
func (x *step) rest(t *State, e int) {
	f := &t.Execs[e]
	f.Phase, f.Key, f.Fence, f.Hand, f.Refusals = Waiting, None, 0, None, 0
	if !x.Rules.TokenOfFlight && !x.Rules.TokenOfInvocation {
		f.Token = 0
	}
}

// finish carries out COMMIT, RELEASE or REJECT: applied or refused, lost with the invocation, or still on its way.
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
		return s.Row.release(x.Rules, w.Fence, f.Phase == Refused), true, 0
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

// deleteDead marks k as done where its letter is stored, and deletes the messages that carry nothing else.
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

// deleteHeld deletes by the handles of the manifest. A handle that SQS replaced since may be refused.
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

// lease ends a lease. With a plain sink its length covers every request made under it: that is the promise of the settings.
func (x *step) lease() {
	s := x.s
	if !s.Row.Lease {
		return
	}
	if x.Bounds.Sink == Plain {
		for _, f := range s.Execs {
			if f.Phase == Sent && f.Token == s.Row.Owner && !x.Rules.LeaseShorterThanWrite {
				return
			}
		}
		for _, r := range s.Requests {
			if r != (Request{}) && r.Token == s.Row.Owner && !x.Rules.LateRequest {
				return
			}
		}
	}
	t := *s
	t.Row.Lease = false
	x.free(t, Label{Text: "the lease ends"})
}
