package model

import "slices"

// send is a request that the sink has, with its sender waiting for the answer.
func (x *step) send(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	if !x.refused().Has(f.Key) {
		t := x.free(*x.s, l)
		text, phase := &t.Label.Text, &t.To.Execs[e].Phase
		switch {
		case x.write(t, f.request()):
			*text, *phase = "the sink applies {k} ({f})", Applied
			if x.Rules.DeleteBeforeCommit {
				*text = "the sink applies {k} ({f}); index deletes the message"
				x.remove(t, x.with(f.Messages, f.Key))
			}
		case x.Rules.UpstreamVersion:
			*text, *phase = "the sink answers 409 to {k} ({f}), which is taken for \"newer is there\"", Applied
		default:
			*text = "the sink answers 409 to {k} ({f}): its lease is over"
			x.rest(t, e)
		}
	}
	if x.Bounds.Poison.Has(f.Key) || x.Bounds.Fickle.Has(f.Key) {
		l.Text = "the sink refuses {k} for good ({f}); the dead letter is stored"
		x.free(*x.s, l).To.dies(e)
	}
	x.refusals(e)
	x.copies(e)
	x.unknown(e)
}

// dies is the version of an execution whose dead letter is stored.
func (s *State) dies(e int) {
	f := &s.Execs[e]
	f.Phase, s.DeadLetters[f.Key] = DeadLettered, Parked
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
	request := Request{held.Content, f.Token, held.Fence, held.Body}
	if x.Rules.CopyUnderTheClaim {
		request.Fence = f.Fence
	}
	l := Label{Exec: uint8(e), Key: held.Content}
	if x.Rules.CopyIsReleased {
		l.Text = "index ({f}): asks with a copy of {k}, which has no answer: gives the lease back"
		x.lateRequest(Crashes, request, l).To.Execs[e].Phase = Throttled
	}
	l.Text = "index ({f}): asks with a copy of {k}: crash, or time-out; the copy is still on its way"
	x.crashed(x.lateRequest(Crashes, request, l), e)
}

// refused are the versions that the sink never takes.
func (x *step) refused() KeySet { return x.Bounds.Poison | x.Bounds.Stubborn }

// refusals are definite: nothing was applied.
func (x *step) refusals(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	throttled := x.fault(Throttles, *x.s, l.says("the sink throttles {k} ({f}): nothing was applied"))
	throttled.To.Execs[e].Phase = Throttled
	t := x.unless(x.Bounds.Stubborn.Has(f.Key), Refusals, *x.s, l)
	own := &t.To.Own[f.Key]
	*own = min(*own+1, Key(x.Bounds.MaxRefusals))
	if f.Refusals+1 < x.Bounds.MaxRefusals {
		t.To.Execs[e].Phase = Refused
		t.Label.Text = "the sink answers an item error to {k} ({f})"
		return
	}
	t.To.dies(e)
	t.Label.Text = "the sink answers an item error to {k} ({f}): refusals are used up; the dead letter is stored"
	if uint8(*own) < x.Bounds.MaxRefusals {
		t.Broken = EarlyDeath
	}
}

// samples are copies of the document that are written for another one's sake, without its lease:
// only where the sink has versions. Nobody waits for them.
func (x *step) samples() {
	held := x.s.Sink
	if x.Bounds.Sink == Plain || held.Content == None || x.gone(held) {
		return
	}
	request := Request{Key: held.Content, Fence: held.Fence, Body: held.Body}
	if x.Rules.SampleIsNew {
		request.Fence = x.s.latest() + 1
	}
	x.lateRequest(Samples, request, Label{
		Key: held.Content, Text: "a copy of {k} goes to the sink, for another document's sake",
	})
}

