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
	deadline   time.Duration // when its context ends
	hungUp     time.Duration // when it ended or was killed
	coroutines []*coroutine
	over       bool
	ended      func(error)
	pipe       *pipe // of a turn
	doom       int   // I/Os until it is killed, 0 for never
	// the fences of the documents that it has read back from a sink
	copies  map[shard.DocID]shard.Fence
	verdict fault.Verdict // on the I/O that it is about to make
	open    bool          // a turn of a flight that writes without rows during a table outage
	failed  error         // what the function answered in place of a result
	busy    time.Duration // until when its processor computes
}

var errKilled = errors.New("invocation was killed")

// invoke runs a function. ended is called once: with nil when the function has answered, otherwise
// when it was killed.
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
		if v.doom > 0 { // it did fewer I/Os than that: it is killed before its answer
			v.Kill()
			w.trace.mark("kill", name, v.ID)
		}
		w.finish(v)
	})
	w.reap(v)
}

// listen tells who listens to invocations.
func (w *World) listen(v *invocation, n *journal.Note) {
	if w.options.Listen != nil {
		w.options.Listen(v.Name, v.ID, epoch.Add(w.now), n)
	}
}

// caught records a panic of a use case as a violation: on AWS it would fail this invocation and
// every retry.
func (w *World) caught(v *invocation) {
	if r := recover(); r != nil { //nolint:revive // deferred by its callers
		w.oracle.violate("no use case panics", fmt.Sprintf("%s: %v\n%s", v.Name, r, debug.Stack()))
		v.Kill()
	}
}

// killWithin bounds at which I/O of a killed invocation the kill comes.
const killWithin = 24

// lateKill is how much later than its time-out the platform kills an invocation.
func (w *World) lateKill() time.Duration {
	if w.rates.LateKill == 0 || !w.strikes("late kill", 0.5) {
		return 0
	}
	return w.dice.upTo(w.rates.LateKill)
}

// finish ends the invocation's life and tells its caller.
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

// kill ends an invocation: nothing that it does from now on has any effect.
func (w *World) kill(v *invocation, why string) {
	if v.over {
		return
	}
	w.trace.mark(why, v.Name, v.ID)
	v.Kill()
	w.reap(v)
}

// reap lets the coroutines of a killed invocation run to their end: each I/O fails at once and
// changes nothing.
func (w *World) reap(v *invocation) {
	if !v.Killed() || v.over || w.cur != nil && w.cur.owner == v {
		return // it runs, or notices the kill itself; then its caller reaps it
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

// leave removes a coroutine whose job has ended from the list.
func (v *invocation) leave(c *coroutine) {
	v.coroutines = slices.DeleteFunc(v.coroutines, func(other *coroutine) bool { return other == c })
}

// parallel runs parts of the invocation concurrently.
func (v *invocation) parallel() fanout.Runner {
	return func(limit, n int, f func(int)) { v.w.each(v, limit, n, f) }
}

// Note is the journal of an invocation. Notes of a killed invocation are dropped.
func (v *invocation) Note(n journal.Note) {
	if !v.Killed() {
		v.w.noted(v, n)
		if v.w.options.Listen != nil {
			heard := n
			v.w.listen(v, &heard)
		}
	}
}
