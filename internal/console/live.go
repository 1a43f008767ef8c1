package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/operate"
)

// maxStreams is how many streams are answered at once: a page has one, and one more while it sends
// dead letters again.
const maxStreams = 64

// How long a page that reads nothing keeps a stream, and how often a stream without news says that
// it is alive.
const (
	patience = 20 * time.Second
	alive    = 15 * time.Second
)

// tick is what a page is told each second, or each few seconds of a deployed stack.
type tick struct {
	Boot   string          `json:"boot"`
	Now    time.Time       `json:"now"` // by the stack's clock
	Status *operate.Status `json:"status,omitempty"`
	Error  string          `json:"error,omitempty"` // instead of the status
}

func (c *console) tick(ctx context.Context) tick {
	t := tick{Boot: c.boot, Now: c.Clock.Now().UTC()}
	if s, err := c.API.Status(ctx); err != nil {
		t.Error = sentence(err, reader)
	} else {
		t.Status = &s
	}
	return t
}

// live asks for a tick, once for all who look: whoever asks sooner than every gets the last one.
// Where nobody looks, nobody asks.
type live struct {
	every time.Duration
	ask   func(context.Context) tick

	mu   sync.Mutex
	last tick
	at   time.Time // of last
}

// newest is the newest tick, and for how long it is that: all who look ask again at one moment.
func (l *live) newest(ctx context.Context) (tick, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() || time.Since(l.at) >= l.every {
		t := l.ask(ctx)
		if ctx.Err() != nil {
			return t, 0 // its page has left: the others ask for themselves
		}
		l.last, l.at = t, time.Now()
	}
	return l.last, l.every - time.Since(l.at)
}

// watch returns the ticks from now on, until ctx ends.
func (l *live) watch(ctx context.Context) <-chan tick {
	ticks := make(chan tick)
	go func() {
		for ctx.Err() == nil {
			t, holds := l.newest(ctx)
			select {
			case ticks <- t:
			case <-ctx.Done():
			}
			_ = clock.System{}.Sleep(ctx, holds) // or ctx ends
		}
	}()
	return ticks
}

// events answers with server-sent events: the tick, when something has changed.
func (c *console) events(w http.ResponseWriter, r *http.Request) {
	out, end, err := c.open(w, "text/event-stream")
	if err != nil {
		failed(w, err, reader)
		return
	}
	defer end()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	ticks := c.live.watch(ctx)
	still := time.NewTicker(alive)
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

// stream is an answer that goes on.
type stream struct {
	to  http.ResponseWriter
	ctl *http.ResponseController
}

// open begins a stream, as long as there are not too many. What a request may take to arrive does
// not end it.
func (c *console) open(w http.ResponseWriter, kind string) (s *stream, end func(), err error) {
	select {
	case c.streams <- struct{}{}:
	default:
		return nil, nil, Problemf(http.StatusServiceUnavailable, "%d pages are open: close some of them", maxStreams)
	}
	s = &stream{w, http.NewResponseController(w)}
	_ = s.ctl.SetReadDeadline(time.Time{}) // a recorder in a test has none
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	_ = s.ctl.Flush()
	return s, func() { <-c.streams }, nil
}

// long is an answer that takes long: say sends a value as a line of JSON.
type long func(ctx context.Context, say func(line any))

// lines answers line by line with what f makes of a request, or with why it cannot. The context
// ends with the request, and where nobody reads any more.
func (c *console) lines(who role, f func(r *http.Request) (long, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tell, err := f(r)
		if err != nil {
			failed(w, err, who)
			return
		}
		out, end, err := c.open(w, "application/x-ndjson")
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
				stop() // nobody reads
			}
		})
	}
}

// write sends b now. An error says that nobody reads.
func (s *stream) write(b []byte) error {
	_ = s.ctl.SetWriteDeadline(time.Now().Add(patience)) // a recorder in a test has none
	if _, err := s.to.Write(b); err != nil {
		return err
	}
	return s.ctl.Flush()
}
