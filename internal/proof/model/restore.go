package model

import "slices"

// restore is the table restored to an earlier image of the row, and `lull reconcile` after it.
// Requests to the sink stay on their way.
func (x *step) restore() {
	s := x.s
	if s.Left[Restores] > 0 && !s.Row.Lease && s.Row.Exists && s.Row != s.Backup {
		t := *s
		t.Backup = s.Row
		x.edge(t, false, 0, Label{Text: "a backup of the table is taken"})
	}
	t := *s
	if t.Row = s.Backup; !x.Rules.ContentRestored {
		t.Row.Content, t.Row.Bytes = None, None // the runbook raises the generation first
	}
	t.Writes = [maxWrites]RowWrite{} // the table that they were sent to is gone
	t.Restored = true
	l := Label{Text: "the table is restored from the backup"}
	if x.Bounds.Stopped {
		l.Text += "; the functions are stopped"
		for e := range t.Execs {
			if f := s.Execs[e]; f.Phase == Sent {
				add(t.Requests[:], Request{Key: f.Key, Token: f.Token, Fence: f.Fence})
			}
			t.Execs[e] = Exec{}
		}
		t.Receivers, t.Parker, t.Redrive = [maxReceivers]Receiver{}, Parker{}, None
	}
	x.fault(Restores, t, l)
	if s.Restored {
		x.reconcile()
	}
}

// reconcile reads the row, then the sink's copy, then decides.
func (x *step) reconcile() {
	s := x.s
	t := *s
	t.Look = Look{}
	l := Label{Key: s.Sink.Content}
	switch s.Look.Phase {
	case NotLooking:
		t.Look = Look{Phase: LookedAtRow, Row: s.Row}
		l.Text = "reconcile reads the row"
		x.free(t, l)
		return
	case LookedAtRow:
		if s.Row.Lease && s.Row == s.Look.Row || x.writing() && !x.Rules.RaiseUnsettled {
			l.Text = "reconcile: somebody may still write: later"
			x.free(t, l)
			return
		}
		t.Look = Look{Phase: LookedAtSink, Row: s.Look.Row, Copy: s.Sink}
		l.Text = "reconcile reads {k} in the sink"
		x.free(t, l)
		return
	}
	look := s.Look
	l.Key = look.Copy.Content
	var b Broken
	switch {
	case x.Rules.NoRaise:
		t.Restored = false
		l.Text = "nobody compares the row with the sink"
	case look.Row.Committed >= look.Copy.Content:
		t.Restored = false
		l.Text = "reconcile: the row knows {k}"
	case s.Row.raises(x.Rules, look.Row, look.Copy):
		if s.Sink.Content < look.Copy.Content {
			b = FalseRaise
		}
		t.Row, t.Restored = s.Row.raise(look.Row, look.Copy), false
		l.Text = "reconcile: RAISE {k}: applied"
	default:
		l.Text = "reconcile: RAISE {k}: refused"
	}
	if !t.Restored && !x.Bounds.Stopped {
		l.Then = x.republish(&t)
	}
	x.edge(t, true, b, l)
}

// republish sends the newest version once more, as the runbook's page asks for: while the table was
// behind, an older one may have gone over it.
func (x *step) republish(t *State) string {
	for k := MaxKey; k > None; k-- {
		if x.sent(k) && k != x.Bounds.Absurd {
			only := x.unseen(k)
			for i := range (only & -only).All() {
				t.Messages[i] = Queued
			}
			break
		}
	}
	return "; upstream sends the newest version again"
}

// reset is `lull reset` of a document whose committed version is absurd. The promises begin anew
// with what was committed before it: the sink's content counts as nothing, whatever its fence. As
// the command asks for, the newest good version is sent again.
func (x *step) reset() {
	s := x.s
	t := *s
	l := Label{Key: x.Bounds.Absurd}
	if s.Seen == None {
		if s.Row.Committed == x.Bounds.Absurd && x.Bounds.Absurd != None {
			t.Seen = x.Bounds.Absurd
			l.Text = "an operator sees that {k} is committed, which is absurd"
			x.fault(Resets, t, l)
		}
		return
	}
	t.Seen = None
	if !s.Row.resets(x.Rules, s.Seen) {
		l.Text = "RESET: refused"
		x.free(t, l)
		return
	}
	t.Row = s.Row.reset(x.Rules, None)
	l.Text = "RESET to what was before {k}: applied"
	if s.Row.Committed == s.Seen {
		t.Forgotten = s.Seen
	}
	if s.Sink.Content == s.Seen {
		t.Sink.Content = None
	}
	l.Then = x.republish(&t)
	x.edge(t, true, 0, l)
}

// writing reports whether a request may still be applied that was made under a lease which had
// ended when the row was read. Waiting for quiet excludes that; a later claim changes the row.
func (x *step) writing() bool {
	return x.s.Requests != [maxRequests]Request{} || slices.ContainsFunc(x.s.Execs[:], func(f Exec) bool {
		return f.Phase == Sent && (f.Token != x.s.Row.Owner || f.Token == x.s.Look.Row.Owner)
	})
}
