// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"iter"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
)

// occasion is a planned event of virtual time: a step of a service, or a coroutine that continues.
// Occasions at the same moment happen in the order of their creation.
type occasion struct {
	do   func()
	co   *coroutine // the coroutine that continues instead of do, if the coroutine is still in the same park
	park uint64
}

// coroutine is a goroutine that runs only while the scheduler waits for it, or while the coroutine
// that started it waits for it. A coroutine runs one job after the other.
type coroutine struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool

	job   func()
	after func() // called when the job has ended
	owner *invocation
	park  uint64 // the number of the coroutine's current park; 0 while the coroutine runs or waits for its parts
	ended bool
}

// scheduler runs coroutines and occasions one at a time in virtual time.
type scheduler struct {
	now    time.Duration // time since the epoch of the simulation
	agenda clock.Agenda[occasion]
	cur    *coroutine // the running coroutine; nil if none runs
	idle   []*coroutine
	made   []*coroutine
	parks  uint64
	closed bool
}

// after plans do for d from now.
func (s *scheduler) after(d time.Duration, do func()) {
	s.agenda.Add(s.now+max(d, 0), occasion{do: do}, nil)
}

// start runs a job as a coroutine until it parks for the first time or ends. The code that notices
// the end of the job calls after.
func (s *scheduler) start(owner *invocation, job, after func()) {
	var c *coroutine
	if n := len(s.idle); n > 0 {
		c, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		c = &coroutine{}
		c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
			c.yield = yield
			for {
				c.job()
				c.ended = true
				if !yield(struct{}{}) {
					return
				}
			}
		})
		s.made = append(s.made, c)
	}
	c.job, c.after, c.owner, c.ended = job, after, owner, false
	owner.coroutines = append(owner.coroutines, c)
	s.resume(c)
}

// resume lets a coroutine run until it parks or its job ends.
func (s *scheduler) resume(c *coroutine) {
	before := s.cur
	s.cur, c.park = c, 0
	c.next()
	s.cur = before
	if !c.ended {
		return
	}
	after := c.after
	c.owner.leave(c)
	c.job, c.after, c.owner = nil, nil, nil
	s.idle = append(s.idle, c)
	after()
}

// wait parks the running coroutine until resume is called.
func (s *scheduler) wait() { s.cur.yield(struct{}{}) }

// waitUntil parks the running coroutine until a moment, or until an earlier call of resume.
func (s *scheduler) waitUntil(at time.Duration) {
	c := s.cur
	s.parks++
	c.park = s.parks
	s.agenda.Add(max(at, s.now), occasion{co: c, park: c.park}, nil)
	c.yield(struct{}{})
}

// each is the fanout.Runner of an invocation. each runs each part as a separate coroutine.
func (s *scheduler) each(owner *invocation, limit, n int, f func(int)) {
	if n == 1 {
		f(0)
		return
	}
	g := &group{s: s, owner: owner, parent: s.cur, limit: limit, n: n, part: f}
	g.after = func() {
		g.running--
		g.more()
		if g.waiting && g.running == 0 {
			g.waiting = false
			s.resume(g.parent)
		}
	}
	g.more()
	if g.running > 0 {
		g.waiting = true
		s.wait()
	}
}

// group is the parts of an invocation that run concurrently.
type group struct {
	s        *scheduler
	owner    *invocation
	parent   *coroutine // the coroutine that waits for the parts
	limit, n int
	part     func(int)
	after    func() // called when a part has ended

	next, running     int
	starting, waiting bool
}

// more starts parts until as many run as the limit allows.
func (g *group) more() {
	if g.starting {
		return
	}
	g.starting = true
	for g.next < g.n && g.running < g.limit {
		i := g.next
		g.next++
		g.running++
		g.s.start(g.owner, func() {
			defer g.owner.w.caught(g.owner)
			g.part(i)
		}, g.after)
	}
	g.starting = false
}

// close ends every coroutine. Unfinished jobs run to their end without effect, because their
// invocations are killed by then.
func (s *scheduler) close() {
	s.closed = true
	for _, c := range s.made {
		c.stop()
	}
	s.made, s.idle = nil, nil
}
