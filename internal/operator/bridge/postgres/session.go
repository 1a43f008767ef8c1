// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/operator/bridge"
)

// session is what a stream and a copy have in common: it hands messages to the bridge, and notes
// which are confirmed. P is a position in a ledger. One goroutine, the reader, hands messages over.
type session[P any] struct {
	ledger   *ledger[P]
	messages chan bridge.Message
	stop     sync.Once
	stopping chan struct{} // closed by Stop
	end      sync.Once
	done     chan struct{}
	cancel   context.CancelFunc // ends the reader's context
	read     chan struct{}      // closed when the reader has ended

	mu  sync.Mutex
	err error
}

func newSession[P any](prefetch int) *session[P] {
	return &session[P]{
		ledger: newLedger[P](prefetch, mostBytes), messages: make(chan bridge.Message), stopping: make(chan struct{}),
		done: make(chan struct{}), read: make(chan struct{}),
	}
}

// start runs the reader until Close, which ends its context.
func (s *session[P]) start(ctx context.Context, reader func(ctx context.Context)) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // Close calls it
	go func() {
		defer close(s.read)
		reader(ctx)
	}()
}

// errStopped is the end of a reader after Stop.
var errStopped = errors.New("the session was stopped")

// pause waits for a confirmation, for at most d.
func (s *session[P]) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ledger.freed:
	case <-timer.C:
	case <-s.stopping:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// hand passes an event to the bridge. In the meantime it calls alive every second.
func (s *session[P]) hand(ctx context.Context, e *event, alive func() error) error {
	m := e.message()
	m.Tag = s.ledger.add(len(m.Body))
	for {
		timer := time.NewTimer(confirmEvery)
		select {
		case s.messages <- m:
			timer.Stop()
			return nil
		case <-s.stopping:
			return errStopped
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			if err := alive(); err != nil {
				return err
			}
		}
	}
}

// finish ends the session.
func (s *session[P]) finish(err error) {
	s.end.Do(func() {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		close(s.done)
	})
}

// Messages implements [bridge.Session].
func (s *session[P]) Messages() <-chan bridge.Message { return s.messages }

// Done implements [bridge.Session].
func (s *session[P]) Done() <-chan struct{} { return s.done }

// Err implements [bridge.Session].
func (s *session[P]) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Confirm notes that lull's queue has a row.
func (s *session[P]) Confirm(m bridge.Message) error {
	select {
	case <-s.done:
		return errors.New("the session has ended")
	default:
	}
	if !s.ledger.confirm(m.Tag) {
		return fmt.Errorf("no unconfirmed row has tag %d", m.Tag)
	}
	return nil
}

// Park implements [bridge.Session]. PostgreSQL has no place for a row that cannot be sent.
func (s *session[P]) Park(context.Context, bridge.Message, string) error { return errNoPark }

var errNoPark = fmt.Errorf("%w: start the bridge with --payload, a place in S3 for large rows, or leave the large "+
	"column out of the publication; until then PostgreSQL keeps its log from this row on", bridge.ErrNoPark)

// Stop implements [bridge.Session].
func (s *session[P]) Stop() error {
	s.stop.Do(func() { close(s.stopping) })
	return nil
}

// Close implements [bridge.Session].
func (s *session[P]) Close() {
	s.finish(nil)
	s.cancel()
	<-s.read
}
