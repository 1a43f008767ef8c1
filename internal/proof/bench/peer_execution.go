// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/simulation/price"
)

const (
	// executionBytes is the size of an item with the newest payload, which exists only in the
	// table.
	executionBytes = 900
	// checkMegabytes is enough memory for a function that processes one document.
	checkMegabytes = 128
	// expressEnd is when an Express execution sends its document back to the queue. expressOver is
	// when the execution must have ended.
	expressEnd, expressOver = 280 * time.Second, 5 * time.Minute
	// executionAway is how long after the document's due time an execution counts as lost.
	executionAway = 5 * time.Minute
	// If the write of an execution fails, the execution waits and tries again. The wait doubles
	// each time.
	leastWait, mostWait = time.Second, 16 * time.Second
)

// executions runs one execution for each burst. The states of an execution are Wait, Check, Left,
// and then Wait or Done.
type executions struct {
	*World
	express bool
	rows    *table
	all     context.Context
	open    atomic.Int64
}

// Express keeps the newest version in a row, and an Express execution waits for the quiet window.
func Express(ctx context.Context, w *World) { perDocument(ctx, w, true) }

// Standard works like Express, but with a Standard execution.
func Standard(ctx context.Context, w *World) { perDocument(ctx, w, false) }

func perDocument(ctx context.Context, w *World, express bool) {
	e := &executions{World: w, express: express, rows: newTable(w, executionBytes), all: ctx}
	w.busy = func() int { return int(e.open.Load()) }
	w.poll(ctx, "remember", peerTimeout, func(ctx context.Context, v *fault.Invocation, clk clock.Clock,
		batch []queue.Message,
	) []string {
		return each(newest(parseAll(batch)), func(m parsed) bool { return e.remember(ctx, v, clk, m) == nil })
	})
}

// remember makes m the newest version, and starts an execution if none waits. The row stores the
// message that started the last execution. If that message is received again, it may start the
// execution again, because the first start may have failed.
func (e *executions) remember(ctx context.Context, v *fault.Invocation, clk clock.Clock, m parsed) error {
	r, newer, err := e.rows.write(ctx, v, docKey(m), func(r *record) bool {
		if r.event.Version > m.Version {
			return false
		}
		if waits := r.timer && clk.Now().Before(r.until); !waits {
			r.first, r.starter = m.Sent, m.ID
		}
		r.event, r.timer, r.due = m.Event, true, m.Sent.Add(e.Config.Debounce.Quiet)
		if most := r.first.Add(e.Config.Debounce.MaxWait); r.due.After(most) {
			r.due = most
		}
		r.until = r.due.Add(executionAway)
		return true
	})
	start := r.starter == m.ID && (newer || r.timer)
	if err != nil || !start {
		return err
	}
	return request(ctx, v, fault.States, "StartExecution", func() {
		for range e.starts() {
			e.Meter.started(e.express)
			e.open.Add(1)
			e.wg.Go(func() {
				defer e.open.Add(-1)
				e.run(m, r.due)
			})
		}
	})
}

// run is one execution. A failed try is repeated after a wait, which grows each time.
func (e *executions) run(m parsed, wake time.Time) {
	began := e.clk.Now()
	failures := 0
	for done := false; !done; {
		if wake = wake.Truncate(time.Second).Add(time.Second); e.clk.Sleep(e.all, wake.Sub(e.clk.Now())) != nil {
			return
		}
		_ = e.clk.Sleep(e.all, e.Meter.lat.draw(stateLatency)) // ends when the run ends
		old := e.clk.Now().Sub(began)
		failed := true
		err := e.invoke(e.all, "check", checkMegabytes, peerTimeout,
			func(ctx context.Context, v *fault.Invocation, clk clock.Clock) {
				var err error
				if e.express && old > expressEnd {
					done, err = true, e.giveBack(ctx, v, m)
				} else {
					wake, done, err = e.check(ctx, v, clk, m)
				}
				failed = err != nil
			})
		if e.all.Err() != nil {
			return
		}
		if err != nil || failed {
			wake = e.clk.Now().Add(min(leastWait<<min(failures, 10), mostWait))
			done = e.express && wake.Sub(began) > expressOver
			failures++
		}
		_ = e.clk.Sleep(e.all, e.Meter.lat.draw(stateLatency)) // ends when the run ends
		e.Meter.turned(e.express)
	}
	e.Meter.flew(e.clk.Now().Sub(began), e.express)
}

// check writes the document if it has been quiet, or returns when to check again.
func (e *executions) check(ctx context.Context, v *fault.Invocation, clk clock.Clock, m parsed) (wake time.Time,
	done bool, err error,
) {
	r, err := e.rows.read(ctx, v, docKey(m))
	if now := clk.Now(); err != nil || !r.timer || r.due.After(now) {
		return r.due, err == nil && !r.timer, err
	}
	m.Event = r.event
	if !e.put(ctx, v, m)[0] {
		return wake, false, errNotWritten
	}
	r, same, err := e.rows.write(ctx, v, docKey(m), func(r *record) bool {
		if r.event.Rank != m.Rank {
			return false
		}
		r.timer = false
		return true
	})
	return r.due, same, err
}

// giveBack sends the document to the queue and forgets the execution. The message then starts
// another execution.
func (e *executions) giveBack(ctx context.Context, v *fault.Invocation, m parsed) error {
	r, _, err := e.rows.write(ctx, v, docKey(m), func(r *record) bool {
		r.timer = false
		return true
	})
	if err != nil {
		return err
	}
	e.Meter.count(func(_ *Counts, u *price.Usage) { u.QueueRequests++ })
	return queue.ErrorAt(v.Queue(e.Queue).Send(ctx, []queue.Outgoing{{Body: r.event.body()}}), 0)
}
