// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// send is a request that the sink has and whose sender waits for the answer.
func (x *step) send(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	if !x.alwaysRefused().Has(f.Key) {
		t := x.addFree(*x.s, l)
		text, phase := &t.Label.Text, &t.To.Execs[e].Phase
		switch {
		case x.write(t, f.request()):
			*text, *phase = "the sink applies {k} ({f})", Applied
			if x.Rules.DeleteBeforeCommit {
				*text = "the sink applies {k} ({f}); index deletes the message"
				x.remove(t, x.carrying(f.Messages, f.Key))
			}
		case x.Rules.UpstreamVersion:
			*text, *phase = "the sink answers 409 to {k} ({f}), which is taken for \"newer is there\"", Applied
		default:
			*text = "the sink answers 409 to {k} ({f}): its lease is over"
			x.endClaim(t, e)
		}
	}
	if x.Bounds.Poison.Has(f.Key) || x.Bounds.Fickle.Has(f.Key) {
		l.Text = "the sink refuses {k} for good ({f}); the dead letter is stored"
		x.addFree(*x.s, l).To.storeDeadLetter(e)
	}
	x.refusals(e)
	x.askWithCopy(e)
	x.unknown(e)
}

// storeDeadLetter stores the dead letter of an execution's version.
func (s *State) storeDeadLetter(e int) {
	f := &s.Execs[e]
	f.Phase, s.DeadLetters[f.Key] = DeadLettered, Parked
}

// askWithCopy finds out whether the document or the sink causes a refusal. index writes the sink's
// current document once more, under the lease of the refused version. The copy keeps its version
// and its fence, so that an answer means that nothing changed. Without an answer the copy may still
// be on its way, and index keeps the lease.
func (x *step) askWithCopy(e int) {
	f, held := x.s.Execs[e], x.s.Sink
	if !(x.alwaysRefused() | x.Bounds.Fickle).Has(f.Key) || held.Content == None || x.gone(held) {
		return
	}
	request := Request{held.Content, f.Token, held.Fence, held.Body}
	if x.Rules.CopyUnderTheClaim {
		request.Fence = f.Fence
	}
	l := Label{Exec: uint8(e), Key: held.Content}
	if x.Rules.CopyIsReleased {
		l.Text = "index ({f}): asks with a copy of {k}, gets no answer, and releases the lease"
		x.addLateRequest(Crashes, request, l).To.Execs[e].Phase = Throttled
	}
	l.Text = "index ({f}): asks with a copy of {k}: crash, or time-out; the copy is still on its way"
	x.crash(x.addLateRequest(Crashes, request, l), e)
}

// alwaysRefused returns the versions that the sink never takes.
func (x *step) alwaysRefused() KeySet { return x.Bounds.Poison | x.Bounds.Stubborn }

// refusals appends the definite refusals: the sink applied nothing.
func (x *step) refusals(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	throttled := x.addFault(Throttles, *x.s, l.withText("the sink throttles {k} ({f}): nothing was applied"))
	throttled.To.Execs[e].Phase = Throttled
	t := x.addFreeIf(x.Bounds.Stubborn.Has(f.Key), Refusals, *x.s, l)
	own := &t.To.Own[f.Key]
	*own = min(*own+1, Key(x.Bounds.MaxRefusals))
	if f.Refusals+1 < x.Bounds.MaxRefusals {
		t.To.Execs[e].Phase = Refused
		t.Label.Text = "the sink answers an item error to {k} ({f})"
		return
	}
	t.To.storeDeadLetter(e)
	t.Label.Text = "the sink answers an item error to {k} ({f}): refusals are used up; the dead letter is stored"
	if uint8(*own) < x.Bounds.MaxRefusals {
		t.Broken = EarlyDeath
	}
}

// samples sends copies of the document that serve another document's question. The copies need no
// lease, and only sinks with versions get them. No process waits for their answers.
func (x *step) samples() {
	held := x.s.Sink
	if x.Bounds.Sink == Plain || held.Content == None || x.gone(held) {
		return
	}
	request := Request{Key: held.Content, Fence: held.Fence, Body: held.Body}
	if x.Rules.SampleIsNew {
		request.Fence = x.s.latest() + 1
	}
	x.addLateRequest(Samples, request, Label{
		Key: held.Content, Text: "a copy of {k} goes to the sink, written for another document",
	})
}

