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
	f := &x.s.Execs[e]
	l := Label{Exec: uint8(e)}
	full := x.s.freeExec() >= x.Bounds.Execs
	if f.Phase == Waiting {
		t := *x.s
		t.Execs[e] = Exec{}
		l.Text = "flight {f} is lost"
		x.fault(Crashes, t, l)
		// Only where nothing else could go on: a flight may wait for half a day.
		if full || x.Bounds.NoCap || x.blocked(x.keys(f.Messages)) {
			l.Text = "flight {f} ends before twelve hours are over"
			x.free(t, l)
		}
	}
	if f.Messages != 0 && !full {
		t := *x.s
		again := &t.Execs[t.freeExec()]
		*again = Exec{Messages: f.Messages, Done: f.Done}
		if x.Rules.TokenOfFlight {
			again.Token = f.Token
		}
		l.Text = "flight {f} runs a second time (double start, or a forked continuation)"
		x.fault(Duplicates, t, l)
	}
	if x.Rules.TokenOfInvocation && f.Phase == Waiting && f.Token != 0 {
		t := *x.s
		t.Execs[e].Token = 0
		l.Text = "index ({f}): the invocation ends"
		x.free(t, l)
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
		t := *s
		x.rest(&t, e)
		x.free(t, Label{Exec: uint8(e), Text: "index ({f}): its turn ends"})
	}
	x.deleteCommitted(e)
	for k := range (x.keys(f.Messages) &^ f.Done).Down() {
		rk := x.rowKey(k)
		l := Label{Exec: uint8(e), Key: k}
		switch {
		case s.Row.Committed >= rk:
			continue
		case s.Row.Dead == rk:
			x.deleteDead(e, k, "index ({f}): dead = {k}: its dead letter is stored: deletes {m}")
			continue
		case x.Rules.DeadFromStaleRead && s.StaleDead == rk && s.Left[Stale] > 0:
			x.deleteDead(e, k, "index ({f}): reads an older image, dead = {k}: deletes {m}")
		}
		if s.Row.Pending < rk {
			if s.Row.Dead > rk && !x.Rules.LeaveBehindDead {
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
		if x.Rules.LoadBeforeClaim && f.Phase == Waiting {
			t := *s
			t.Execs[e].Phase, t.Execs[e].Key, t.Execs[e].Body = HasRead, k, max(s.Source, k)
			l.Text = "index ({f}): loads the payload of {k} before it claims it"
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

// leave takes the messages with k out of the flight: redelivery admits k again.
func (x *step) leave(e int, k Key, text string) {
	t := *x.s
	t.Execs[e].Messages &^= x.with(t.Execs[e].Messages, k)
	x.free(t, Label{Exec: uint8(e), Key: k, Text: text})
}

// superseded is k behind a newer pending version: its messages may leave the flight, and are judged
// when they return. How often they do is left open. Nothing may depend on it, so the edge is not
// free: whatever can settle can do so without it, and without a version leaving for ever.
func (x *step) superseded(e int, k Key) {
	f := &x.s.Execs[e]
	if f.Phase != Waiting {
		return
	}
	t := *x.s
	set := x.with(f.Messages, k)
	t.Execs[e].Messages &^= set
	l := Label{Exec: uint8(e), Key: k, Messages: set, Text: "index ({f}): pending > {k}: {m} leaves the flight"}
	var b Broken
	if x.Rules.DeleteSuperseded {
		l.Text = "index ({f}): pending > {k}: deletes {m}"
		b = x.remove(&t, set)
	}
	x.edge(t, x.Rules.LeaveForEver, b, l)
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
		l := Label{Exec: uint8(e), Key: k, Text: "index ({f}): a newer version is dead: ADMIT {k}: applied"}
		if x.Bounds.LateAdmits {
			crashed := *s
			crashed.Execs[e] = Exec{}
			x.late(crashed, RowWrite{Kind: AdmitWrite, Key: k}, Label{
				Exec: uint8(e), Key: k, Text: "index ({f}): crash; ADMIT {k} is still on its way",
			})
		}
		t := *s
		t.Row = s.Row.admit(rk)
		x.free(t, l)
	}
}

// keep is KEEP: index has the bytes of k, and the row says that the sink shows the same.
func (x *step) keep(e int, k Key) {
	s, f := x.s, &x.s.Execs[e]
	rk := x.rowKey(k)
	if f.Phase != Waiting || x.Bounds.Same == 0 || x.Bounds.References || x.Bounds.Deletes.Has(k) ||
		s.Row.Pending > rk && x.Bounds.NoCap {
		return
	}
	w := RowWrite{Kind: KeepWrite, Key: k, Was: s.Row.Committed}
	row, kept, broken := x.apply(s, w, Exec{})
	if !kept {
		return
	}
	l := Label{Exec: uint8(e), Key: k, By: "index ({f}): ", Text: "the sink has these bytes already: KEEP {k}"}
	crashed := *s
	crashed.Execs[e] = Exec{}
	l.Then = ": crash; it is still on its way"
	x.late(crashed, w, l)
	t := *s
	t.Row = row
	x.kept(&t, w)
	l.Then = ": applied"
	x.edge(t, true, broken, l)
	x.copied(t, w, broken, l)
}

// kept remembers that the sink's bytes are also those of a version that was kept.
func (x *step) kept(t *State, w RowWrite) {
	if w.Kind == KeepWrite && x.holds(t.Sink, w.Key) {
		t.Sink.Kept = w.Key
	}
}

const goes = "the request goes to the sink"

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
	if x.Bounds.Ahead {
		top = low
	}
	for now := low; now <= top; now++ {
		l := Label{Exec: uint8(e), Key: k, By: "index ({f}): ", Text: "CLAIM {k}", Then: ": applied; " + goes}
		if again {
			l.Text = "CLAIM again {k}"
		}
		if x.loads(k) {
			l.Then = ": applied"
		}
		switch {
		case s.Row.claims(x.Rules, rk, again, !x.Bounds.NoCap && !x.Rules.LeaveForEver, now):
			if s.Row.Pending > rk {
				l.By = "index ({f}): the cap is past: "
			}
			if now < top {
				l.By = "index ({f}), whose clock is behind: "
			}
		case x.Rules.TokenOfFlight && s.Row.Owner == token && s.Row.Claimed == rk:
			l.Text = "CLAIM {k}"
			l.Then = ": refused, but owner is this flight, so the claim is taken for its own; " + goes
			t := *s
			x.take(&t, e, k, token, now)
			x.free(t, l)
			continue
		default:
			continue
		}
		x.claimLater(e, RowWrite{Kind: ClaimWrite, Key: k, Token: token, Fence: now}, again)
		t := *s
		t.Row = x.older(k, s.Row, x.ahead(s.Row.claim(x.Rules, rk, again, token, now), now))
		x.take(&t, e, k, token, now)
		if x.Rules.ClaimedInHand {
			lost, ok := x.spend(t, Crashes)
			t.Execs[e].Hand = s.Row.Claimed
			if ok && lost.Execs[e] != t.Execs[e] {
				x.edge(lost, false, 0, Label{
					Exec: uint8(e), Key: k, By: "index ({f}): ", Text: "CLAIM {k}",
					Then: ": applied, answer lost, recognised by its token; claimed stays in hand as it was read; " + goes,
				})
			}
		}
		if x.Rules.DeleteBeforeWrite {
			b := x.remove(&t, x.with(f.Messages, k))
			l.Then = ": applied; deletes the message; " + goes
			x.edge(t, true, b, l)
			continue
		}
		x.free(t, l)
	}
}

// loads reports whether k has a payload to load under its lease.
func (m *Model) loads(k Key) bool {
	return m.Bounds.References && !m.Rules.LoadBeforeClaim && !m.Bounds.Deletes.Has(k)
}

// older is a row after a write for k: a build without KEEP leaves content as it was.
func (x *step) older(k Key, was, r Row) Row {
	if x.Bounds.Older.Has(k) {
		r.Content, r.Bytes = was.Content, was.Bytes
	}
	return r
}

// ahead is a claim's row where fences are not times: lease_until says nothing of the fence, so
// last_write remembers it.
func (x *step) ahead(r Row, fence Clock) Row {
	if x.Bounds.Ahead {
		r.LeaseUntil = 0
		if !x.Rules.AheadForgotten {
			r.LastWrite = fence
		}
	}
	return r
}

// claimLater is a CLAIM without an answer, whose invocation is gone when it is applied.
func (x *step) claimLater(e int, w RowWrite, again bool) {
	if again {
		w.Kind = ClaimAgainWrite
	}
	if x.Bounds.Clocks {
		x.late(*x.s, w, Label{
			Exec: uint8(e), Key: w.Key, Text: "index ({f}): crash; CLAIM {k} is still on its way",
		})
	}
}

func (x *step) take(t *State, e int, k Key, token Token, now Clock) {
	f := &t.Execs[e]
	f.Phase, f.Key, f.Token, f.Fence = Sent, k, token, now
	if x.loads(k) {
		f.Phase = Claimed
	}
	if x.Bounds.Same != 0 && x.Bounds.References {
		f.Image = x.s.Row.before(x.Rules)
	}
	f.First = x.Rules.ReleaseRestores && x.s.Row.Claimed != x.rowKey(k)
	if x.Bounds.MaxRefusals > 0 {
		f.Refusals = t.Row.Refusals
	}
	if x.Bounds.Sink == Plain && !x.Bounds.Clocks || x.Rules.UpstreamVersion {
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
	t := *s
	t.Row.Lease = false
	x.free(t, Label{Text: "the lease ends"})
}
