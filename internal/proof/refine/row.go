// SPDX-License-Identifier: Apache-2.0

package refine

import (
	"math/bits"

	"github.com/lullhq/lull/internal/proof/model"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/sim"
)

// wrote follows a row write that was applied or refused.
func (c *Checker) wrote(s sim.Step) {
	if s.What == sim.Refused {
		c.observe(s.By, s.New)
		if s.Write.Transition.Base() == shard.PARK {
			c.overtaken(s)
		}
		return
	}
	what, ok := c.apply(s)
	c.row = s.New
	switch {
	case ok:
		c.count(what)
	case !c.said:
		c.part(what, "the model has no such step: %s by %s; in its words the row is %+v after it", s.Write.Transition,
			s.Name, c.local().abstract(s.New))
	}
	c.observe(s.By, s.New)
}

// apply finds the action of the model for a row write.
func (c *Checker) apply(s sim.Step) (Step, bool) {
	switch s.Write.Transition.Base() {
	case shard.ADMIT:
		return c.admit(s)
	case shard.CLAIM:
		return c.claim(s)
	case shard.COMMIT:
		return commit, c.end(s, commit)
	case shard.RELEASE:
		return release, c.end(s, release)
	case shard.REJECT:
		return reject, c.end(s, reject)
	case shard.PARK:
		return c.park(s)
	case shard.REDRIVE:
		return redrive, c.redrive(s)
	case shard.COLLECT:
		l := c.local()
		return collect, l.step(func(t *model.State) bool { return t.Row == model.Row{} })
	}
	return Step("row: " + s.Write.Transition.String()), false
}

// leads returns a test of whether a state has the row that the write left.
func (l *local) leads(s sim.Step) func(*model.State) bool {
	want := l.abstract(s.New)
	return func(t *model.State) bool { return t.Row == want }
}

func (c *Checker) admit(s sim.Step) (Step, bool) {
	k := c.key(s.New.Pending)
	what, h := admitByReceive, c.holderOf(s.By)
	if s.Name == "index" {
		what = admitByIndex
	}
	if !c.live[s.By] { // the write was on its way when the sender of the write ended
		l := c.local()
		l.s.Writes[0] = model.RowWrite{Kind: model.AdmitWrite, Key: k}
		return admitLate, l.step(l.leads(s))
	}
	for _, m := range h.messages {
		if m == nil || !m.keys.Has(k) {
			continue
		}
		l := c.local()
		if what == admitByIndex {
			l.s.Execs[0] = model.Exec{Messages: 1 << l.put(m, model.HeldPlace)}
			// If a message has several events, the model remembers which are done. A message with
			// one event may be received again after its deletion, and is then judged again. By
			// then, another version may be the dead letter.
			if bits.OnesCount8(uint8(m.keys)) > 1 {
				l.s.Execs[0].Done = h.known
			}
		} else {
			// receive tries the newest version of its batch first. The model tests a message that
			// carries only this version.
			l.put(&message{keys: model.Keys(k)}, model.Queued)
		}
		return what, l.step(l.leads(s))
	}
	return what, c.part(what, "%s admits version %d, which none of its messages carries", s.Name, k)
}

// now returns the time that a write compares with the lease or with the last write.
func now(w shard.Write) shard.Micros {
	for _, clause := range w.Cond {
		for _, t := range clause {
			if t.Op == shard.Less && (t.Attr == shard.AttrLeaseUntil || t.Attr == shard.AttrLastWrite) {
				return shard.Micros(t.Val.Num)
			}
		}
	}
	return 0
}

// endLease ends a lease whose time is over by the clock of the writer.
func (c *Checker) endLease(at shard.Micros) {
	if c.row.Owner == "" || c.leaseOver || c.row.LeaseUntil >= at {
		return
	}
	cl := c.claims[c.row.Owner]
	l := c.local()
	if cl != nil {
		unsent := cl.sent == 0 && c.live[cl.by]
		if e := l.exec(cl); cl.phase == model.Sent && (cl.open > 0 || unsent) {
			l.s.Execs[0] = e
		}
		if cl.copies > 0 {
			l.s.Requests[0] = model.Request{Key: c.content, Token: l.token(cl.token), Fence: l.clock(c.fence)}
		}
	}
	if l.step(func(t *model.State) bool { return l.s.Row.Lease && !t.Row.Lease && t.Row.Owner == l.s.Row.Owner }) {
		c.leaseOver = true
		c.count(leaseEnds)
		return
	}
	c.part(leaseEnds, "the lease of version %d is over, and a request under it may still be applied", cl.key)
}

