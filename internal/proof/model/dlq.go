// SPDX-License-Identifier: Apache-2.0

package model

// deadLetters is the dead-letter function (design section 10).
func (x *step) deadLetters() {
	s := x.s
	if s.Parker.Message != 0 {
		x.park()
		return
	}
	for i := range s.messagesAt(DeadQueue).All() {
		only := Set(1) << i
		k := x.keys(only).Newest()
		rk := x.rowKey(k)
		l := Label{Key: k, Messages: only}
		switch {
		case s.Row.Committed >= rk || s.Row.Taken.Has(rk):
			x.remove(x.addFree(*s, l.withText("dlq: {m} is superseded: dropped")), only)
		case s.Row.Lease:
		case s.Row.Claimed < rk:
			x.addFree(*s, l.withText("dlq: {m} never ran: returned")).To.Messages[i] = Queued
		default:
			t := x.addFree(*s, l.withText("dlq: the dead letter of {m} is stored"))
			t.To.DeadLetters[k] = Parked
			t.To.Parker.Message = only
		}
	}
}

// park is PARK after dlq or receive stored a dead letter.
func (x *step) park() {
	s := x.s
	only := s.Parker.Message
	k := x.keys(only).Newest()
	rk := x.rowKey(k)
	by, goes, stays := "dlq", "; deletes {m}", "; {m} goes back"
	if s.Parker.Receive {
		by, goes, stays = "receive", "; {m} acknowledged", "; {m} is held"
	}
	rest := *s
	rest.Parker = Parker{}
	x.addFault(Crashes, rest, Label{Key: k, Messages: only, By: by, Text: ": crash before PARK {k}"})
	t := x.addFree(rest, Label{Key: k, Messages: only, By: by, Then: goes})
	row, l := &t.To.Row, &t.Label
	switch {
	case s.Row.parks(rk, false):
		*row = s.Row.park(x.Rules, rk, false)
		l.Text = ": PARK {k}: applied"
	case s.Row.parks(rk, true) && !x.Rules.NoSecondPark:
		*row = s.Row.park(x.Rules, rk, true)
		l.Text = ": PARK {k}, form two: applied"
	case s.Row.Committed >= rk || s.Row.Taken.Has(rk):
		l.Text = ": PARK {k}: refused, committed >= {k}"
	case s.Row.Pending > rk: // whoever has the lease, nothing waits for this version, and its dead letter is stored
		l.Text = ": PARK {k}: refused, a newer version is pending"
	case s.Row.Lease && x.Rules.ParkIgnoresLease:
		l.Text, l.Then = ": PARK {k}: refused by a live lease", goes+" all the same"
	case s.Row.Lease:
		l.Text, l.Then = ": PARK {k}: refused by a live lease", stays
		return
	default:
		l.Text, l.Then = ": PARK {k}: refused", stays
		return
	}
	x.remove(t, only)
	if row.Dead == rk {
		x.rememberDead(t)
	}
}

// rememberDead keeps the old value of dead, which an eventually consistent read may still show.
func (x *step) rememberDead(t *Edge[State]) {
	if x.s.Left[Stale] > 0 && x.s.Row.Dead != None {
		t.To.StaleDead = x.s.Row.Dead
	}
}

// operator is `lull dead redrive`. An operator runs it within the budget. If a version that may be
// in the sink keeps an older version out, its redrive costs no budget.
func (x *step) operator() {
	s := x.s
	if s.Redrive != None {
		x.redriveSend()
		return
	}
	live := x.live(s)
	for k := Key(1); k <= MaxKey; k++ {
		rk := x.rowKey(k)
		if s.DeadLetters[k] == NoDeadLetter || s.Row.Taken.Has(rk) || !s.Row.redrives(x.Rules, rk) || x.unseen(k) == 0 {
			continue
		}
		l := Label{Key: k, Text: "redrive {k}: takes `dead` away"}
		blocked := s.Row.Claimed == rk && !live.Has(k)
		if blocked {
			l.Text = "{k} may be in the sink and keeps older ones out: it is redriven: takes `dead` away"
		}
		t := x.addFreeIf(blocked, Redrives, *s, l)
		t.To.Row, t.To.Redrive = s.Row.redrive(rk), k
		if t.To.Row.Dead != s.Row.Dead {
			x.rememberDead(t)
		}
	}
}

func (x *step) redriveSend() {
	t := *x.s
	k, only := t.Redrive, x.unseen(t.Redrive)
	t.Redrive = None
	x.addFault(Crashes, t, Label{Key: k, Text: "redrive {k}: crash before sending"})
	if only == 0 {
		x.addFree(t, Label{Key: k, Text: "redrive {k}: stops, the dead letter stays parked"})
		return
	}
	t.move(only, Queued)
	t.Young &^= only
	if x.Rules.RedriveHidesAge {
		t.Young |= only
	}
	t.DeadLetters[k] = Redriven
	l := Label{Key: k, Messages: only, Text: "redrive {k}: sends {m}; the dead letter stays, as redriven"}
	if x.Rules.RedriveDeletesLetter {
		t.DeadLetters[k] = NoDeadLetter
		l.Text = "redrive {k}: sends {m}; the dead letter is deleted"
	}
	x.addFree(t, l)
}

// unseen returns the first message that carries only k and that no process knows.
func (x *step) unseen(k Key) Set {
	set := x.carryingOnly(Set(1<<len(x.Bounds.Messages)-1)&x.s.messagesAt(Gone)&^x.s.held(), k)
	return set & -set
}

// prune deletes the row. Age is not modelled as time. If a row is older than its retention, all
// versions that the row knew are too old as well. Messages and dead letters of these versions may
// still exist anywhere.
func (x *step) prune() {
	s := x.s
	if s.Collect {
		x.addFree(*s, Label{Text: "prune deletes the row without a condition"}).To.collect()
	}
	for k := s.Aged + 1; k <= MaxKey; k++ {
		x.addFault(Ages, *s, Label{Key: k, Text: "{k} is now older than rows are kept"}).To.Aged = k
	}
	t := *s
	t.Aged = max(s.Aged, s.Row.Committed, s.Row.Claimed, s.Row.Dead)
	switch {
	case !s.Row.collectable():
	case x.Rules.PruneByState:
		x.addFault(Prunes, *s, Label{Text: "prune: the row is settled: deleted, whatever its age"}).To.collect()
	case !x.quiet(t.Aged):
	case x.Rules.PruneUnguarded:
		x.addFault(Prunes, t, Label{Text: "row retention passes: prune reads the row"}).To.Collect = true
	default:
		x.addFault(Prunes, t, Label{Text: "row retention passes: prune deletes the row"}).To.collect()
	}
}

// collect deletes the row of the document.
func (s *State) collect() { s.Row, s.StaleDead, s.Collect = Row{}, None, false }

// quiet reports whether the retention of rows may pass. Rows are kept for weeks, a flight lives for
// twelve hours at most, and the queue keeps a message for a week. So no flight, no request and no
// write may be under way, and no message whose newest version is aged or older.
func (x *step) quiet(aged Key) bool {
	s := x.s
	for i := range s.notGone().All() {
		if x.keys(1<<i).Newest() <= aged && !x.Bounds.Latecomers {
			return false
		}
	}
	return s.Redrive == None && s.Parker.Message == 0 && s.Requests == [maxRequests]Request{} &&
		s.Writes == [maxWrites]RowWrite{} && s.Execs == [maxExecs]Exec{} && s.Receivers == [maxReceivers]Receiver{}
}
