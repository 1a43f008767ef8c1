// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// outage is an outage of the table with `tableOutage: open`, which suspends the first promise until
// the outage ends. For a message that arrives in the outage, receive starts a separate flight,
// which writes the document at once. receive does not acknowledge the message, and lull checks the
// write after the outage.
func (x *step) outage() {
	s := x.s
	if !s.Down {
		x.addFault(Outages, *s, Label{Text: "the table is unreachable"}).To.Down = true
	}
	for i, o := range s.Opens {
		if o != (Open{}) {
			x.openFlight(i)
		}
	}
	if !s.Down {
		return
	}
	x.addFree(*s, Label{Text: "the table is back"}).To.Down = false
	for i := range s.messagesAt(Queued).All() {
		only := Set(1) << i
		t := *s
		l := Label{Key: x.keys(only).Newest(), Messages: only}
		if !add(t.Opens[:], Open{Key: l.Key, Phase: OpenStarted}) {
			continue
		}
		started := x.addFree(t, l.withText("receive {m}: starts an open flight, and keeps the message"))
		if x.Rules.OpenAcknowledges {
			started.Label.Text = "receive {m}: starts an open flight, and acknowledges"
			x.remove(started, only)
		}
	}
}

// openFlight is the next turn of a flight that was started during an outage of the table. Only a
// turn that answered says whether it wrote. If a turn wrote and died, the next turn is tried like a
// first one.
func (x *step) openFlight(i int) {
	s, o := x.s, x.s.Opens[i]
	l := Label{Key: o.Key}
	if o.Phase != OpenLost {
		x.addFault(Crashes, *s, l.withText("the open flight of {k} is lost")).To.Opens[i].Phase = OpenLost
	}
	switch {
	case s.Down && o.Phase == OpenStarted:
		x.openWrite(i)
	case s.Down:
	case o.Phase == OpenStarted && x.Rules.OpenTurnForgets:
		l.Text = "the open flight of {k}: its first turn finds the table back, assumes that nothing was written, and ends"
		x.addFree(*s, l).To.Opens[i] = Open{}
	// An invocation that began during the outage may still write. index waits for the length of a
	// lease, and prune waits longer.
	case !s.calm() && !x.Rules.ReassertAtOnce:
	case o.Phase == OpenLost:
		x.openLost(i)
	default:
		x.reassert(i)
	}
}

// openWrite is the one turn that writes during an outage. The write has its own fence, and the
// answer may be lost.
func (x *step) openWrite(i int) {
	t := *x.s
	l := Label{Key: t.Opens[i].Key, Text: "index, open: crash, or time-out; the request for {k} is still on its way"}
	x.addLateRequest(Crashes, Request{Key: l.Key, Fence: t.latest() + 1}, l)
	x.writeOpen(&t, l.Key)
	x.addFault(Crashes, t, l.withText("index, open: the sink applies {k}; crash before the turn answers"))
	x.addFree(t, l.withText("index, open: the sink applies {k}")).To.Opens[i].Phase = OpenWritten
}

// writeOpen is a write with the highest fence and without a row.
func (x *step) writeOpen(t *State, k Key) {
	t.Sink.Content = k
	if x.Bounds.Sink != Plain {
		t.Sink.Fence = x.s.latest() + 1
	}
}

// reassert compares an outage write with the row. If the row has a newer delete, the delete is
// written again. If the row has another newer version, the document is listed for resync. If the
// row has nothing newer, the next delivery of the message decides.
func (x *step) reassert(i int) {
	t := *x.s
	k, row := x.s.Opens[i].Key, &t.Row
	t.Opens[i] = Open{}
	l := Label{Key: k, Text: "after the outage: the row knows nothing newer than {k}"}
	switch {
	case x.Rules.NoReassert:
		l.Text = "after the outage nothing is written again"
	case row.Committed <= x.rowKey(k):
	case x.Bounds.Deletes.Has(row.Committed) && row.Pending <= row.Committed:
		x.writeOpen(&t, row.Committed)
		l = Label{Key: row.Committed, Text: "after the outage: {k} is written again from the row"}
	default:
		t.Listed = true
		l.Text = "after the outage: the document is listed for resync"
	}
	x.addFree(t, l)
}

// openLost is prune with the manifest of a lost open flight whose event is done. prune has no
// lease, so it cannot write the document. If the row has a newer version, prune lists the document
// for resync.
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
	x.addFree(t, l)
}

// sortOpens orders the open flights independently of the time at which they began.
func sortOpens(s *State) {
	slices.SortFunc(s.Opens[:], func(a, b Open) int { return (int(b.Key)-int(a.Key))*8 + int(b.Phase) - int(a.Phase) })
}
