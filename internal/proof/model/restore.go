// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// restore restores the table to an earlier image of the row, and runs `lull index check`
// afterwards. Requests to the sink stay on their way.
func (x *step) restore() {
	s := x.s
	if s.Left[Restores] > 0 && !s.Row.Lease && s.Row.Exists && s.Row != s.Backup {
		x.addEdge(*s, false, Label{Text: "a backup of the table is taken"}).To.Backup = s.Row
	}
	t := *s
	if t.Row = s.Backup; !x.Rules.ContentRestored {
		t.Row.Content, t.Row.Bytes = None, None // the runbook raises the generation first
	}
	t.Writes = [maxWrites]RowWrite{} // the table that the writes were sent to is gone
	t.Restored = true
	l := Label{Text: "the table is restored from the backup"}
	if x.Bounds.Stopped {
		l.Text += "; the functions are stopped"
		for e := range t.Execs {
			if f := s.Execs[e]; f.Phase == Sent {
				add(t.Requests[:], f.request())
			}
			t.Execs[e] = Exec{}
		}
		t.Receivers, t.Parker, t.Redrive = [maxReceivers]Receiver{}, Parker{}, None
	}
	x.addFault(Restores, t, l)
	if s.Restored {
		x.reconcile()
	}
}

// reconcile reads the row, then the copy in the sink, and then decides.
func (x *step) reconcile() {
	s := x.s
	look := s.Look
	t := x.addFree(*s, Label{Key: s.Sink.Content})
	next, text := &t.To, &t.Label.Text
	next.Look = Look{}
	switch {
	case look.Phase == NotLooking:
		next.Look = Look{Phase: LookedAtRow, Row: s.Row}
		*text = "reconcile reads the row"
		return
	case look.Phase == LookedAtRow && (s.Row.Lease && s.Row == look.Row || x.writing() && !x.Rules.RaiseUnsettled):
		*text = "reconcile: a writer may still be active: later"
		return
	case look.Phase == LookedAtRow:
		next.Look = Look{Phase: LookedAtSink, Row: look.Row, Copy: s.Sink}
		*text = "reconcile reads {k} in the sink"
		return
	}
	t.Label.Key, next.Restored = look.Copy.Content, false
	switch {
	case x.Rules.NoRaise:
		*text = "no program compares the row with the sink"
	case look.Row.Committed >= look.Copy.Content:
		*text = "reconcile: the row knows {k}"
	case s.Row.raises(x.Rules, look.Row, look.Copy):
		if s.Sink.Content < look.Copy.Content {
			t.Broken = FalseRaise
		}
		next.Row = s.Row.raise(look.Row, look.Copy)
		*text = "reconcile: RAISE {k}: applied"
	default:
		*text, next.Restored = "reconcile: RAISE {k}: refused", true
		return
	}
	if !x.Bounds.Stopped {
		x.republish(t)
	}
}

// republish sends the newest version once more, as the runbook says. While the restored table was
// behind, an older version may have replaced the newest one.
func (x *step) republish(t *Edge[State]) {
	newest := MaxKey
	for newest > None && (!x.sent(newest) || x.Bounds.Absurd.Has(newest)) {
		newest--
	}
	t.To.move(x.unseen(newest), Queued)
	t.Label.Then = "; upstream sends the newest version again"
}

// reset is `lull reset` of a document whose committed version is absurd, or that was reset to too
// high a version. The promises then start again from the committed version before it. The content
// of the sink no longer counts, whatever its fence. The newest good version is sent again, as the
// command asks for.
func (x *step) reset() {
	s := x.s
	if s.Seen == None {
		l := Label{Key: s.Row.Committed}
		switch {
		case s.Row.Floor:
			l.Text = "an operator sees that the document was reset to above {k}, which is too high"
		case x.Bounds.Absurd.Has(l.Key):
			l.Text = "an operator sees that {k} is committed, which is absurd"
		default:
			return
		}
		x.addFault(Resets, *s, l).To.Seen = l.Key
		return
	}
	x.resetTo(None)
	for to := Key(1); x.Bounds.Floors && to < s.Seen; to++ {
		x.resetTo(to)
	}
}

// resetTo resets the document, so that all versions above to are new again.
func (x *step) resetTo(to Key) {
	s := x.s
	t := x.addFree(*s, Label{Key: s.Seen, Text: "RESET: refused"})
	t.To.Seen = None
	if !s.Row.resets(x.Rules, s.Seen) {
		return
	}
	t.Label.Text = "RESET to the state before {k}: applied"
	if to != None {
		t.Label = Label{Key: to, Text: "RESET to above {k}: applied"}
	}
	t.To.Row = s.Row.reset(x.Rules, to)
	if s.Row.version() == s.Seen {
		t.To.Forgotten |= Keys(s.Seen)
	}
	if s.Sink.Content == s.Seen {
		t.To.Sink.Content = None
	}
	x.republish(t)
}

// writing reports whether a request may still be applied that was made under a lease which ended
// before the row was read. Waiting for the quiet time excludes such a request. A later claim would
// change the row.
func (x *step) writing() bool {
	return x.s.Requests != [maxRequests]Request{} || slices.ContainsFunc(x.s.Execs[:], func(f Exec) bool {
		return f.Phase == Sent && (f.Token != x.s.Row.Owner || f.Token == x.s.Look.Row.Owner)
	})
}
