// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Publish sends one message to its queues, as an upstream would. Publish waits while a queue is
// full. If a queue does not accept the message, the error says why.
func (e *Engine) Publish(ctx context.Context, out queue.Outgoing) error {
	return e.publish(ctx, out.Foreign(), "")
}

// publish sends a message to the lane forced. If forced is empty, the events of the message decide
// the lane. The method sends to the given sinks. If none are given, the events decide the sinks.
func (e *Engine) publish(ctx context.Context, out queue.Outgoing, forced flight.Lane, sinks ...string) error {
	if err := out.Refusal(); err != nil {
		return err
	}
	done := clock.Working(e.clk)
	defer func() { done() }()
	now := e.clk.Now()
	to := e.arrive(out, now)
	if forced != "" {
		to.Lane = forced
	}
	if len(sinks) == 0 {
		sinks = to.Sinks()
	}
	for _, sink := range sinks {
		q := e.pipes[sink].lane(to.Lane).queue
		for e.full(q) {
			done()
			err := e.clk.Sleep(ctx, 100*time.Millisecond)
			if done = clock.Working(e.clk); err != nil {
				return err
			}
		}
		if err := queue.ErrorAt(q.Send(ctx, []queue.Outgoing{out}), 0); err != nil {
			return err
		}
		e.sent(now, sink, out, to)
	}
	return nil
}

// arrive decodes a message in the same way as receive, and counts the bursts of its events.
func (e *Engine) arrive(out queue.Outgoing, now time.Time) feed.Route {
	to := feed.RouteOf(e.cfg, e.sources, queue.Message{Body: out.Body, Attributes: out.Attributes, Sent: now})
	for _, r := range to.Events {
		if r.Invalid == nil && r.Skip == "" {
			d := e.cfg.For(string(r.Event.Doc.Collection()))
			e.ledger.Bursts.Arrive(r.Event.Doc, r.Event.Key, now, d.Quiet, d.MaxWait)
		}
	}
	return to
}

// counted is a queue to which receive sends. The type counted counts the messages that receive
// makes from an object: the lines of the object, and messages that continue reading the object. The
// type counted does not count other messages, because they are copies of messages that are already
// counted.
type counted struct {
	queue.Queue
	e    *Engine
	sink string
}

func (q counted) Send(ctx context.Context, out []queue.Outgoing) []error {
	errs := q.Queue.Send(ctx, out)
	now := q.e.clk.Now()
	for i, o := range out {
		_, line := o.Attributes[queue.AttrLine]
		if _, part := o.Attributes[queue.AttrPart]; (line || part) && queue.ErrorAt(errs, i) == nil {
			q.e.sent(now, q.sink, o, q.e.arrive(o, now))
		}
	}
	return errs
}

// full reports whether the queue has reached maxBacklog or maxBacklogBytes. The method estimates
// the bytes with the average size of a message.
func (e *Engine) full(q *memory.Queue) bool {
	waiting := q.Counts().Total()
	return waiting >= maxBacklog || waiting > 0 && waiting*e.ledger.MeanBytes() >= maxBacklogBytes
}

// refuse parks a message that no queue accepts, because it is too large or empty. A message of the
// input has no sender that could get the error.
func (e *Engine) refuse(ctx context.Context, out queue.Outgoing, why error) error {
	m := queue.Message{Body: out.Body, Attributes: out.Attributes, Sent: e.clk.Now()}
	to := feed.RouteOf(e.cfg, e.sources, m)
	e.sent(m.Sent, to.Sink, out, to)
	m.ID = fmt.Sprintf("refused-%d", e.refused.Add(1))
	problem := "body: " + why.Error()
	if errors.Is(why, queue.ErrTooLarge) {
		problem = fmt.Sprintf("body: %d bytes with its attributes, a message may have %d: send the payload by dataref",
			queue.Bytes(m.Body, m.Attributes), queue.MaxBytes)
	}
	l := deadletter.New(m, deadletter.Undecodable, problem, "", "", 0, e.clk.Now())
	l.Sink, l.Lane = to.Sink, string(flight.Live)
	step := journal.DeadLettered
	if e.cfg.DeadLetters == config.DeadLettersNone {
		step, l.ID = journal.Dropped, ""
	} else if _, err := e.Letters.Park(ctx, l); err != nil {
		return fmt.Errorf("park a refused message: %w", err)
	}
	for i := range to.Events {
		e.notes.Note(journal.Note{
			Step: step, At: e.clk.Now(), Sink: l.Sink, Lane: l.Lane, Message: m.ID, Event: i, Sent: m.Sent,
			Letter: l.ID, Detail: string(deadletter.Undecodable) + ": " + problem,
		})
	}
	return nil
}

