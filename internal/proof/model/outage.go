package model

import "slices"

// outage is the table unreachable with the setting `open`, an opt-in that suspends the first
// promise while it lasts: written at once by a flight of its own, never acknowledged, audited.
func (x *step) outage() {
	s := x.s
	if !s.Down {
		x.fault(Outages, *s, Label{Text: "the table is unreachable"}).To.Down = true
	}
	for i, o := range s.Opens {
		if o != (Open{}) {
			x.openFlight(i)
		}
	}
	if !s.Down {
		return
	}
	x.free(*s, Label{Text: "the table is back"}).To.Down = false
	for i := range s.at(Queued).All() {
		only := Set(1) << i
		t := *s
		l := Label{Key: x.keys(only).Newest(), Messages: only}
		if !add(t.Opens[:], Open{Key: l.Key, Phase: OpenStarted}) {
			continue
		}
		started := x.free(t, l.says("receive {m}: starts an open flight, and keeps the message"))
		if x.Rules.OpenAcknowledges {
			started.Label.Text = "receive {m}: starts an open flight, and acknowledges"
			x.remove(started, only)
		}
	}
}

// openFlight is the next turn of a flight that was started while the table was away. Its state is
// known only from a turn that answered. A turn that wrote and then died is tried again as the
// first.
func (x *step) openFlight(i int) {
	s, o := x.s, x.s.Opens[i]
	l := Label{Key: o.Key}
	if o.Phase != OpenLost {
		x.fault(Crashes, *s, l.says("the open flight of {k} is lost")).To.Opens[i].Phase = OpenLost
	}
	switch {
	case s.Down && o.Phase == OpenStarted:
		x.openWrite(i)
	case s.Down:
	case o.Phase == OpenStarted && x.Rules.OpenTurnForgets:
		l.Text = "the open flight of {k}: its first turn finds the table back, takes nothing for written, and ends"
		x.free(*s, l).To.Opens[i] = Open{}
	// Whoever found the table away may still be writing. Index waits for a lease, prune for longer.
	case !s.calm() && !x.Rules.ReassertAtOnce:
	case o.Phase == OpenLost:
		x.openLost(i)
	default:
		x.reassert(i)
	}
}

// openWrite is the one turn that writes, with a fence of its own, its answer lost or not.
func (x *step) openWrite(i int) {
	t := *x.s
	l := Label{Key: t.Opens[i].Key, Text: "index, open: crash, or time-out; the request for {k} is still on its way"}
	x.lateRequest(Crashes, Request{Key: l.Key, Fence: t.latest() + 1}, l)
	x.writeOpen(&t, l.Key)
	x.fault(Crashes, t, l.says("index, open: the sink applies {k}; crash before the turn answers"))
	x.free(t, l.says("index, open: the sink applies {k}")).To.Opens[i].Phase = OpenWritten
}

// writeOpen is a write that no row stands for, with the highest fence.
func (x *step) writeOpen(t *State, k Key) {
	t.Sink.Content = k
	if x.Bounds.Sink != Plain {
		t.Sink.Fence = x.s.latest() + 1
	}
}

// reassert compares what may have been written open with the row: a newer delete is written again
// from its row, a newer version of another kind is listed for resync. The rest is judged when its
// message is received again.
func (x *step) reassert(i int) {
	t := *x.s
	k, row := x.s.Opens[i].Key, &t.Row
	t.Opens[i] = Open{}
	l := Label{Key: k, Text: "after the outage: the row knows nothing newer than {k}"}
	switch {
	case x.Rules.NoReassert:
		l.Text = "after the outage nothing is asserted"
	case row.Committed <= x.rowKey(k):
	case x.Bounds.Deletes.Has(row.Committed) && row.Pending <= row.Committed:
		x.writeOpen(&t, row.Committed)
		l = Label{Key: row.Committed, Text: "after the outage: {k} is asserted from the row"}
	default:
		t.Listed = true
		l.Text = "after the outage: the document is listed for resync"
	}
	x.free(t, l)
}

// openLost is prune with the manifest of an open flight that nobody finishes, once its event is
// done: lull has no lease there to write under, so it lists the document.
func (x *step) openLost(i int) {
	t := *x.s
	k := x.s.Opens[i].Key
	if !x.done(t.Row, k) && t.DeadLetters[k] == NoDeadLetter {
		return
	}
	t.Opens[i] = Open{}
	l := Label{Key: k, Text: "prune: the open flight of {k} was lost: deletes its manifest"}
	if t.Row.Committed > x.rowKey(k) && !x.Rules.OpenLostForgets {
		t.Listed = true
		l.Text = "prune: the open flight of {k} was lost: the document is listed for resync"
	}
	x.free(t, l)
}

// sortOpens gives the open flights an order that does not depend on when they began.
func sortOpens(s *State) {
	slices.SortFunc(s.Opens[:], func(a, b Open) int { return (int(b.Key)-int(a.Key))*8 + int(b.Phase) - int(a.Phase) })
}
