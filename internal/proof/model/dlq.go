package model

// dead is the dead-letter function: design section 10.
func (x *step) dead() {
	s := x.s
	if s.Parker.Message != 0 {
		x.park()
		return
	}
	for i, p := range s.Messages {
		if p != DeadQueue {
			continue
		}
		only := Set(1) << i
		k := x.top(only)
		rk := x.rowKey(k)
		t := *s
		l := Label{Key: k, Messages: only}
		switch {
		case s.Row.Committed >= rk:
			b := x.remove(&t, only)
			l.Text = "dlq: {m} is superseded: dropped"
			x.edge(t, true, b, l)
		case s.Row.Lease:
			continue
		case s.Row.Claimed < rk:
			t.Messages[i] = Queued
			l.Text = "dlq: {m} never ran: returned"
			x.free(t, l)
		default:
			t.Letters[k] = Parked
			t.Parker.Message = only
			l.Text = "dlq: the dead letter of {m} is stored"
			x.free(t, l)
		}
	}
}

// park is PARK after a dead letter was stored, by dlq or by receive.
func (x *step) park() {
	s := x.s
	only := s.Parker.Message
	k := x.top(only)
	rk := x.rowKey(k)
	who := 0
	if s.Parker.Receive {
		who = 1
	}
	l := Label{Key: k, Messages: only}
	t := *s
	t.Parker = Parker{}
	if t, ok := x.crash(t); ok {
		l.Text = [2]string{"dlq: crash before PARK {k}", "receive: crash before PARK {k}"}[who]
		x.edge(t, false, 0, l)
	}
	done := func(r Row, texts [2]string) {
		t := t
		t.Row = r
		b := x.remove(&t, only)
		l.Text = texts[who]
		if r.Dead == rk {
			x.stale(&t)
		}
		x.edge(t, true, b, l)
	}
	switch {
	case s.Row.parks(rk, false):
		done(s.Row.park(x.Rules, rk, false), [2]string{
			"dlq: PARK {k}: applied; deletes {m}",
			"receive: PARK {k}: applied; {m} acknowledged",
		})
	case s.Row.parks(rk, true) && !x.Rules.NoSecondPark:
		done(s.Row.park(x.Rules, rk, true), [2]string{
			"dlq: PARK {k}, form two: applied; deletes {m}",
			"receive: PARK {k}, form two: applied; {m} acknowledged",
		})
	case s.Row.Committed >= rk:
		done(s.Row, [2]string{
			"dlq: PARK {k}: refused, committed >= {k}; deletes {m}",
			"receive: PARK {k}: refused, committed >= {k}; {m} acknowledged",
		})
	case s.Row.Lease && x.Rules.ParkIgnoresLease:
		done(s.Row, [2]string{
			"dlq: PARK {k}: refused by a live lease; deletes {m} all the same",
			"receive: PARK {k}: refused by a live lease; {m} acknowledged all the same",
		})
	case s.Row.Lease:
		l.Text = [2]string{
			"dlq: PARK {k}: refused by a live lease; {m} goes back",
			"receive: PARK {k}: refused by a live lease; {m} is held",
		}[who]
		x.free(t, l)
	case s.Row.Pending > rk:
		done(s.Row, [2]string{
			"dlq: PARK {k}: refused, a newer version is pending; deletes {m}",
			"receive: PARK {k}: refused, a newer version is pending; {m} acknowledged",
		})
	default:
		l.Text = [2]string{"dlq: PARK {k}: refused; {m} goes back", "receive: PARK {k}: refused; {m} is held"}[who]
		x.free(t, l)
	}
}

// stale remembers what an eventually consistent read may still show after dead changed.
func (x *step) stale(t *State) {
	if x.s.Left.Stale > 0 && x.s.Row.Dead != None {
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
	held := s.held()
	live := x.live(s)
	for k := Key(1); k <= MaxKey; k++ {
		rk := x.rowKey(k)
		blocked := s.Letters[k] != NoLetter && s.Row.Claimed == rk && !live.Has(k)
		if s.Letters[k] == NoLetter || !s.Row.redrives(x.Rules, rk) || !blocked && s.Left.Redrives == 0 {
			continue
		}
		if _, ok := x.freeMessage(held, k); !ok {
			continue
		}
		t := *s
		l := Label{Key: k, Text: "redrive {k}: takes `dead` away"}
		if blocked {
			l.Text = "{k} may be in the sink and keeps older ones out: it is redriven: takes `dead` away"
		} else {
			t.Left.Redrives--
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
	if t, ok := x.crash(t); ok {
		x.edge(t, false, 0, Label{Key: k, Text: "redrive {k}: crash before sending"})
	}
	i, ok := x.freeMessage(s.held(), k)
	if !ok {
		x.free(t, Label{Key: k, Text: "redrive {k}: stops, the dead letter stays parked"})
		return
	}
	only := Set(1) << i
	t.Messages[i] = Queued
	t.Young &^= only
	if x.Rules.RedriveHidesAge {
		t.Young |= only
	}
	t.Letters[k] = Redriven
	l := Label{Key: k, Messages: only, Text: "redrive {k}: sends {m}; the dead letter stays, as redriven"}
	if x.Rules.RedriveDeletesLetter {
		t.Letters[k] = NoLetter
		l.Text = "redrive {k}: sends {m}; the dead letter is deleted"
	}
	x.free(t, l)
}

// freeMessage is a message that carries k alone and that nobody knows.
func (x *step) freeMessage(held Set, k Key) (int, bool) {
	for i, msg := range x.Bounds.Messages {
		if msg.Keys == Keys(k) && !msg.Other && x.s.Messages[i] == Gone && !held.Has(i) {
			return i, true
		}
	}
	return 0, false
}

// prune collects the row. Age is not modelled as time: that a row is older than rows are kept means
// that every version it has heard of is, too, wherever its messages and dead letters are.
func (x *step) prune() {
	s := x.s
	if s.Collect {
		t := *s
		t.Collect = false
		t.Row = Row{}
		t.StaleDead = None
		x.free(t, Label{Text: "prune deletes the row without a condition"})
	}
	if s.Left.Ages > 0 {
		for k := s.Aged + 1; k <= MaxKey; k++ {
			t := *s
			t.Left.Ages--
			t.Aged = k
			x.edge(t, false, 0, Label{Key: k, Text: "{k} is now older than rows are kept"})
		}
	}
	if s.Left.Prunes == 0 || !s.Row.collectable() {
		return
	}
	t := *s
	t.Left.Prunes--
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
	for i, p := range s.Messages {
		if p != Gone && x.top(1<<i) <= aged && !x.Bounds.Latecomers {
			return false
		}
	}
	if s.Redrive != None || s.Parker.Message != 0 || s.Requests != [maxRequests]Request{} ||
		s.Writes != [maxWrites]RowWrite{} {
		return false
	}
	return s.Execs == [maxExecs]Exec{} && s.Receivers == [maxReceivers]Receiver{}
}