// Sources returns the names of the sources in the settings, sorted.
func (e *Engine) Sources() []string { return slices.Sorted(maps.Keys(e.cfg.Sources)) }

// Play publishes each message of an input at its time. A message that no queue accepts becomes a
// dead letter at once.
func (e *Engine) Play(ctx context.Context, in feed.Input) error {
	return feed.Play(ctx, e.clk, in, func(ctx context.Context, t feed.Timed) error {
		e.noted.Lock()
		e.places.Note(t)
		e.noted.Unlock()
		return e.take(ctx, t.Outgoing)
	})
}

func (e *Engine) take(ctx context.Context, out queue.Outgoing) error {
	if why := out.Refusal(); why != nil {
		return e.refuse(ctx, out, why)
	}
	return e.Publish(ctx, out)
}

// Idle reports whether no message waits, no flight holds a message and no turn runs. Scheduled
// events do not count.
func (e *Engine) Idle() bool {
	delayed := 0
	for _, p := range e.pipes {
		// This order is important: a message leaves the queue only after the executions that it
		// caused have started.
		before, late := p.waiting()
		if before > 0 || p.running() > 0 || p.dead.Counts().Total() > 0 {
			return false
		}
		if after, _ := p.waiting(); after > 0 {
			return false
		}
		delayed += late
	}
	return delayed <= e.awaited()
}

// awaited returns how many scheduled events are in the queues, as delayed copies. All other
// scheduled events are in the store. A delayed message that is not such a copy counts as work.
func (e *Engine) awaited() int { return max(e.ledger.Scheduled()-e.Schedule.Len(), 0) }

// waiting counts the messages of both lanes. The method counts delayed messages separately, because
// a copy of a scheduled event waits in the queue for its last minutes.
func (p *pipe) waiting() (n, delayed int) {
	for _, l := range p.lanes {
		c := l.queue.Counts()
		n += c.Visible + c.InFlight
		delayed += c.Delayed
	}
	return n, delayed
}

// running counts the running executions of both lanes.
func (p *pipe) running() (n int) {
	for _, l := range p.lanes {
		n += l.machine.Running()
	}
	return n
}

// Settle waits until the engine is idle. Settle checks every tenth of a second on the engine's
// clock.
func (e *Engine) Settle(ctx context.Context) error {
	for !e.Idle() {
		if err := e.clk.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// Left returns how many messages remain: in a queue, in a flight, or in a dead-letter queue.
func (e *Engine) Left() int {
	n := 0
	for _, p := range e.pipes {
		waiting, delayed := p.waiting()
		n += waiting + delayed + p.dead.Counts().Total()
	}
	return max(n-e.awaited(), 0)
}

// place returns where the message of a dead letter is in the input, such as "line 3".
func (e *Engine) place(f deadletter.Facts) string {
	e.noted.Lock()
	defer e.noted.Unlock()
	return e.places.Of(f)
}

// Report returns the counters so far, with the list of dead letters.
func (e *Engine) Report(ctx context.Context) (ledger.Report, error) {
	r := e.ledger.Report()
	err := pages(func(cursor string) (string, error) {
		facts, next, err := e.Letters.List(ctx, deadletter.Filter{}, cursor, statePage)
		for _, f := range facts {
			if f.Shown(e.clk.Now(), e.cfg.Queues.DeadLetterRetention) != deadletter.Parked {
				continue // this dead letter was redriven: prune removes it when its version is committed
			}
			r.DeadLetters = append(r.DeadLetters, ledger.DeadLine{
				Key: string(f.Doc), Reason: string(f.Reason), Detail: f.Detail, MessageID: f.MessageID,
				Where: e.place(f),
			})
		}
		return next, err
	})
	if err != nil {
		return r, fmt.Errorf("list dead letters: %w", err)
	}
	return r, nil
}
