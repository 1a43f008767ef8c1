// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// invocation is one run of a Lambda function, or of an operator's command.
type invocation struct {
	*fault.Invocation
	w          *World
	clock      *skewed
	began      time.Duration
	deadline   time.Duration // when the context of the invocation ends
	hungUp     time.Duration // when the invocation ended or was killed
	coroutines []*coroutine
	over       bool
	ended      func(error)
	pipe       *pipe // the pipe of a turn
	doom       int   // how many I/Os remain until the invocation is killed; 0 for no kill
	// copies are the fences of the documents that the invocation has read from a sink.
	copies  map[shard.DocID]shard.Fence
	verdict fault.Verdict // the verdict about the next I/O
	open    bool          // a turn of a flight that makes outage writes
	failed  error         // the error that the function returned instead of a result
	busy    time.Duration // when the processor of the invocation becomes free
}

var errKilled = errors.New("invocation was killed")

// invoke runs a function. invoke calls ended once: with nil after the function has answered, or
// with an error after the function was killed.
func (w *World) invoke(name string, timeout time.Duration, job func(ctx context.Context, v *invocation),
	ended func(error),
) {
	if w.broken(name, timeout, ended) {
		return
	}
	w.counts.Invocations[name]++
	w.invoked++
	v := &invocation{
		Invocation: fault.NewInvocation(w, name, w.invoked), w: w, began: w.now, deadline: w.now + timeout,
		ended: ended, copies: map[shard.DocID]shard.Fence{},
	}
	v.Carry = v.carry
	v.clock = &skewed{inv: v, by: w.dice.within(w.rates.Skew)}
	if (name == "index" || name == "receive" || name == "prune") && w.strikes("wrong clock", w.rates.WrongClock) {
		v.clock.by = time.Duration(w.dice.logUniform(10, 40*24*60) * float64(time.Minute))
		switch {
		case w.dice.chance(0.5):
			v.clock.by = -v.clock.by
		case name == "receive":
			v.clock.by += w.cfg.Queues.Retention
		}
	}
	if w.strikes("clock step", w.rates.ClockStep) {
		w.after(w.dice.upTo(timeout), func() { v.clock.by = w.dice.within(w.rates.Skew) })
	}
	if w.strikes("kill", w.rates.Kill) {
		v.doom = 1 + w.dice.IntN(killWithin)
	}
	w.live[v.ID] = v
	ctx, _ := limit(context.Background(), &w.scheduler, v.deadline)
	w.after(timeout+w.lateKill(), func() { w.kill(v, "time-out") })
	w.start(v, func() {
		defer w.caught(v)
		v.compute(ctx, invocationCPU)
		job(ctx, v)
	}, func() {
		if v.doom > 0 { // the function did fewer I/Os than doom, so the kill comes before the answer
			v.Kill()
			w.trace.mark("kill", name, v.ID)
		}
		w.finish(v)
	})
	w.reap(v)
}

// listen passes a note, or the end of an invocation, to the Listen option.
func (w *World) listen(v *invocation, n *journal.Note) {
	if w.options.Listen != nil {
		w.options.Listen(v.Name, v.ID, epoch.Add(w.now), n)
	}
}

// caught reports a panic of a use case as a violation. On AWS, the panic would fail this invocation
// and every retry.
func (w *World) caught(v *invocation) {
	if r := recover(); r != nil { //nolint:revive // deferred by its callers
		w.oracle.violate("no use case panics", fmt.Sprintf("%s: %v\n%s", v.Name, r, debug.Stack()))
		v.Kill()
	}
}

// killWithin limits the number of I/Os before the kill of an invocation.
const killWithin = 24

// lateKill returns how much later than its time-out the platform kills an invocation.
func (w *World) lateKill() time.Duration {
	if w.rates.LateKill == 0 || !w.strikes("late kill", 0.5) {
		return 0
	}
	return w.dice.upTo(w.rates.LateKill)
}

// finish ends the invocation and calls its caller's function.
func (w *World) finish(v *invocation) {
	v.over, v.hungUp = true, w.now
	delete(w.live, v.ID)
	w.watch(v, Step{What: Ended})
	w.counts.ran(v.Name, names.Function(v.Name).MegabytesIn(w.cfg), w.now-v.began)
	w.notifyEnd(v)
	if v.Killed() {
		w.counts.Killed++
		v.ended(errKilled)
		return
	}
	w.listen(v, nil)
	v.ended(nil)
}

// kill kills an invocation. Later I/O of a killed invocation has no effect.
func (w *World) kill(v *invocation, why string) {
	if v.over {
		return
	}
	w.trace.mark(why, v.Name, v.ID)
	v.Kill()
	w.reap(v)
}

// reap lets the coroutines of a killed invocation run to their end. Each I/O fails at once and
// changes nothing.
func (w *World) reap(v *invocation) {
	if !v.Killed() || v.over || w.cur != nil && w.cur.owner == v {
		return // the invocation runs or notices the kill; the caller then reaps the invocation
	}
	for !v.over {
		c := v.parked()
		if c == nil {
			return
		}
		w.resume(c)
	}
}

func (v *invocation) parked() *coroutine {
	for _, c := range v.coroutines {
		if c.park != 0 {
			return c
		}
	}
	return nil
}

// leave removes a coroutine from the list after its job has ended.
func (v *invocation) leave(c *coroutine) {
	v.coroutines = slices.DeleteFunc(v.coroutines, func(other *coroutine) bool { return other == c })
}

// parallel returns a runner that runs parts of the invocation concurrently.
func (v *invocation) parallel() fanout.Runner {
	return func(limit, n int, f func(int)) { v.w.each(v, limit, n, f) }
}

// Note makes the invocation a journal. Note drops notes of a killed invocation.
func (v *invocation) Note(n journal.Note) {
	if !v.Killed() {
		v.w.noted(v, n)
		if v.w.options.Listen != nil {
			heard := n
			v.w.listen(v, &heard)
		}
	}
}