func (c *Checker) claim(s sim.Step) (Step, bool) {
	cl := &claim{
		by: s.By, token: s.New.Owner, key: c.key(s.New.Claimed), at: now(s.Write), phase: model.Sent,
		refusals: uint8(s.Old.Refusals),
	}
	c.endLease(cl.at)
	if s.New.LastWrite != s.Old.LastWrite {
		cl.at, cl.ahead = s.New.LastWrite, true
	}
	for _, m := range c.holderOf(s.By).messages {
		if m != nil && m.keys.Has(cl.key) {
			cl.message = m
		}
	}
	l := c.local(cl.at)
	l.Bounds.Ahead = cl.ahead
	kind := model.ClaimWrite
	if s.Write.Transition == shard.CLAIMAgain {
		kind = model.ClaimAgainWrite
	}
	what := claimNew
	late := !c.live[s.By]
	switch {
	case late:
		what, cl.phase = claimLate, model.Waiting
		l.token(l.row.Owner)
		l.s.Writes[0] = model.RowWrite{Kind: kind, Key: cl.key, Token: l.token(cl.token), Fence: l.clock(cl.at)}
	case cl.message == nil:
		return what, c.part(what, "claims version %d, of which its flight holds no message", cl.key)
	default:
		if kind == model.ClaimAgainWrite {
			what = claimAgain
		}
		l.s.Execs[0] = model.Exec{Messages: 1 << l.put(cl.message, model.HeldPlace)}
	}
	// After this point, this claim holds the lease.
	if c.claims[cl.token] != nil {
		c.part(what, "token %s was used before", cl.token)
	}
	c.claims[cl.token], c.leaseOver = cl, false
	if cl.ahead {
		c.lastWrite = cl.at
	}
	want := l.abstract(s.New)
	return what, l.step(func(t *model.State) bool {
		return t.Row == want && (late || t.Execs[0].Phase == model.Sent && t.Execs[0].Key == cl.key)
	})
}

// held returns the claim that a write names as the owner of the lease, or else the last claim of
// the sender.
func (c *Checker) held(s sim.Step) *claim {
	for _, clause := range s.Write.Cond {
		if t := clause[0]; t.Attr == shard.AttrOwner && t.Op == shard.Equal {
			return c.claims[shard.Token(t.Val.Text)]
		}
	}
	var last *claim
	for _, cl := range c.claims {
		if cl.by == s.By && (last == nil || cl.at > last.at) {
			last = cl
		}
	}
	return last
}

// end checks COMMIT, RELEASE or REJECT.
func (c *Checker) end(s sim.Step, what Step) bool {
	cl := c.held(s)
	if cl == nil {
		return c.part(what, "the write names a token without a claim")
	}
	l := c.local(cl.at)
	l.Bounds.Ahead = cl.ahead
	if what == reject && cl.refused {
		l.Bounds.Fickle = 0 // the refusals must be used up
	}
	l.s.Execs[0] = l.exec(cl)
	if what != commit {
		switch {
		case cl.phase == model.Applied:
			return c.part(what, "the sink has applied version %d under this claim", cl.key)
		case cl.open > 0:
			return c.part(what, "a request under this claim may still be applied")
		case cl.copies > 0 && c.sink == model.Plain: // other sinks never apply a copy (ADR 0023)
			return c.part(what, "a copy that was written under this claim may still be applied")
		case what == reject && c.letters[cl.key] != model.Parked:
			return c.part(what, "no dead letter of version %d is stored", cl.key)
		}
		to := model.DeadLettered
		switch {
		case what == release && s.New.Refusals > s.Old.Refusals:
			to = model.Refused
		case what == release:
			to = model.Throttled
		}
		token := l.s.Execs[0].Token
		if !l.step(func(t *model.State) bool {
			return t.Row == l.s.Row && t.Execs[0].Phase == to && t.Execs[0].Token == token
		}) {
			return false
		}
	}
	wasLast := c.lastWrite
	if what == commit {
		c.lastWrite = cl.at
	}
	want := l.abstract(s.New)
	ok := l.step(func(t *model.State) bool {
		return t.Row == want && t.Writes == l.s.Writes && t.Execs[0].Phase == model.Waiting
	})
	if !ok {
		c.lastWrite = wasLast
	}
	cl.phase = model.Waiting
	return ok
}

func (c *Checker) park(s sim.Step) (Step, bool) {
	k := c.key(s.New.Dead)
	what := map[string]Step{"receive": parkByReceive, "dlq": parkByDlq, "index": parkByIndex}[s.Name]
	if c.letters[k] != model.Parked {
		return what, c.part(what, "no dead letter of version %d is stored", k)
	}
	c.endLease(now(s.Write))
	l := c.local()
	l.s.Parker = model.Parker{
		Message: 1 << l.put(&message{keys: model.Keys(k)}, model.HeldPlace), Receive: what == parkByReceive,
	}
	return what, l.step(l.leads(s))
}

// overtaken is a PARK that is refused because a newer version is pending. The stored dead letter is
// enough, and the message may be deleted.
func (c *Checker) overtaken(s sim.Step) {
	for _, a := range s.Write.Update {
		if a.Attr != shard.AttrDead {
			continue
		}
		k := c.key(shard.OrderKey(a.Val.Text))
		l := c.local()
		n := l.put(&message{keys: model.Keys(k)}, model.HeldPlace)
		l.s.Parker.Message = 1 << n
		if c.letters[k] == model.Parked && l.step(func(t *model.State) bool { return t.Messages[n] == model.Gone }) {
			c.holderOf(s.By).known |= model.Keys(k)
			c.count(parkRefused)
		}
	}
}

func (c *Checker) redrive(s sim.Step) bool {
	k := c.key(s.Old.Dead)
	c.endLease(now(s.Write))
	l := c.local()
	l.put(&message{keys: model.Keys(k)}, model.Gone)
	leads := l.leads(s)
	return l.step(func(t *model.State) bool { return t.Redrive == k && leads(t) })
}
