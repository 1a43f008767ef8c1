// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ground is a broker and lull's queue, with the state of both.
type ground struct {
	t testing.TB

	mu       sync.Mutex
	waiting  []bridge.Message // at the broker
	parks    bool
	parked   []string
	fails    error   // the error of each call of Park; nil for none
	refuse   []error // the errors of the next connections
	prefetch int
	session  *session

	accepted map[string]int // bodies in lull's queue, and how often
	answer   func(out []queue.Outgoing) []error
	calls    [][]string
	log      bytes.Buffer
}

func newGround(t testing.TB, bodies ...string) *ground {
	g := &ground{t: t, accepted: map[string]int{}, prefetch: 1000, parks: true}
	for _, b := range bodies {
		g.waiting = append(g.waiting,
			bridge.Message{Body: []byte(b), Form: form, About: []any{"routing_key", "guide.major"}})
	}
	return g
}

// form adds an attribute to a message.
func form(body []byte) queue.Outgoing {
	return queue.Outgoing{
		Body: string(body), Attributes: map[string]queue.Attribute{"routing_key": queue.Text("guide.major")},
	}
}

func (g *ground) options() bridge.Options {
	return bridge.Options{
		Broker: g, Drain: 20 * time.Second, Clock: clock.System{},
		Send: func(ctx context.Context, _ int, out []queue.Outgoing) []error { return g.send(ctx, out) },
		Log:  slog.New(slog.NewTextHandler(&g.log, nil)),
	}
}

// Open begins a session that delivers up to prefetch messages.
func (g *ground) Open(context.Context) (bridge.Session, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.refuse) > 0 {
		err := g.refuse[0]
		g.refuse = g.refuse[1:]
		return nil, err
	}
	s := &session{
		g:           g,
		out:         make(chan bridge.Message),
		done:        make(chan struct{}),
		wake:        make(chan struct{}, 1),
		unconfirmed: map[uint64]bridge.Message{},
	}
	g.session = s
	s.running.Go(s.deliver)
	return s, nil
}

// send sends messages to lull's queue.
func (g *ground) send(ctx context.Context, out []queue.Outgoing) []error {
	var errs []error
	g.mu.Lock()
	answer := g.answer
	g.mu.Unlock()
	if answer != nil {
		errs = answer(out)
	}
	if errs != nil && len(errs) == 0 { // no answer at all
		<-ctx.Done()
		return queue.FailAll(len(out), ctx.Err())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var call []string
	for i := range out {
		call = append(call, out[i].Body)
		if err := queue.ErrorAt(errs, i); err == nil || errors.Is(err, errLost) {
			g.accepted[out[i].Body]++
		}
	}
	g.calls = append(g.calls, call)
	return errs
}

// errLost is the error of an entry that the queue accepted, but whose answer was lost.
var errLost = errors.New("no answer")

// session is one connection. At its end, unconfirmed messages return to the broker.
type session struct {
	g           *ground
	out         chan bridge.Message
	done        chan struct{}
	wake        chan struct{}
	running     sync.WaitGroup
	tag         uint64
	unconfirmed map[uint64]bridge.Message
	stopped     bool
	ended       bool
	err         error
}

func (s *session) deliver() {
	defer close(s.out)
	for {
		s.g.mu.Lock()
		var m bridge.Message
		ready := len(s.g.waiting) > 0 && len(s.unconfirmed) < s.g.prefetch && !s.stopped && !s.ended
		if ready {
			m, s.g.waiting = s.g.waiting[0], s.g.waiting[1:]
			s.tag++
			m.Tag = s.tag
			s.unconfirmed[m.Tag] = m
		}
		stopped := s.stopped
		s.g.mu.Unlock()
		switch {
		case ready:
			select {
			case s.out <- m:
			case <-s.done:
				return
			}
		case stopped:
			return
		default:
			select {
			case <-s.wake:
			case <-s.done:
				return
			}
		}
	}
}

func (s *session) Messages() <-chan bridge.Message { return s.out }
func (s *session) Done() <-chan struct{}           { return s.done }
func (s *session) Err() error                      { return s.err }

func (s *session) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Confirm fails the test if the confirmation is early.
func (s *session) Confirm(m bridge.Message) error {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if s.ended {
		return errors.New("the connection is closed")
	}
	kept, ok := s.unconfirmed[m.Tag]
	if !ok {
		s.g.t.Errorf("tag %d is confirmed, but no unconfirmed message has it", m.Tag)
	}
	if s.g.accepted[string(kept.Body)] == 0 && !slices.Contains(s.g.parked, string(kept.Body)) {
		s.g.t.Errorf("message %.40q is confirmed before lull's queue has it", kept.Body)
	}
	delete(s.unconfirmed, m.Tag)
	s.poke()
	return nil
}

func (s *session) Park(_ context.Context, m bridge.Message, why string) error {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if !s.g.parks {
		return bridge.ErrNoPark
	}
	if s.g.fails != nil {
		return s.g.fails
	}
	if why == "" {
		s.g.t.Error("a message is parked without a reason")
	}
	s.g.parked = append(s.g.parked, string(m.Body))
	return nil
}

func (s *session) Stop() error {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	s.stopped = true
	s.poke()
	return nil
}

func (s *session) Close() {
	s.end(nil)
	s.running.Wait()
}

// end closes the connection. The unconfirmed messages return to the broker.
func (s *session) end(err error) {
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	if s.ended {
		return
	}
	s.ended, s.err = true, err
	for _, m := range s.unconfirmed {
		s.g.waiting = append(s.g.waiting, m)
	}
	clear(s.unconfirmed)
	close(s.done)
}

// set calls how with the lock of the ground.
func (g *ground) set(how func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	how()
}

// left returns how many messages the broker has.
func (g *ground) left() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.waiting)
	if g.session != nil && !g.session.ended {
		n += len(g.session.unconfirmed)
	}
	return n
}

func bodies(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(`{"secret body":%d}`, i))
	}
	return all
}
