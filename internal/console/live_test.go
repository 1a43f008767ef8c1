// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
)

// pulse is a stack that counts the calls of its method Status.
type pulse struct {
	asked   atomic.Int64
	letters atomic.Int64
	denied  atomic.Bool
}

func (p *pulse) Status(context.Context) (operate.Status, error) {
	p.asked.Add(1)
	if p.denied.Load() {
		return operate.Status{}, deniedError{}
	}
	return operate.Status{Letters: int(p.letters.Load())}, nil
}

// watchEvents reads the events of a console line by line, until ctx ends.
func watchEvents(ctx context.Context, h http.Handler) <-chan string {
	in, out := io.Pipe()
	lines := make(chan string, 1000)
	go func() {
		r := httptest.NewRequest(http.MethodGet, "/console/events", nil).WithContext(ctx)
		h.ServeHTTP(&flusher{ResponseRecorder: httptest.NewRecorder(), to: out}, r)
		_ = out.Close()
	}()
	go func() {
		for s := bufio.NewScanner(in); s.Scan(); {
			if s.Text() != "" {
				lines <- s.Text()
			}
		}
		close(lines)
	}()
	return lines
}

// flusher is an answer that can be read before it has ended.
type flusher struct {
	*httptest.ResponseRecorder
	to io.Writer
}

func (f *flusher) Write(b []byte) (int, error) { return f.to.Write(b) }

// linesSoFar returns the lines that have arrived.
func linesSoFar(lines <-chan string) (all []string) {
	synctest.Wait()
	for {
		select {
		case l, ok := <-lines:
			if !ok {
				return all
			}
			all = append(all, l)
		default:
			return all
		}
	}
}

func TestTheStatusIsReadOnceForAllOpenPages(t *testing.T) {
	t.Parallel()
	for mode, every := range map[Mode]time.Duration{Dev: time.Second, AWS: 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := &pulse{}
			h := New(Options{API: operatetest.API(operate.API{}, p), Mode: mode, Clock: clock.System{}})
			time.Sleep(time.Minute)
			if n := p.asked.Load(); n != 0 {
				t.Errorf("%s: read %d times before a page was open, want 0", mode, n)
			}
			ctx, leave := context.WithCancel(t.Context())
			first, second := watchEvents(ctx, h), watchEvents(ctx, h)
			time.Sleep(10*every - every/2)
			if n := p.asked.Load(); n != 10 {
				t.Errorf("%s: read %d times in %s for two pages, want 10", mode, n, 10*every)
			}
			p.letters.Store(1)
			time.Sleep(every)
			for _, lines := range []<-chan string{first, second} {
				var data int
				for _, l := range linesSoFar(lines) {
					if strings.HasPrefix(l, "data: ") {
						data++
					} else if l != ": alive" {
						t.Errorf("%s: line %q", mode, l)
					}
				}
				if data != 2 {
					t.Errorf("%s: a page got %d ticks, want 2: at the beginning and at the change", mode, data)
				}
			}
			leave()
			synctest.Wait()
			asked := p.asked.Load()
			if time.Sleep(time.Hour); p.asked.Load() != asked {
				t.Errorf("%s: read %d times after all pages were closed, want 0", mode, p.asked.Load()-asked)
			}
			again, leave := context.WithCancel(t.Context())
			if lines := watchEvents(again, h); len(linesSoFar(lines)) != 1 {
				t.Errorf("%s: a page that was opened later got no tick", mode)
			}
			leave()
			synctest.Wait()
		})
	}
}

// A page computes the stack's time from a tick, so all pages get a tick at the same time.
func TestAllPagesGetATickAtTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{}
		h := New(Options{API: operatetest.API(operate.API{}, p), Clock: clock.System{}})
		first := watchEvents(t.Context(), h)
		time.Sleep(time.Second / 2)
		second := watchEvents(t.Context(), h)
		time.Sleep(time.Second / 4)
		p.letters.Store(1)
		time.Sleep(time.Second / 2)
		a, b := linesSoFar(first), linesSoFar(second)
		if len(a) != 2 || !slices.Equal(a, b) {
			t.Errorf("a quarter of a second after the change: the first page got %q, the second page %q", a, b)
		}
	})
}

func TestADeniedStatusSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{}
		p.denied.Store(true)
		ctx, leave := context.WithCancel(t.Context())
		lines := linesSoFar(
			watchEvents(ctx, New(Options{API: operatetest.API(operate.API{}, p), Clock: clock.System{}})),
		)
		var got tick
		if err := json.Unmarshal([]byte(strings.TrimPrefix(strings.Join(lines, ""), "data: ")), &got); err != nil ||
			got.Status != nil || !strings.Contains(got.Error, "dynamodb:Query") {
			t.Errorf("told %q: %+v, %v", lines, got, err)
		}
		leave()
		synctest.Wait()
	})
}

func TestTheNumberOfStreamsIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{API: operatetest.API(operate.API{}, &pulse{}), Clock: clock.System{}, Simulator: &simulator{}})
		ctx, leave := context.WithCancel(t.Context())
		for range maxStreams {
			watchEvents(ctx, h)
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/events", nil))
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "close some") {
			t.Errorf("one more: %d %s", w.Code, w.Body)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/console/whatif", strings.NewReader("{}")))
		if w.Code != http.StatusOK {
			t.Errorf("What if beside them: %d %s", w.Code, w.Body)
		}
		leave()
		synctest.Wait()
		last, end := context.WithCancel(t.Context())
		if lines := linesSoFar(watchEvents(last, h)); len(lines) != 1 {
			t.Errorf("after the others have left: %q", lines)
		}
		end()
		synctest.Wait()
	})
}

// A request must arrive within a minute. A stream continues after that.
func TestAStreamOutlivesTheTimeOfARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{}
		sender, hangUp := serve(t, New(Options{API: operatetest.API(operate.API{}, p), Clock: clock.System{}}))
		usecasetest.Must(io.WriteString(sender, "GET /console/events HTTP/1.1\r\nHost: localhost\r\n\r\n"))(t)
		lines := make(chan string, 1000)
		go func() {
			for s := bufio.NewScanner(sender); s.Scan(); {
				lines <- s.Text()
			}
			close(lines)
		}()
		time.Sleep(10 * requestTimeout)
		p.letters.Store(7)
		time.Sleep(2 * time.Second)
		if all := strings.Join(linesSoFar(lines), "\n"); !strings.Contains(all, `"dead_letters":7`) {
			t.Errorf("after ten minutes: %.300s", all)
		}
		hangUp()
	})
}
