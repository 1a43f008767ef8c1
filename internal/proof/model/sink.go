package model

import "slices"

// send is a request that the sink has, with its sender waiting for the answer.
func (x *step) send(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	t := *x.s
	if !x.refused().Has(f.Key) {
		verdict, broken := x.write(&t, Request{f.Key, f.Token, f.Fence, f.Body})
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
	x.copies(e)
	x.unknown(e)
}

// copies is the question whose fault a refusal is. index writes the sink's document once more,
// under the lease of the refused one: as it is there, whichever version that is, and with the fence
// that it has there. With an answer nothing has changed. Without one the copy may still be on its
// way, and the lease stays.
func (x *step) copies(e int) {
	f, held := x.s.Execs[e], x.s.Sink
	if !(x.refused() | x.Bounds.Fickle).Has(f.Key) || held.Content == None || x.gone(held) {
		return
	}
	t, ok := x.spend(*x.s, Crashes)
	request := Request{held.Content, f.Token, held.Fence, held.Body}
	if x.Rules.CopyUnderTheClaim {
		request.Fence = f.Fence
	}
	if !ok || !add(t.Requests[:], request) {
		return
	}
	l := Label{Exec: uint8(e), Key: held.Content}
	if x.Rules.CopyIsReleased {
		released := t
		released.Execs[e].Phase = Throttled
		l.Text = "index ({f}): asks with a copy of {k}, which has no answer: gives the lease back"
		x.edge(released, false, 0, l)
	}
	l.Text = "index ({f}): asks with a copy of {k}: crash, or time-out; the copy is still on its way"
	x.edge(x.crashed(t, e), false, 0, l)
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

// samples are copies of the document that are written for another one's sake, without its lease:
// only where the sink has versions. Nobody waits for them.
func (x *step) samples() {
	held := x.s.Sink
	if x.Bounds.Sink == Plain || held.Content == None || x.gone(held) {
		return
	}
	request, t := Request{Key: held.Content, Fence: held.Fence, Body: held.Body}, *x.s
	if x.Rules.SampleIsNew {
		request.Fence = x.s.latest() + 1
	}
	if add(t.Requests[:], request) {
		x.fault(Samples, t, Label{Key: held.Content, Text: "a copy of {k} goes to the sink, for another document's sake"})
	}
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
	request := Request{f.Key, f.Token, f.Fence, f.Body}
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
		if applied, broken := x.write(&t, r); applied {
			x.edge(t, true, broken, Label{Key: r.Key, Text: "the late request for {k} arrives: the sink applies it"})
		}
	}
	x.samples()
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
func (x *step) write(t *State, r Request) (applied bool, b Broken) {
	k, token, fence := r.Key, r.Token, r.Fence
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
	if k < t.Sink.shows() && k != t.Sink.Content {
		b |= WentBack
		if x.Bounds.Deletes.Has(t.Sink.Content) && !x.Bounds.Deletes.Has(k) {
			b |= Resurrected
		}
	}
	if r.Body < t.Sink.Body && !x.same(r.Body, t.Sink.Body) {
		b |= BodyBack
	}
	if k != t.Sink.Content {
		t.Sink.Kept = None
	}
	t.Sink.Content, t.Sink.Body = k, r.Body
	return true, b
}

// upstream are the source's own numbers where its counter began anew: version 1 of epoch 2 is newer
// than version 3 of epoch 1.
var upstream = [MaxKey + 1]Clock{0, 3, 1, 2}

// source changes what references show: to each version, one after the other, whenever it likes. Who
// holds an event knows that the source got that far.
func (x *step) source() {
	if newest := x.keys(1<<len(x.Bounds.Messages) - 1).Newest(); x.Bounds.References && x.s.Source < newest {
		t := *x.s
		t.Source++
		x.free(t, Label{Key: t.Source, Text: "the source changes to {k}"})
	}
}

// loaded is what follows where the source, or a replica of it, shows a state. What is older than
// the event is given back. So is what is not there: a delete, or a replica that lags, may be the
// reason. It counts once the source has had time to show the event's own state: the settings
// promise that.
func (x *step) loaded(t State, e int, shown Key, l Label) {
	f := &t.Execs[e]
	nothing := shown == None || x.Bounds.Gone.Has(shown)
	taken := shown >= f.Key || x.Rules.StaleTaken && !nothing ||
		x.Rules.StaleIfNewer && !nothing && shown > t.Row.Committed || x.Rules.MissingDeletes && nothing
	text := "index ({f}): the source shows "
	switch {
	case nothing && taken:
		text += "nothing: {k} becomes a delete, which goes to the sink"
	case nothing:
		text += "nothing yet of {k}, which waits"
	case shown == f.Key && taken:
		text = "index ({f}): loads the payload of {k}; " + goes
	case taken:
		text += x.version(shown) + " for {k}; " + goes
	default:
		text += x.version(shown) + ", which is older than {k}"
	}
	l.Text = text
	switch f.Phase, f.Body = Throttled, None; {
	case taken && !nothing && x.same(f.Image, shown):
		f.Phase, f.Body = Applied, shown
		if x.holds(t.Sink, shown) {
			t.Sink.Kept, t.Sink.Body = max(t.Sink.Kept, f.Key), shown
		}
		l.Text = "index ({f}): loads the payload of {k}, which the sink has already"
	case taken:
		f.Phase, f.Body = Sent, shown
	}
	x.edge(t, t.Left == x.s.Left, 0, l)
}

// load is the payload of a claimed document, as the source shows it now. One that cannot be loaded
// is given back, as after a throttle: nothing was asked of the sink.
func (x *step) load(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key, Text: "index ({f}): loads the payload of {k}; " + goes}
	newest := max(x.s.Source, f.Key)
	x.loaded(*x.s, e, newest, l)
	for lagging := range newest {
		if t, ok := x.spend(*x.s, Lags); ok {
			x.loaded(t, e, lagging, l)
		}
	}
	t := *x.s
	t.Execs[e].Phase = Throttled
	l.Text = "index ({f}): the payload of {k} cannot be loaded now"
	x.fault(Throttles, t, l)
	l.Text = "index ({f}): crash while the payload of {k} is loaded"
	x.fault(Crashes, x.crashed(*x.s, e), l)
}
