// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
)

// maxStreams is how many streams of events may be open at once. Each page opens one stream. The
// same number of answers in several lines may run at the same time. The two limits are separate, so
// that open pages cannot block What if or a redrive.
const maxStreams = 64

// patience is how long a page that reads nothing may block a stream. keepAliveEvery is how often a
// stream sends a comment if there is nothing new, so that the connection stays open.
const (
	patience       = 20 * time.Second
	keepAliveEvery = 15 * time.Second
)

// tick is the status of a stack as a page receives it, at most once in each interval of
// Mode.statusInterval.
type tick struct {
	Boot   string          `json:"boot"`
	Now    time.Time       `json:"now"` // the time of the stack's clock
	Status *operate.Status `json:"status,omitempty"`
	Error  string          `json:"error,omitempty"` // why there is no status
}

// tick reads the status. Only one tick is read at a time: see live.
func (c *console) tick(ctx context.Context) tick {
	t := tick{Boot: c.boot, Now: c.Clock.Now().UTC()}
	if s, err := c.API.Status(ctx); err != nil {
		t.Error = errorText(err, reader)
	} else {
		c.began.fix(ctx, c.Meter, t.Now, s.Sinks)
		t.Status = &s
	}
	return t
}

// live reads the status once for all open pages: within one interval, all pages get the same tick.
// It reads no status while no page is open.
type live struct {
	every time.Duration
	ask   func(context.Context) tick

	mu   sync.Mutex
	last tick
	at   time.Time // when last was read
}

// newest returns the newest tick, and the time until the next tick is due. So all pages ask again
// at the same time.
func (l *live) newest(ctx context.Context) (tick, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() || time.Since(l.at) >= l.every {
		t := l.ask(ctx)
		if ctx.Err() != nil {
			return t, 0 // this page was closed, and its tick is not kept for the other pages
		}
		l.last, l.at = t, time.Now()
	}
	return l.last, l.every - time.Since(l.at)
}

// watch sends a tick at each interval, until ctx ends.
func (l *live) watch(ctx context.Context) <-chan tick {
	ticks := make(chan tick)
	go func() {
		for ctx.Err() == nil {
			t, holds := l.newest(ctx)
			select {
			case ticks <- t:
			case <-ctx.Done():
			}
			_ = clock.System{}.Sleep(ctx, holds) // returns early if ctx ends
		}
	}()
	return ticks
}

// events answers with server-sent events: a tick each time the status changes.
func (c *console) events(w http.ResponseWriter, r *http.Request) {
	out, end, err := open(w, c.pages, "text/event-stream")
	if err != nil {
		failed(w, err, reader)
		return
	}
	defer end()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	ticks := c.live.watch(ctx)
	still := time.NewTicker(keepAliveEvery)
	defer still.Stop()
	var told []byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-still.C:
			if out.write([]byte(": alive\n\n")) != nil {
				return
			}
		case t := <-ticks:
			line, err := json.Marshal(t)
			t.Now = time.Time{}
			same, _ := json.Marshal(t)
			if err != nil || bytes.Equal(same, told) {
				continue
			}
			told = same
			if out.write(fmt.Appendf(nil, "data: %s\n\n", line)) != nil {
				return
			}
		}
	}
}

// stream is an answer that is sent in parts.
type stream struct {
	to  http.ResponseWriter
	ctl *http.ResponseController
}

// open starts a stream, unless too many are open. The time limit for reading a request does not
// apply to the stream.
func open(w http.ResponseWriter, room chan struct{}, kind string) (s *stream, end func(), err error) {
	select {
	case room <- struct{}{}:
	default:
		return nil, nil, Problemf(http.StatusServiceUnavailable,
			"%d pages are open or ask: close some of them", maxStreams)
	}
	s = &stream{w, http.NewResponseController(w)}
	_ = s.ctl.SetReadDeadline(time.Time{}) // fails for the recorder of a test, which has no deadline
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	_ = s.ctl.Flush()
	return s, func() { <-room }, nil
}

// longAnswer is an answer that takes a long time. It calls say for each line of JSON.
type longAnswer func(ctx context.Context, say func(line any))

// lines answers a request with the lines of f's answer, or with f's error. The context of the
// answer ends with the request. It also ends if a write fails because the client does not read.
func (c *console) lines(who role, f func(r *http.Request) (longAnswer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tell, err := f(r)
		if err != nil {
			failed(w, err, who)
			return
		}
		out, end, err := open(w, c.answers, "application/x-ndjson")
		if err != nil {
			failed(w, err, who)
			return
		}
		defer end()
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		tell(ctx, func(line any) {
			text, err := json.Marshal(line)
			if err == nil {
				err = out.write(append(text, '\n'))
			}
			if err != nil {
				stop() // the client is gone
			}
		})
	}
}

// write sends b at once. An error means that the client does not read.
func (s *stream) write(b []byte) error {
	_ = s.ctl.SetWriteDeadline(time.Now().Add(patience)) // fails for the recorder of a test, which has no deadline
	if _, err := s.to.Write(b); err != nil {
		return err
	}
	return s.ctl.Flush()
}
