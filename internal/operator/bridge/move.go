// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/queue"
)

// moving is a message that is being sent.
type moving struct {
	Message
	body  []byte // the body to send: Body, or a reference to it
	part  int    // the part that it is sent to
	never error  // why it can be sent to no part
	err   error  // the error of the last try
	alone bool   // err is about this message alone, because no other was in its call
}

// move sends messages until each is confirmed, parked or held, or ctx ends.
func (b *Bridge) move(ctx context.Context, s Session, batch []Message) {
	left := make([]*moving, len(batch))
	for i, m := range batch {
		left[i] = &moving{Message: m, body: m.Body, part: 1}
		b.assign(left[i])
	}
	for try := 0; ; try++ {
		select {
		case b.turns <- struct{}{}:
		case <-ctx.Done():
			return
		}
		for _, together := range calls(left) {
			b.call(ctx, s, together)
		}
		<-b.turns
		left = slices.DeleteFunc(left, func(m *moving) bool { return b.ended(ctx, s, m) })
		if len(left) == 0 || ctx.Err() != nil {
			return
		}
		if try == 0 && slices.ContainsFunc(left, func(m *moving) bool { return m.unfit() }) {
			continue // unfit messages are retried alone, at once
		}
		wait := retry.Delay(try)
		b.status.failed(len(left))
		b.o.Log.Warn("lull's queue does not accept messages: trying again", "messages", len(left),
			"error", brief(left[0].err), "wait", wait.Round(time.Millisecond).String())
		if b.o.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// assign sets the part of a message. Its body is whole, because a reference does not say which
// documents it is about.
func (b *Bridge) assign(m *moving) {
	if b.o.PartOf == nil {
		return
	}
	part, err := b.o.PartOf(b.outgoing(m, m.Body))
	if m.part = part; err != nil {
		m.never = fmt.Errorf("%w: %w", queue.ErrContent, err)
	}
}

// maxText bounds an error in the log, in bytes.
const maxText = 1024

// brief returns an error as one short line for the log. The error of a whole call may name every
// message.
func brief(err error) string {
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "..."
	}
	return s
}

// calls splits the messages into calls. Each unfit message has its own call, and all others of a
// part share one.
func calls(left []*moving) (calls [][]*moving) {
	together := map[int][]*moving{} // by part
	for _, m := range left {
		if m.unfit() {
			calls = append(calls, []*moving{m})
		} else {
			together[m.part] = append(together[m.part], m)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(together)) {
		calls = append(calls, together[part])
	}
	return calls
}

// unfit reports whether the queue refused a message because of its content. If the call had several
// messages, the refusal may have been about another message.
func (m *moving) unfit() bool {
	return errors.Is(m.err, queue.ErrTooLarge) || errors.Is(m.err, queue.ErrContent)
}

// call sends messages once, and confirms the accepted ones.
func (b *Bridge) call(ctx context.Context, s Session, together []*moving) {
	var send []*moving
	var out []queue.Outgoing
	for _, m := range together {
		next, err := b.fit(ctx, m)
		if m.err = err; err == nil {
			send, out = append(send, m), append(out, next)
		}
		m.alone = err != nil // the error is only about this message
	}
	if len(send) == 0 {
		return
	}
	errs := b.o.Send(ctx, together[0].part, out)
	for i, m := range send {
		m.alone = len(send) == 1
		if m.err = queue.ErrorAt(errs, i); m.err == nil {
			b.status.sentTo(m.part, b.o.Parts)
			b.confirm(s, m.Message, &b.status.count.Confirmed)
		}
	}
}

// fit returns the message in the form for the queue. A body that is too large is stored in
// Payloads, and a reference replaces it. Each try calls fit again, because keeping a copy of each
// waiting body would double the memory.
func (b *Bridge) fit(ctx context.Context, m *moving) (queue.Outgoing, error) {
	out := b.outgoing(m, m.body)
	if m.never != nil {
		return out, m.never
	}
	err := out.Refusal()
	if b.o.Payloads == nil || !errors.Is(err, queue.ErrTooLarge) {
		return out, err
	}
	bucket, key, err := b.o.Payloads.Put(ctx, m.Body)
	if err != nil {
		return out, err
	}
	m.body = reference(bucket, key)
	out = b.outgoing(m, m.body)
	return out, out.Refusal()
}

func (b *Bridge) outgoing(m *moving, body []byte) queue.Outgoing {
	out := m.outgoing(body)
	feed.Mark(&out, b.o.Source, b.o.Group)
	return out
}

// confirm confirms a message to the broker. If that fails, the session is ending, and the broker
// delivers the message again.
func (b *Bridge) confirm(s Session, m Message, counted *int) {
	if err := s.Confirm(m); err != nil {
		b.o.Log.Warn("accepted, but not confirmed: the broker delivers the message again", "error", err)
		return
	}
	b.status.done(m, counted)
}

// ended reports whether a message needs no retry. A message that is unfit even alone is parked.
func (b *Bridge) ended(ctx context.Context, s Session, m *moving) bool {
	if m.err == nil {
		return true
	}
	if !m.unfit() || !m.alone {
		return false
	}
	why := brief(m.err)
	what := append(slices.Clone(m.About), "bytes", len(m.Body), "reason", why)
	switch err := s.Park(ctx, m.Message, why); {
	case errors.Is(err, ErrNoPark):
		b.o.Log.Error("held: lull's queue refuses this message for good; it stays unconfirmed at the upstream",
			append(what, "fix", brief(err))...)
		b.status.hold(m.Message, err)
		return true
	case err != nil:
		m.err = err
		return false
	}
	b.o.Log.Error("parked: lull's queue refuses this message for good", what...)
	b.confirm(s, m.Message, &b.status.count.Parked)
	return true
}
