package feed

import (
	"context"
	"errors"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
)

// How much of an input is read before its time. Lines of the input may be out of order by up to
// that much.
const (
	lookahead      = 50_000   // messages
	lookaheadBytes = 64 << 20 // of bodies
)

// after_ms counts from the first pause of a live input that lasts a breath, at the latest from a
// few breaths after its start. Both are real time.
const (
	breath  = 50 * time.Millisecond
	breaths = 10
)

// player sends an input's messages at their times.
type player struct {
	clk    clock.Clock
	read   <-chan reading
	live   bool
	ended  bool
	ahead  []*Timed // by time, then as in the input
	bytes  int
	failed error // the error of the input; messages read before it are not sent
}

// reading is the answer of one Next.
type reading struct {
	t   Timed
	err error
}

// Play sends an input's messages at their times until it ends. It stops at an error of the input,
// which names the line.
func Play(ctx context.Context, clk clock.Clock, in Input, send func(context.Context, Timed) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &player{clk: clk, read: readAhead(ctx, in)}
	if l, ok := in.(*lines); ok {
		p.live = l.slow
	}
	if p.live {
		p.begin(ctx)
	}
	for start := clk.Now(); ; {
		if err := p.fill(ctx); err != nil {
			return err
		}
		if len(p.ahead) == 0 { // the input has ended, because fill waits for a message otherwise
			return nil
		}
		wait := p.ahead[0].After - clk.Now().Sub(start)
		if wait > 0 {
			if more, err := p.wait(ctx, wait); err != nil {
				return err
			} else if more {
				continue // perhaps something earlier
			}
		}
		next := p.ahead[0]
		p.ahead[0] = nil // free its memory
		p.ahead = p.ahead[1:]
		p.bytes -= len(next.Body)
		if err := send(ctx, *next); err != nil {
			return err
		}
	}
}

// readAhead reads in a goroutine of its own, which ends with ctx or the input. So the player never
// waits for an input that is slow or never ends.
func readAhead(ctx context.Context, in Input) <-chan reading {
	read := make(chan reading, 64)
	go func() {
		for {
			t, err := in.Next()
			select {
			case read <- reading{t, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return read
}

// begin reads the messages that a live input has at its start.
func (p *player) begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, breaths*breath)
	defer cancel()
	for p.room() {
		select {
		case r := <-p.read:
			p.take(r)
		case <-time.After(breath):
			return
		case <-ctx.Done():
			return
		}
	}
}

func (p *player) room() bool {
	return !p.ended && p.failed == nil && len(p.ahead) < lookahead && p.bytes < lookaheadBytes
}

func (p *player) take(r reading) {
	switch {
	case errors.Is(r.err, io.EOF):
		p.ended = true
	case r.err != nil:
		p.failed = r.err
	default:
		p.bytes += len(r.t.Body)
		later := sort.Search(len(p.ahead), func(i int) bool { return p.ahead[i].After > r.t.After })
		p.ahead = slices.Insert(p.ahead, later, &r.t)
	}
}

// fill reads ahead while there is room. From a live input it takes only the messages that are
// ready. It waits for a message if there is none to send.
func (p *player) fill(ctx context.Context) error {
	for p.room() {
		if p.live && len(p.ahead) > 0 {
			select {
			case r := <-p.read:
				p.take(r)
				continue
			default:
				return ctx.Err()
			}
		}
		select {
		case r := <-p.read:
			p.take(r)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return p.failed
}

// wait waits for d, or until a live input has another message.
func (p *player) wait(ctx context.Context, d time.Duration) (more bool, err error) {
	if !p.live || !p.room() {
		return false, p.clk.Sleep(ctx, d)
	}
	timed, cancel := p.clk.Deadline(ctx, d)
	defer cancel()
	select {
	case r := <-p.read:
		p.take(r)
		return true, nil
	case <-timed.Done():
		return false, ctx.Err()
	}
}
