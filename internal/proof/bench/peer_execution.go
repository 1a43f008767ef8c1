package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/proof/price"
	"github.com/lullhq/lull/internal/queue"
)

// executionBytes is an item that holds the newest payload: nobody else keeps the message.
const executionBytes = 900

// executions runs one Standard execution per burst: Wait, Check, Left -> Wait or Done.
type executions struct {
	*World
	rows *table
	all  context.Context
	open atomic.Int64
}

// Executions keeps the newest version in a row and lets an execution wait for quiet.
func Executions(ctx context.Context, w *World) {
	e := &executions{World: w, rows: newTable(w, executionBytes), all: ctx}
	w.busy = func() int { return int(e.open.Load()) }
	w.poll(ctx, "remember", peerTimeout, func(ctx context.Context, v *fault.Invocation, clk clock.Clock,
		batch []queue.Message,
	) []string {
		msgs := parseAll(batch)
		failed := map[int]bool{}
		var mu sync.Mutex
		each(newest(msgs), func(m parsed) bool {
			ok := e.remember(ctx, v, m)
			mu.Lock()
			defer mu.Unlock()
			failed[m.doc] = !ok
			return ok
		})
		return ids(slices.DeleteFunc(msgs, func(m parsed) bool { return !failed[m.doc] }))
	})
}

// remember makes m the newest version, and starts an execution where none waits.
func (e *executions) remember(ctx context.Context, v *fault.Invocation, m parsed) bool {
	due := m.Sent.Add(e.Config.Debounce.Quiet)
	start := false
	if _, newer := e.rows.write(ctx, v, docKey(m), func(r *record) bool {
		if r.version >= m.version {
			return false
		}
		start = !r.timer
		r.version, r.done, r.due, r.timer = m.version, false, due, true
		return true
	}); !newer {
		return ctx.Err() == nil
	}
	if !start {
		return true
	}
	if e.Meter.Decide(ctx, v, fault.Op{Service: fault.States, Call: "StartExecution", Count: 1}) != fault.OK {
		return false
	}
	e.Meter.count(func(c *Counts, u *price.Usage) {
		c.Starts++
		c.Transitions++ // Done
		u.Transitions++
	})
	e.open.Add(1)
	e.wg.Go(func() {
		defer e.open.Add(-1)
		e.run(m, due)
	})
	return true
}

// run is one execution.
func (e *executions) run(m parsed, wake time.Time) {
	began := e.clk.Now()
	for done := false; !done; {
		if wake = wake.Truncate(time.Second).Add(time.Second); e.clk.Sleep(e.all, wake.Sub(e.clk.Now())) != nil {
			return
		}
		_ = e.clk.Sleep(e.all, e.Meter.lat.draw(stateLatency)) // ends with the run
		err := e.invoke(e.all, "check", receiveMegabytes, peerTimeout,
			func(ctx context.Context, v *fault.Invocation, clk clock.Clock) {
				wake, done = e.check(ctx, v, clk, m)
			})
		if err != nil {
			return
		}
		_ = e.clk.Sleep(e.all, e.Meter.lat.draw(stateLatency)) // as above
		e.Meter.count(func(c *Counts, u *price.Usage) {
			c.Turns++
			c.Transitions += turnTransitions
			u.Transitions += turnTransitions
		})
	}
	e.Meter.count(func(c *Counts, _ *price.Usage) { c.Flown += e.clk.Now().Sub(began) })
}

// check writes the document if it has been quiet, or says when to look again.
func (e *executions) check(ctx context.Context, v *fault.Invocation, clk clock.Clock, m parsed) (wake time.Time,
	done bool,
) {
	r := e.rows.read(ctx, v, docKey(m))
	if now := clk.Now(); r.due.After(now) {
		return r.due, false
	}
	m.version = r.version
	if !e.put(ctx, v, m) {
		return clk.Now(), false
	}
	r, same := e.rows.write(ctx, v, docKey(m), func(r *record) bool {
		if r.version != m.version {
			return false
		}
		r.done, r.timer = true, false
		return true
	})
	return r.due, same
}
