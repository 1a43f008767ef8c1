package model

// dead is the dead-letter function: design section 10.
func (x *step) dead() {
	s := x.s
	if s.Parker.Message != 0 {
		x.park()
		return
	}
	for i := range s.at(DeadQueue).All() {
		only := Set(1) << i
		k := x.keys(only).Newest()
		rk := x.rowKey(k)
		t := *s
		l := Label{Key: k, Messages: only}
		var broken Broken
		switch {
		case s.Row.Committed >= rk:
			broken = x.remove(&t, only)
			l.Text = "dlq: {m} is superseded: dropped"
		case s.Row.Lease:
			continue
		case s.Row.Claimed < rk:
			t.Messages[i] = Queued
			l.Text = "dlq: {m} never ran: returned"
		default:
			t.DeadLetters[k] = Parked
			t.Parker.Message = only
			l.Text = "dlq: the dead letter of {m} is stored"
		}
		x.edge(t, true, broken, l)
	}
}

// park is PARK after a dead letter was stored, by dlq or by receive.
func (x *step) park() {
	s := x.s
	only := s.Parker.Message
	k := x.keys(only).Newest()
	rk := x.rowKey(k)
	by, goes, stays := "dlq", "; deletes {m}", "; {m} goes back"
	if s.Parker.Receive {
		by, goes, stays = "receive", "; {m} acknowledged", "; {m} is held"
	}
	l := Label{Key: k, Messages: only, By: by, Text: ": crash before PARK {k}"}
	t := *s
	t.Parker = Parker{}
	x.fault(Crashes, t, l)
	l.Then = goes
	switch {
	case s.Row.parks(rk, false):
		t.Row = s.Row.park(x.Rules, rk, false)
		l.Text = ": PARK {k}: applied"
	case s.Row.parks(rk, true) && !x.Rules.NoSecondPark:
		t.Row = s.Row.park(x.Rules, rk, true)
		l.Text = ": PARK {k}, form two: applied"
	case s.Row.Committed >= rk:
		l.Text = ": PARK {k}: refused, committed >= {k}"
	case s.Row.Pending > rk: // whoever has the lease: nothing waits for this version, and its dead letter is stored
		l.Text = ": PARK {k}: refused, a newer version is pending"
	case s.Row.Lease && x.Rules.ParkIgnoresLease:
		l.Text, l.Then = ": PARK {k}: refused by a live lease", goes+" all the same"
	case s.Row.Lease:
		l.Text, l.Then = ": PARK {k}: refused by a live lease", stays
		x.free(t, l)
		return
	default:
		l.Text, l.Then = ": PARK {k}: refused", stays
		x.free(t, l)
		return
	}
	broken := x.remove(&t, only)
	if t.Row.Dead == rk {
		x.stale(&t)
	}
	x.edge(t, true, broken, l)
}

// stale remembers what an eventually consistent read may still show after dead changed.
func (x *step) stale(t *State) {
	if x.s.Left[Stale] > 0 && x.s.Row.Dead != None {
		t.StaleDead = x.s.Row.Dead
	}
}

// operator is `lull dead redrive`, by hand within the budget, and by itself where a version that
// may be in the sink keeps an older one out.
func (x *step) operator() {
	s := x.s
	if s.Redrive != None {
		x.redriveSend()
		return
	}
	live := x.live(s)
	for k := Key(1); k <= MaxKey; k++ {
		rk := x.rowKey(k)
		t, ok := x.spend(*s, Redrives)
		l := Label{Key: k, Text: "redrive {k}: takes `dead` away"}
		blocked := s.DeadLetters[k] != NoDeadLetter && s.Row.Claimed == rk && !live.Has(k)
		if blocked {
			t, ok = *s, true
			l.Text = "{k} may be in the sink and keeps older ones out: it is redriven: takes `dead` away"
		}
		if !ok || s.DeadLetters[k] == NoDeadLetter || !s.Row.redrives(x.Rules, rk) || x.unseen(k) == 0 {
			continue
		}
		t.Row = s.Row.redrive(rk)
		t.Redrive = k
		if t.Row.Dead != s.Row.Dead {
			x.stale(&t)
		}
		x.edge(t, blocked, 0, l)
	}
}

func (x *step) redriveSend() {
	s := x.s
	k := s.Redrive
	t := *s
	t.Redrive = None
	x.fault(Crashes, t, Label{Key: k, Text: "redrive {k}: crash before sending"})
	free := x.unseen(k)
	if free == 0 {
		x.free(t, Label{Key: k, Text: "redrive {k}: stops, the dead letter stays parked"})
		return
	}
	only := free & -free
	for i := range only.All() {
		t.Messages[i] = Queued
	}
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
	x.free(t, l)
}

// unseen are the messages that carry k alone and that nobody knows.
func (x *step) unseen(k Key) Set {
	return x.alone(Set(1<<len(x.Bounds.Messages)-1)&x.s.at(Gone)&^x.s.held(), k)
}

// prune collects the row. Age is not modelled as time. When a row is older than rows are kept, so
// is every version that it has heard of, wherever its messages and dead letters are.
func (x *step) prune() {
	s := x.s
	if s.Collect {
		t := *s
		t.Collect = false
		t.Row = Row{}
		t.StaleDead = None
		x.free(t, Label{Text: "prune deletes the row without a condition"})
	}
	for k := s.Aged + 1; k <= MaxKey; k++ {
		t := *s
		t.Aged = k
		x.fault(Ages, t, Label{Key: k, Text: "{k} is now older than rows are kept"})
	}
	t, ok := x.spend(*s, Prunes)
	if !ok || !s.Row.collectable() {
		return
	}
	if x.Rules.PruneByState {
		t.Row, t.StaleDead = Row{}, None
		x.edge(t, false, 0, Label{Text: "prune: the row is settled: deleted, whatever its age"})
		return
	}
	t.Aged = max(s.Aged, s.Row.Committed, s.Row.Claimed, s.Row.Dead)
	if !x.quiet(t.Aged) {
		return
	}
	if x.Rules.PruneUnguarded {
		t.Collect = true
		x.edge(t, false, 0, Label{Text: "row retention passes: prune reads the row"})
		return
	}
	t.Row, t.StaleDead = Row{}, None
	x.edge(t, false, 0, Label{Text: "row retention passes: prune deletes the row"})
}

// quiet reports that nothing short-lived is under way: rows are kept for weeks, a flight lives for
// twelve hours at most and the queue keeps a message for a week.
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
