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
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
)

// pulse is a stack whose status counts its calls.
type pulse struct {
	operate.API
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

// look reads the events of a console line by line, until ctx ends.
func look(ctx context.Context, h http.Handler) <-chan string {
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

// said returns the lines so far.
func said(lines <-chan string) (all []string) {
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

func TestAStackIsAskedOnceForAllWhoLookAndNotWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	for mode, every := range map[Mode]time.Duration{Dev: time.Second, AWS: 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := &pulse{}
			h := New(Options{API: p, Mode: mode, Clock: clock.System{}})
			time.Sleep(time.Minute)
			if n := p.asked.Load(); n != 0 {
				t.Errorf("%s: asked %d times before anybody looked", mode, n)
			}
			ctx, leave := context.WithCancel(t.Context())
			first, second := look(ctx, h), look(ctx, h)
			time.Sleep(10*every - every/2)
			if n := p.asked.Load(); n != 10 {
				t.Errorf("%s: asked %d times in %s for two who look, want 10", mode, n, 10*every)
			}
			p.letters.Store(1)
			time.Sleep(every)
			for _, lines := range []<-chan string{first, second} {
				var data int
				for _, l := range said(lines) {
					if strings.HasPrefix(l, "data: ") {
						data++
					} else if l != ": alive" {
						t.Errorf("%s: line %q", mode, l)
					}
				}
				if data != 2 {
					t.Errorf("%s: told %d times, want at the beginning and at the change", mode, data)
				}
			}
			leave()
			synctest.Wait()
			asked := p.asked.Load()
			if time.Sleep(time.Hour); p.asked.Load() != asked {
				t.Errorf("%s: asked %d times after all had left", mode, p.asked.Load()-asked)
			}
			again, leave := context.WithCancel(t.Context())
			if lines := look(again, h); len(said(lines)) != 1 {
				t.Errorf("%s: who looks again is told nothing", mode)
			}
			leave()
			synctest.Wait()
		})
	}
}

// A page computes the stack's time from a tick, so all pages get a tick at the same time.
func TestWhoBeganToLookLaterIsToldAtTheSameMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{}
		h := New(Options{API: p, Clock: clock.System{}})
		first := look(t.Context(), h)
		time.Sleep(time.Second / 2)
		second := look(t.Context(), h)
		time.Sleep(time.Second / 4)
		p.letters.Store(1)
		time.Sleep(time.Second / 2)
		a, b := said(first), said(second)
		if len(a) != 2 || !slices.Equal(a, b) {
			t.Errorf("a quarter of a second after the change was seen: told %q, and %q who came later", a, b)
		}
	})
}

func TestALookThatIsDeniedSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pulse{}
		p.denied.Store(true)
		ctx, leave := context.WithCancel(t.Context())
		lines := said(look(ctx, New(Options{API: p, Clock: clock.System{}})))
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
		h := New(Options{API: &pulse{}, Clock: clock.System{}, Simulator: &simulator{}})
		ctx, leave := context.WithCancel(t.Context())
		for range maxStreams {
			look(ctx, h)
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
		if lines := said(look(last, h)); len(lines) != 1 {
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
		sender, hangUp := serve(t, New(Options{API: p, Clock: clock.System{}}))
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
		if all := strings.Join(said(lines), "\n"); !strings.Contains(all, `"dead_letters":7`) {
			t.Errorf("after ten minutes: %.300s", all)
		}
		hangUp()
	})
}