// unknown are crashes and time-outs between the request and its answer: it was applied before, is
// lost, or still on its way.
func (x *step) unknown(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	l.Text = "index ({f}): crash, or time-out; the request for {k} never arrives"
	x.crashed(x.fault(Crashes, *x.s, l), e)
	l.Text = "index ({f}): crash, or time-out; the request for {k} is still on its way"
	x.crashed(x.lateRequest(Crashes, f.request(), l), e)
	if x.Rules.SecondRequest {
		l.Text = "index ({f}): the request for {k} times out; a second one goes out under the same claim"
		x.lateRequest(Crashes, f.request(), l)
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
		applied := Edge[State]{To: t, Free: true}
		applied.Label = Label{Key: r.Key, Text: "the late request for {k} arrives: the sink applies it"}
		if !x.refused().Has(r.Key) && x.write(&applied, r) {
			x.edges = append(x.edges, applied)
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
	l := Label{Key: s.Sink.Content, Text: "the sink forgets the version of the delete {k}"}
	x.free(*s, l).To.Sink.Fence = 0
}

// write is the sink's own decision: external_gte, where it has versions.
func (x *step) write(e *Edge[State], r Request) (applied bool) {
	t := &e.To
	owner := t.Row.Lease && t.Row.Owner == r.Token
	switch {
	case x.Bounds.Sink == Plain:
		if !owner {
			e.Broken |= TwoWriters
		}
	case r.Fence < t.Sink.Fence:
		if owner && !x.Rules.UpstreamVersion && x.Bounds.Budget[Outages] == 0 {
			e.Broken |= SinkNewer
		}
		return false
	default:
		t.Sink.Fence = r.Fence
	}
	if r.Key < t.Sink.shows() && r.Key != t.Sink.Content {
		e.Broken |= WentBack
		if x.Bounds.Deletes.Has(t.Sink.Content) && !x.Bounds.Deletes.Has(r.Key) {
			e.Broken |= Resurrected
		}
	}
	if r.Body < t.Sink.Body && !x.same(r.Body, t.Sink.Body) {
		e.Broken |= BodyBack
	}
	if r.Key != t.Sink.Content {
		t.Sink.Kept = None
	}
	t.Sink.Content, t.Sink.Body = r.Key, r.Body
	return true
}

// upstream are the source's own numbers where its counter began anew: version 1 of epoch 2 is newer
// than version 3 of epoch 1.
var upstream = [MaxKey + 1]Clock{0, 3, 1, 2}

// source changes what references show: to each version, one after the other, whenever it likes. Who
// holds an event knows that the source got that far.
func (x *step) source() {
	if newest := x.keys(1<<len(x.Bounds.Messages) - 1).Newest(); x.Bounds.References && x.s.Source < newest {
		x.free(*x.s, Label{Key: x.s.Source + 1, Text: "the source changes to {k}"}).To.Source++
	}
}

// loaded is what follows where the source, or a replica of it, shows a state. What is older than
// the event is given back. So is what is not there: a delete, or a replica that lags, may be the
// reason. It counts once the source has had time to show the event's own state: the settings
// promise that.
func (x *step) loaded(t *Edge[State], e int, shown Key) {
	f := &t.To.Execs[e]
	nothing := shown == None || x.Bounds.Gone.Has(shown)
	taken := shown >= f.Key || x.Rules.StaleTaken && !nothing ||
		x.Rules.StaleIfNewer && !nothing && shown > t.To.Row.Committed || x.Rules.MissingDeletes && nothing
	text := &t.Label.Text
	switch *text = "index ({f}): the source shows "; {
	case nothing && taken:
		*text += "nothing: {k} becomes a delete, which goes to the sink"
	case nothing:
		*text += "nothing yet of {k}, which waits"
	case shown == f.Key && taken:
		*text = "index ({f}): loads the payload of {k}; " + goes
	case taken:
		*text += x.version(shown) + " for {k}; " + goes
	default:
		*text += x.version(shown) + ", which is older than {k}"
	}
	switch f.Phase, f.Body = Throttled, None; {
	case taken && !nothing && x.same(f.Image, shown):
		f.Phase, f.Body = Applied, shown
		if x.holds(t.To.Sink, shown) {
			t.To.Sink.Kept, t.To.Sink.Body = max(t.To.Sink.Kept, f.Key), shown
		}
		*text = "index ({f}): loads the payload of {k}, which the sink has already"
	case taken:
		f.Phase, f.Body = Sent, shown
	}
}

// load is the payload of a claimed document, as the source shows it now. One that cannot be loaded
// is given back, as after a throttle: nothing was asked of the sink.
func (x *step) load(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	newest := max(x.s.Source, f.Key)
	x.loaded(x.free(*x.s, l), e, newest)
	for lagging := range newest {
		x.loaded(x.fault(Lags, *x.s, l), e, lagging)
	}
	l.Text = "index ({f}): the payload of {k} cannot be loaded now"
	x.fault(Throttles, *x.s, l).To.Execs[e].Phase = Throttled
	l.Text = "index ({f}): crash while the payload of {k} is loaded"
	x.crashed(x.fault(Crashes, *x.s, l), e)
}