// unknown appends crashes and time-outs between a request and its answer. The request is lost or
// still on its way. A request that the sink applied before is a step of finish.
func (x *step) unknown(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	l.Text = "index ({f}): crash, or time-out; the request for {k} never arrives"
	x.crash(x.addFault(Crashes, *x.s, l), e)
	l.Text = "index ({f}): crash, or time-out; the request for {k} is still on its way"
	x.crash(x.addLateRequest(Crashes, f.request(), l), e)
	if x.Rules.SecondRequest {
		l.Text = "index ({f}): the request for {k} times out; a second one goes out under the same claim"
		x.addLateRequest(Crashes, f.request(), l)
	}
}

// sinkLater applies or loses the requests whose sender is gone. sinkLater also forgets the versions
// of deletes.
func (x *step) sinkLater() {
	for i, r := range x.s.Requests {
		if r == (Request{}) {
			continue
		}
		t := *x.s
		t.Requests[i] = Request{}
		x.addFree(t, Label{Key: r.Key, Text: "the late request for {k} is lost"})
		applied := Edge[State]{To: t, Free: true}
		applied.Label = Label{Key: r.Key, Text: "the late request for {k} arrives: the sink applies it"}
		if !x.alwaysRefused().Has(r.Key) && x.write(&applied, r) {
			x.edges = append(x.edges, applied)
		}
	}
	x.samples()
	x.forget()
}

// forget is the end of OpenSearch's index.gc_deletes after a delete: the sink forgets the version
// of the delete. Requests that are older than the delete have arrived before.
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
	x.addFree(*s, l).To.Sink.Fence = 0
}

// write is the sink's decision about a request: external_gte, if the sink has versions.
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
	if r.Body < t.Sink.Body && !x.sameBytes(r.Body, t.Sink.Body) {
		e.Broken |= BodyBack
	}
	if r.Key != t.Sink.Content {
		t.Sink.Kept = None
	}
	t.Sink.Content, t.Sink.Body = r.Key, r.Body
	return true
}

// upstream are the source's numbers after its counter started again: version 1 of epoch 2 is newer
// than version 3 of epoch 1.
var upstream = [MaxKey + 1]Clock{0, 3, 1, 2}

// source changes what references show, from one version to the next, at any time. An event proves
// that the source has reached the event's version.
func (x *step) source() {
	if newest := x.keys(1<<len(x.Bounds.Messages) - 1).Newest(); x.Bounds.References && x.s.Source < newest {
		x.addFree(*x.s, Label{Key: x.s.Source + 1, Text: "the source changes to {k}"}).To.Source++
	}
}

// afterLoad handles a state that the source, or a replica of the source, shows. If the state is
// older than the event, index releases the claim. If the document is missing, index also releases
// the claim, because of a delete or a lagging replica. A missing document counts once the source
// has had time to show the event's state. The settings promise that.
func (x *step) afterLoad(t *Edge[State], e int, shown Key) {
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
	case taken && !nothing && x.sameBytes(f.Image, shown):
		f.Phase, f.Body = Applied, shown
		if x.holds(t.To.Sink, shown) {
			t.To.Sink.Kept, t.To.Sink.Body = max(t.To.Sink.Kept, f.Key), shown
		}
		*text = "index ({f}): loads the payload of {k}, which the sink has already"
	case taken:
		f.Phase, f.Body = Sent, shown
	}
}

// load loads the payload of a claimed document as the source shows it now. If it cannot be loaded,
// index releases the claim, as after a throttle, because the sink got no request.
func (x *step) load(e int) {
	f := x.s.Execs[e]
	l := Label{Exec: uint8(e), Key: f.Key}
	newest := max(x.s.Source, f.Key)
	x.afterLoad(x.addFree(*x.s, l), e, newest)
	for lagging := range newest {
		x.afterLoad(x.addFault(Lags, *x.s, l), e, lagging)
	}
	l.Text = "index ({f}): the payload of {k} cannot be loaded now"
	x.addFault(Throttles, *x.s, l).To.Execs[e].Phase = Throttled
	l.Text = "index ({f}): crash while the payload of {k} is loaded"
	x.crash(x.addFault(Crashes, *x.s, l), e)
}
