package bridge

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/queue"
)

// Broker is where messages come from.
type Broker interface {
	// Open connects and begins to consume. An error that package backoff calls final needs a person,
	// such as wrong credentials or a queue that does not exist; it says what to do.
	Open(ctx context.Context) (Session, error)
}

// Session is one connection that consumes. Its methods are safe for concurrent use.
type Session interface {
	// Messages are the deliveries. The channel ends with the session, and after Stop once what was
	// delivered before has been taken.
	Messages() <-chan Message
	// Confirm tells the broker that a message is safe elsewhere: it forgets the message.
	Confirm(m Message) error
	// Park keeps a message, with the reason, in the queue for such ones, and returns once the broker
	// has it there for good. ErrNoPark where there is none.
	Park(ctx context.Context, m Message, why string) error
	// Stop asks for no more deliveries.
	Stop() error
	// Done is closed when the session has ended, for whatever reason.
	Done() <-chan struct{}
	// Err says why the session ended, nil while it goes on or where it was closed.
	Err() error
	// Close ends the session within seconds. The broker delivers again what was not confirmed.
	Close()
}

// ErrNoPark says that there is no place to park messages.
var ErrNoPark = errors.New("no queue to park messages in")

// Payloads keeps bodies that are too large for the queue.
type Payloads interface {
	// Put keeps a body and says where. The same body has the same place.
	Put(ctx context.Context, body []byte) (bucket, key string, err error)
}

// Options are what a bridge needs. All but Payloads, Source and Group are required.
type Options struct {
	Broker Broker
	// Send sends messages to lull's queue. Its answer is that of [queue.Queue]: a message whose error
	// is nil is safe there.
	Send     func(ctx context.Context, out []queue.Outgoing) []error
	Payloads Payloads // nil for none
	// Source and Group are the attributes lull-source and lull-group, empty for none.
	Source, Group string
	// Drain is how long messages that were delivered may still be sent after the end was asked for.
	Drain time.Duration
	Clock clock.Clock
	Log   *slog.Logger
}

// Bridge moves messages.
type Bridge struct {
	o      Options
	turns  chan struct{} // one for each batch that is sent now
	status status
}

// New returns a bridge that [Bridge.Run] sets going.
func New(o Options) *Bridge {
	b := &Bridge{o: o, turns: make(chan struct{}, parallel)}
	b.status.waiting = map[uint64]time.Time{}
	return b
}

const (
	// parallel is how many batches are sent at the same time. Those that wait for another try do not
	// count: the prefetch bounds them.
	parallel = 8
	// linger is how long a batch that is not full waits for another message. lull waits for seconds
	// anyway, and full batches cost a tenth.
	linger = 50 * time.Millisecond
	// settled is how long a session must have lasted to count as a good one: the next connection
	// is then tried at once.
	settled = 30 * time.Second
)

// retry is the back-off of connections and of calls: the broker keeps the messages meanwhile.
var retry = backoff.Policy{Min: time.Second, Max: 30 * time.Second}

// Run moves messages until ctx ends, and then what was delivered already. Its error is one of the
// first connection that needs a person. Later ones are logged and tried again.
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
		switch {
		case ctx.Err() != nil:
			return nil
		case !before && backoff.Final(err):
			return err
		}
		wait := retry.Delay(try)
		b.o.Log.Warn("not consuming: connecting again", "error", err, "wait", wait.Round(time.Millisecond).String())
		_ = b.o.Clock.Sleep(ctx, wait) // ends early with ctx, which the loop asks for
	}
	return nil
}

// session moves the messages of one connection.
func (b *Bridge) session(ctx context.Context, s Session) error {
	// Work goes on after the end was asked for, as long as it may. What it does not reach is delivered
	// again to whoever consumes next.
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
	after(s.Done(), cancel) // nothing can be confirmed any more
	after(ctx.Done(), func() {
		if s.Stop() != nil {
			cancel()
		}
	})
	after(ctx.Done(), func() {
		_ = b.o.Clock.Sleep(work, b.o.Drain) // ends early with the work
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

// gather waits for a message, and a moment for others. more is false once the session has ended.
func (b *Bridge) gather(ctx context.Context, from <-chan Message) (batch []Message, more bool) {
	until, done := ctx, func() {} // the end of the moment, once there is a message
	defer func() { done() }()
	for len(batch) < queue.MaxEntries {
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
