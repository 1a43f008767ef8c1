// SPDX-License-Identifier: Apache-2.0

package refine

import (
	"time"

	"github.com/lullhq/lull/internal/proof/model"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/sink"
)

// under returns the claim under which an item is written. own is true for the claimed version, and
// false for a copy of the committed version.
func (c *Checker) under(s sim.Step) (cl *claim, own bool) {
	for _, other := range c.claims {
		if other.by != s.By {
			continue
		}
		if other.key == c.key(s.Op.Key) && shard.Fence(other.at) == s.Op.Fence {
			return other, true
		}
		if cl == nil || other.at > cl.at {
			cl = other
		}
	}
	return cl, false
}

// request follows one item of a request to the sink.
func (c *Checker) request(s sim.Step) {
	if s.Op.Doc != c.doc {
		return
	}
	cl, own := c.under(s)
	if cl == nil {
		c.part(applies, "%s writes version %d without a claim", s.Name, c.key(s.Op.Key))
		return
	}
	n := &cl.copies
	if own {
		n = &cl.open
	}
	switch s.What {
	case sim.Sent:
		*n++
		if own {
			cl.sent++
		}
	case sim.Landed:
		*n--
	default:
		c.answered(s, cl, own)
	}
}

// forgets is how long a sink remembers the version of a delete.
const forgets = time.Minute

// answered checks the sink's decision about an item.
func (c *Checker) answered(s sim.Step, cl *claim, own bool) {
	k, fence := c.key(s.Op.Key), shard.Micros(s.Op.Fence)
	c.forget(fence)
	l := c.local(cl.at, fence)
	what := applies
	if !own {
		what = copied
		l.s.Requests[0] = model.Request{Key: k, Token: l.token(cl.token), Fence: l.clock(fence)}
	} else {
		l.s.Execs[0] = l.exec(cl)
	}
	switch s.Outcome.Kind {
	case sink.Applied:
		if own && cl.phase != model.Sent {
			c.part(what, "version %d is applied although its claim is over", k)
			return
		}
		want := model.Sink{Content: k}
		if c.sink != model.Plain {
			want.Fence = l.clock(fence)
		}
		ok := l.step(func(t *model.State) bool {
			if own {
				return t.Sink == want && t.Execs[0].Phase == model.Applied
			}
			return t.Sink == want && t.Requests[0] == model.Request{}
		})
		c.judge(what, ok, "the model's sink does not take version %d over %d", k, c.content)
		if own {
			cl.phase = model.Applied
		}
		c.content, c.fence, c.deletedAt = k, fence, 0
		if c.deletes.Has(k) {
			c.deletedAt = c.now
		}
	case sink.Newer:
		if !own { // the item is older than the document in the sink, so nothing changes
			c.count(copied)
			return
		}
		if l.step(func(t *model.State) bool { return t.Sink == l.s.Sink && t.Execs[0].Phase == model.Waiting }) {
			c.count(newer)
		}
	default:
		cl.refused = s.Outcome.Kind == sink.Refused
		c.count(refusesItem)
	}
}

// forget lets the sink forget the version of a delete, if that lets an older request pass.
func (c *Checker) forget(fence shard.Micros) {
	if c.sink != model.Forgetful || !c.deletes.Has(c.content) || c.fence == 0 || c.now-c.deletedAt < forgets ||
		fence >= c.fence {
		return
	}
	if l := c.local(fence); l.step(func(t *model.State) bool { return t.Sink.Fence == 0 && t.Row == l.s.Row }) {
		c.fence = 0
		c.count(forgetsDelete)
	}
}
