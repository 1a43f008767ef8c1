// SPDX-License-Identifier: Apache-2.0

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

// How much of an input is read ahead. The lines of the input may be out of order within this part.
const (
	lookahead      = 50_000   // messages
	lookaheadBytes = 64 << 20 // of bodies
)

// In a live input, after_ms counts from the first pause that is as long as breath. If there is no
// such pause, it counts from breaths times breath after the start. Both are real time.
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
	ahead  []*Timed // sorted by time; messages of one time are in the order of the input
	bytes  int
	failed error // the error of the input; messages read before it are not sent
}

// reading is the result of one call of Next.
type reading struct {
	t   Timed
	err error
}

// Play sends the messages of an input at their times, until the input ends. It stops at the first
// error of the input or of send. An error of the input names the line.
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
				continue // the new message may be due earlier
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

// readAhead reads the input in its own goroutine, so that the player never waits for a slow input.
// The goroutine ends with the input. If ctx ends, the goroutine ends after its current read.
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
// ready. If no message was read yet, it waits for one.
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
