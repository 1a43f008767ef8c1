package model

import "slices"

// send is a request that the sink has, with its sender waiting for the answer.
func (x *step) send(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	t := *x.s
	if !x.refused().Has(f.Key) {
		verdict, broken := x.write(&t, f.Key, f.Token, f.Fence)
		switch {
		case verdict:
			t.Execs[e].Phase = Applied
			l.Text = "the sink applies {k} ({f})"
			if x.Rules.DeleteBeforeCommit {
				broken |= x.remove(&t, x.with(f.Messages, f.Key))
				l.Text = "the sink applies {k} ({f}); index deletes the message"
			}
		case x.Rules.UpstreamVersion:
			t.Execs[e].Phase = Applied
			l.Text = "the sink answers 409 to {k} ({f}), which is taken for \"newer is there\""
		default:
			x.rest(&t, e)
			l.Text = "the sink answers 409 to {k} ({f}): its lease is over"
		}
		x.edge(t, true, broken, l)
	}
	if x.Bounds.Poison.Has(f.Key) || x.Bounds.Fickle.Has(f.Key) {
		t := *x.s
		t.Execs[e].Phase = DeadLettered
		t.DeadLetters[f.Key] = Parked
		l.Text = "the sink refuses {k} for good ({f}); the dead letter is stored"
		x.free(t, l)
	}
	x.refusals(e)
	x.unknown(e)
}

// refused are the versions that the sink never takes.
func (x *step) refused() KeySet { return x.Bounds.Poison | x.Bounds.Stubborn }

// refusals are definite: nothing was applied.
func (x *step) refusals(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	throttled := *x.s
	throttled.Execs[e].Phase = Throttled
	l.Text = "the sink throttles {k} ({f}): nothing was applied"
	x.fault(Throttles, throttled, l)
	stubborn := x.Bounds.Stubborn.Has(f.Key)
	t, ok := x.spend(*x.s, Refusals)
	switch {
	case stubborn:
		t = *x.s
	case !ok:
		return
	}
	var b Broken
	if t.Own[f.Key] < Key(x.Bounds.MaxRefusals) {
		t.Own[f.Key]++
	}
	if f.Refusals+1 < x.Bounds.MaxRefusals {
		t.Execs[e].Phase = Refused
		l.Text = "the sink answers an item error to {k} ({f})"
	} else {
		t.Execs[e].Phase = DeadLettered
		t.DeadLetters[f.Key] = Parked
		l.Text = "the sink answers an item error to {k} ({f}): refusals are used up; the dead letter is stored"
		if uint8(t.Own[f.Key]) < x.Bounds.MaxRefusals {
			b = EarlyDeath
		}
	}
	x.edge(t, stubborn, b, l)
}

// unknown are crashes and time-outs between the request and its answer: it was applied before, is
// lost, or still on its way.
func (x *step) unknown(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	t, ok := x.spend(*x.s, Crashes)
	if !ok {
		return
	}
	sent := t
	t = x.crashed(t, e)
	l.Text = "index ({f}): crash, or time-out; the request for {k} never arrives"
	x.edge(t, false, 0, l)
	request := Request{Key: f.Key, Token: f.Token, Fence: f.Fence}
	if add(t.Requests[:], request) {
		l.Text = "index ({f}): crash, or time-out; the request for {k} is still on its way"
		x.edge(t, false, 0, l)
	}
	if x.Rules.SecondRequest && add(sent.Requests[:], request) {
		l.Text = "index ({f}): the request for {k} times out; a second one goes out under the same claim"
		x.edge(sent, false, 0, l)
	}
}

// sinkLater applies, or loses, the requests whose sender is gone, and forgets the versions of
// deletes.
func (x *step) sinkLater() {
	for i, r := range x.s.Requests {
		if r == (Request{}) {
			continue
		}
		t := *x.s
		t.Requests[i] = Request{}
		x.free(t, Label{Key: r.Key, Text: "the late request for {k} is lost"})
		if x.refused().Has(r.Key) {
			continue
		}
		if applied, broken := x.write(&t, r.Key, r.Token, r.Fence); applied {
			x.edge(t, true, broken, Label{Key: r.Key, Text: "the late request for {k} arrives: the sink applies it"})
		}
	}
	x.forget()
}

// forget is OpenSearch's index.gc_deletes. Older requests have arrived by then.
func (x *step) forget() {
	s := x.s
	if x.Bounds.Sink != Forgetful || s.Sink.Fence == 0 || !x.Bounds.Deletes.Has(s.Sink.Content) {
		return
	}
	older := func(r Request) bool { return r != (Request{}) && r.Fence < s.Sink.Fence }
	if !x.Rules.LateRequest && (slices.ContainsFunc(s.Requests[:], older) ||
		slices.ContainsFunc(s.Execs[:], func(f Exec) bool { return f.Phase == Sent && f.Fence < s.Sink.Fence })) {
		return
	}
	t := *s
	t.Sink.Fence = 0
	x.free(t, Label{Key: s.Sink.Content, Text: "the sink forgets the version of the delete {k}"})
}

// write is the sink's own decision: external_gte, where it has versions.
func (x *step) write(t *State, k Key, token Token, fence Clock) (applied bool, b Broken) {
	if x.Rules.UpstreamVersion {
		fence = upstream[k]
	}
	if x.Bounds.Sink != Plain {
		if fence < t.Sink.Fence {
			if t.Row.Lease && t.Row.Owner == token && !x.Rules.UpstreamVersion && x.Bounds.Budget[Outages] == 0 {
				b = SinkNewer
			}
			return false, b
		}
		t.Sink.Fence = fence
	} else if !t.Row.Lease || t.Row.Owner != token {
		b |= TwoWriters
	}
	if k < t.Sink.Content {
		b |= WentBack
		if x.Bounds.Deletes.Has(t.Sink.Content) && !x.Bounds.Deletes.Has(k) {
			b |= Resurrected
		}
	}
	t.Sink.Content = k
	return true, b
}

// upstream are the source's own numbers where its counter began anew: version 1 of epoch 2 is newer
// than version 3 of epoch 1.
var upstream = [MaxKey + 1]Clock{0, 3, 1, 2}
