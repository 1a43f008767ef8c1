package dev

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/queue"
)

// Publish sends one message to the queue it belongs to, as an upstream would: by its collection's
// sink, resyncs to the bulk lane. It waits while the queue is full. A message that no queue takes
// becomes a dead letter at once.
func (e *Engine) Publish(ctx context.Context, out queue.Outgoing) error {
	return e.publish(ctx, out, "")
}

// publish sends to the lane given, or, where that is empty, to the one that the events ask for.
func (e *Engine) publish(ctx context.Context, out queue.Outgoing, forced flight.Lane) error {
	done := clock.Working(e.clk)
	defer func() { done() }()
	now := e.clk.Now()
	m := queue.Message{Body: out.Body, Attributes: out.Attributes, Sent: now}
	name, lane, events := e.cfg.DefaultSink, flight.Live, 0
	if name == "" {
		name = e.order[0]
	}
	for i, r := range e.sources.Decode(m) {
		events++
		if r.Fault != nil || r.Skip != "" {
			continue
		}
		d := e.cfg.For(string(r.Event.Doc.Collection()))
		e.bursts.Arrive(r.Event.Doc, r.Event.Key, now, d.Quiet, d.MaxWait)
		if r.Event.Resync {
			lane = flight.Bulk
		}
		if i == 0 {
			name, _ = e.cfg.SinkFor(string(r.Event.Doc.Collection()))
		}
	}
	if forced != "" {
		lane = forced
	}
	p := e.pipes[name]
	q := p.lane(lane)
	for e.full(q) {
		done()
		err := e.clk.Sleep(ctx, 100*time.Millisecond)
		if done = clock.Working(e.clk); err != nil {
			return err
		}
	}
	err := queue.ErrorAt(q.Send(ctx, []queue.Outgoing{out}), 0)
	if err != nil && ctx.Err() != nil {
		return err // not sent
	}
	e.messages.Add(1)
	e.bytes.Add(int64(len(out.Body)))
	e.events.Add(int64(events))
	if err == nil {
		return nil
	}
	return e.refuse(ctx, p, m, events, err)
}

// full reports whether as much waits in the queue as may, by number or, taking the average, by
// size.
func (e *Engine) full(q *memory.Queue) bool {
	waiting := int64(q.Counts().Total())
	return waiting >= maxBacklog || waiting > 0 && waiting*(e.bytes.Load()/max(e.messages.Load(), 1)) >= maxBacklogBytes
}

// refuse parks a message that the queue does not take: too large, or empty.
func (e *Engine) refuse(ctx context.Context, p *pipe, m queue.Message, events int, why error) error {
	m.ID = fmt.Sprintf("refused-%d", e.refused.Add(1))
	problem := "body: " + why.Error()
	if errors.Is(why, queue.ErrTooLarge) {
		problem = fmt.Sprintf("body: %d bytes with its attributes, a message may have %d: send the payload by dataref",
			queue.Bytes(m.Body, m.Attributes), queue.MaxBytes)
	}
	l := deadletter.New(m, deadletter.Undecodable, problem, "", "", 0, e.clk.Now())
	l.Sink, l.Lane = p.name, string(flight.Live)
	step := journal.DeadLettered
	if e.cfg.DeadLetters == config.DeadLettersNone {
		step, l.ID = journal.Dropped, ""
	} else if _, err := e.Letters.Park(ctx, l); err != nil {
		return fmt.Errorf("park a refused message: %w", err)
	}
	for i := range events {
		e.notes.Note(journal.Note{
			Step: step, At: e.clk.Now(), Sink: p.name, Lane: string(flight.Live), Message: m.ID, Event: i, Sent: m.Sent,
			Letter: l.ID, Detail: string(deadletter.Undecodable) + ": " + problem,
		})
	}
	return nil
}

// Play publishes an input's messages at their times.
func (e *Engine) Play(ctx context.Context, in Input) error {
	return play(ctx, e.clk, in, func(ctx context.Context, t Timed) error { return e.Publish(ctx, t.Outgoing) })
}

// Idle reports whether nothing waits, is held or runs. Scheduled events do not count.
func (e *Engine) Idle() bool {
	delayed := 0
	for _, name := range e.order {
		p := e.pipes[name]
		// In this order: a message leaves the queue only after whatever it caused has begun.
		before, late := p.waiting()
		if before > 0 || p.machine.Running() > 0 || p.dead.Counts().Total() > 0 {
			return false
		}
		if after, _ := p.waiting(); after > 0 {
			return false
		}
		delayed += late
	}
	return delayed <= e.awaited()
}

// awaited is how many scheduled events are in the queues, as copies that have not come to their
// end. The others are stored: what else is delayed counts.
func (e *Engine) awaited() int { return max(e.ledger.scheduled()-e.Schedule.Len(), 0) }

// waiting counts the messages of both lanes, the delayed ones apart: copies of scheduled events
// wait in the queue for their last minutes.
func (p *pipe) waiting() (n, delayed int) {
	l, b := p.live.Counts(), p.bulk.Counts()
	return l.Visible + l.InFlight + b.Visible + b.InFlight, l.Delayed + b.Delayed
}

// Settle waits until the engine is idle. It looks every tenth of a second of the engine's time.
func (e *Engine) Settle(ctx context.Context) error {
	for !e.Idle() {
		if err := e.clk.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// Left is how many messages are not settled.
func (e *Engine) Left() int {
	n := 0
	for _, name := range e.order {
		p := e.pipes[name]
		waiting, delayed := p.waiting()
		n += waiting + delayed + p.dead.Counts().Total()
	}
	return max(n-e.awaited(), 0)
}

// Report adds up what happened so far.
func (e *Engine) Report(ctx context.Context) (Report, error) {
	r := Report{
		Messages: int(e.messages.Load()), Events: int(e.events.Load()), Bursts: e.bursts.Bursts(),
		Turns: e.Meter.Turns.Load(), RowWrites: e.Meter.RowWrites.Load(), RowReads: e.Meter.RowReads.Load(),
		SinkCalls: e.Meter.SinkCalls.Load(), SinkItems: e.Meter.SinkItems.Load(), DeadLetters: []DeadLine{},
	}
	e.ledger.fill(&r)
	cursor := ""
	for {
		facts, next, err := e.Letters.List(ctx, deadletter.Filter{}, cursor, 1000)
		if err != nil {
			return r, fmt.Errorf("list dead letters: %w", err)
		}
		for _, f := range facts {
			if f.Shown(e.clk.Now(), e.cfg.Queues.DeadLetterRetention) != deadletter.Parked {
				continue // it was sent again: prune takes it away once its version is committed
			}
			r.DeadLetters = append(r.DeadLetters, DeadLine{
				Key: string(f.Doc), Reason: string(f.Reason),
				MessageID: f.MessageID,
			})
		}
		if cursor = next; cursor == "" {
			return r, nil
		}
	}
}

// message is the input as a queue would deliver it.
func (t Timed) message() queue.Message { return queue.Message{Body: t.Body, Attributes: t.Attributes} }
