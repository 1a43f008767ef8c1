// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Broker is the upstream: the source of the messages.
type Broker interface {
	// Open connects and begins to consume. Some errors need an operator, such as wrong credentials
	// or a missing queue. These are permanent in package backoff, and say what to do.
	Open(ctx context.Context) (Session, error)
}

// Session is one connection that consumes messages. Its methods are safe for concurrent use.
type Session interface {
	// Messages returns the delivered messages. The channel is closed when the session ends. After
	// Stop it is closed once the messages delivered before have been read.
	Messages() <-chan Message
	// Confirm tells the broker that a message is stored elsewhere. The broker then deletes the
	// message.
	Confirm(m Message) error
	// Park stores a message, with the reason, in the queue for parked messages. It returns once the
	// broker has stored it. The error is ErrNoPark if there is no such queue.
	Park(ctx context.Context, m Message, why string) error
	// Stop ends the delivery of further messages.
	Stop() error
	// Done is closed when the session has ended, for any reason.
	Done() <-chan struct{}
	// Err says why the session ended. It is nil while the session runs, and after Close.
	Err() error
	// Close ends the session within seconds. The broker delivers all unconfirmed messages again.
	Close()
}

// Ended is the error of a session, or of Open, after which the bridge must not connect again. Err
// says why. It is nil if all messages were delivered and confirmed.
type Ended struct{ Err error }

// Error implements error.
func (e *Ended) Error() string {
	if e.Err == nil {
		return "all messages were sent"
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Ended) Unwrap() error { return e.Err }

// Reporter is a Broker that says more about the upstream than its messages do.
type Reporter interface {
	// Report returns facts for the log and for the health, and what is wrong, or "". It does not
	// wait.
	Report() (facts []slog.Attr, problem string)
}

// ErrNoPark says that there is no queue for parked messages. An error that wraps it says what to
// do.
var ErrNoPark = errors.New("no queue to park messages in")

// Payloads stores bodies that are too large for the queue.
type Payloads interface {
	// Put stores a body and returns its place. Equal bodies have the same place.
	Put(ctx context.Context, body []byte) (bucket, key string, err error)
}

// Options configure a bridge. All fields are required, except Parts, PartOf, Payloads, Source and
// Group.
type Options struct {
	Broker Broker
	// Send sends messages to lull's queue, in the stack of a part. It returns errors like
	// [queue.Queue]: if an error is nil, the queue has stored that message.
	Send func(ctx context.Context, part int, out []queue.Outgoing) []error
	// Parts is the number of parts, each with a queue of its own; 0 for one. PartOf returns the
	// part of a message, whose body is whole. It is nil for a single part. An error says why the
	// message can be sent to no part.
	Parts    int
	PartOf   func(out queue.Outgoing) (part int, err error)
	Payloads Payloads // nil for none
	// Source and Group are the attributes lull-source and lull-group, empty for none.
	Source, Group string
	// Drain is how long a bridge that must stop may still send messages that were already
	// delivered.
	Drain time.Duration
	Clock clock.Clock
	Log   *slog.Logger
}

// Bridge moves messages from a broker to a queue of lull.
type Bridge struct {
	o      Options
	turns  chan struct{} // one for each batch that is being sent
	status status
}

// New returns a bridge. [Bridge.Run] starts it.
func New(o Options) *Bridge {
	b := &Bridge{o: o, turns: make(chan struct{}, parallel)}
	b.status.waiting = map[uint64]time.Time{}
	return b
}

const (
	// parallel is how many batches are sent at the same time. Batches that wait for a retry do not
	// count, because the prefetch bounds them.
	parallel = 8
	// linger is how long a batch that is not full waits for another message. lull waits for seconds
	// anyway, and full batches cost a tenth.
	linger = 50 * time.Millisecond
	// settled is how long a session must last to count as successful. After it, the bridge connects
	// again at once, without a back-off.
	settled = 30 * time.Second
)

// retry is the back-off for connections and calls. In the meantime the broker keeps the messages.
var retry = backoff.Policy{Min: time.Second, Max: 30 * time.Second}

// Run moves messages until ctx ends, or the upstream says with [Ended] that it must stop. After ctx
// ended, it still moves the messages that were already delivered, for at most Drain. It returns an
// error if an operator must fix the connection before the bridge has connected once, and the error
// of Ended. All other errors are logged and retried.
func (b *Bridge) Run(ctx context.Context) error {
	ticking, stop := context.WithCancel(ctx)
	var ticks sync.WaitGroup
	ticks.Go(func() { b.minutes(ticking) })
	defer ticks.Wait()
	defer stop()
	before := false
	defer func() {
		if before {
			b.line("ended", b.Health().Counts)
		}
	}()
	for try := 0; ctx.Err() == nil; try++ {
		s, err := b.o.Broker.Open(ctx)
		if err == nil {
			before = true
			began := b.o.Clock.Now()
			b.status.connect()
			b.o.Log.Info("consuming")
			err = b.session(ctx, s)
			b.status.disconnect(b.o.Clock.Now())
			if ctx.Err() != nil {
				return nil
			}
			if b.o.Clock.Now().Sub(began) > settled {
				try = 0
			}
		}
		var ended *Ended
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &ended):
			return ended.Err
		case !before && backoff.Final(err):
			return err
		}
		wait := retry.Delay(try)
		b.o.Log.Warn("not consuming: connecting again", "error", err, "wait", wait.Round(time.Millisecond).String())
		_ = b.o.Clock.Sleep(ctx, wait) // ends early with ctx, which the loop checks
	}
	return nil
}

// session moves the messages of one connection.
func (b *Bridge) session(ctx context.Context, s Session) error {
	// Work continues for a bounded time after ctx ended. The broker delivers the remaining messages
	// again to the next consumer.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var beside sync.WaitGroup
	after := func(end <-chan struct{}, do func()) {
		beside.Go(func() {
			select {
			case <-end:
				do()
			case <-work.Done():
			}
		})
	}
	after(s.Done(), cancel) // after the session, the broker accepts no confirmations
	after(ctx.Done(), func() {
		if s.Stop() != nil {
			cancel()
		}
	})
	after(ctx.Done(), func() {
		_ = b.o.Clock.Sleep(work, b.o.Drain) // returns early if the work ends
		cancel()
	})
	b.pump(work, s)
	err := s.Err()
	cancel()
	s.Close()
	beside.Wait()
	return err
}

// pump moves messages until the session or ctx has ended.
func (b *Bridge) pump(ctx context.Context, s Session) {
	var sending sync.WaitGroup
	defer sending.Wait()
	for more := true; more; {
		var batch []Message
		if batch, more = b.gather(ctx, s.Messages()); len(batch) > 0 {
			sending.Go(func() { b.move(ctx, s, batch) })
		}
	}
}

// gather waits for a message, and then for linger for more messages. more is false once the session
// has ended.
func (b *Bridge) gather(ctx context.Context, from <-chan Message) (batch []Message, more bool) {
	until, done := ctx, func() {} // after the first message, until ends when linger has passed
	defer func() { done() }()
	for len(batch) < queue.MaxEntries*max(b.o.Parts, 1) {
		select {
		case m, ok := <-from:
			if !ok {
				return batch, false
			}
			b.status.received(m, b.o.Clock.Now())
			if batch = append(batch, m); len(batch) == 1 {
				until, done = b.o.Clock.Deadline(ctx, linger)
			}
		case <-until.Done():
			return batch, ctx.Err() == nil
		}
	}
	return batch, true
}
