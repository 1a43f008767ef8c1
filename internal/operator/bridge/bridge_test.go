// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Calls fail as a whole, for some entries, or without an answer. Answers are lost, and connections
// break at any time. But each message arrives, and session.Confirm would notice an early
// confirmation.
func TestNothingIsLostAndNothingIsConfirmedEarly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				all := bodies(300)
				g := newGround(t, all...)
				g.prefetch = 40
				r := rand.New(rand.NewPCG(seed, 0))
				g.answer = func(out []queue.Outgoing) []error {
					g.mu.Lock()
					defer g.mu.Unlock()
					errs := make([]error, len(out))
					switch r.IntN(8) {
					case 0:
						return queue.FailAll(len(out), errors.New("throttled"))
					case 1:
						return queue.FailAll(len(out), backoff.Permanent(errors.New("access denied")))
					case 2:
						return queue.FailAll(len(out), errLost)
					case 3:
						for i := range errs {
							errs[i] = []error{nil, errors.New("internal error"), errLost}[r.IntN(3)]
						}
						return queue.Answer(errs)
					case 4:
						return []error{} // no answer until the caller stops waiting
					}
					return nil
				}
				stop := run(t, bridge.New(g.options()))
				breaks := rand.New(rand.NewPCG(seed, 1))
				for range 200 {
					time.Sleep(time.Duration(breaks.IntN(4000)) * time.Millisecond)
					g.mu.Lock()
					s := g.session
					if breaks.IntN(6) == 0 {
						g.refuse = append(g.refuse, errors.New("connection refused"))
					}
					g.mu.Unlock()
					s.end(errors.New("connection reset"))
				}
				var s *session
				g.set(func() { s, g.answer = g.session, nil })
				s.end(errors.New("connection reset"))
				for range 600 {
					time.Sleep(time.Second)
				}
				stop()
				if n := g.left(); n > 0 {
					t.Errorf("%d messages are left at the broker", n)
				}
				for _, b := range all {
					if g.accepted[b] == 0 {
						t.Errorf("%s is lost", b)
					}
				}
				if strings.Contains(g.log.String(), "secret body") {
					t.Error("a body is logged")
				}
			})
		})
	}
}

// A message that the queue refuses because of its content is sent alone before it is parked. If a
// call has several messages, the refusal may be about another message.
func TestOneMessageNeverBlocksTheOthers(t *testing.T) {
	t.Parallel()
	for name, whole := range map[string]bool{"whole call": true, "entry": false} {
		for _, parks := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, parks %t", name, parks), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					const poison = `{"secret body":"poison"}`
					g := newGround(t, append([]string{poison}, bodies(25)...)...)
					g.parks = parks
					g.answer = func(out []queue.Outgoing) []error {
						errs := make([]error, len(out))
						for i := range out {
							if out[i].Body == poison {
								errs[i] = backoff.Permanent(queue.ErrContent)
								if whole {
									return queue.FailAll(len(out), errs[i])
								}
							}
						}
						return queue.Answer(errs)
					}
					b := bridge.New(g.options())
					stop := run(t, b)
					time.Sleep(2 * time.Second)
					h := b.Health()
					wantParked, wantHeld := 1, 0
					if !parks {
						wantParked, wantHeld = 0, 1
					}
					if h.Counts.Confirmed != 25 || h.Counts.Parked != wantParked || h.Held != wantHeld ||
						h.Healthy == (wantHeld > 0) {
						t.Errorf("got %+v", h)
					}
					if !slices.ContainsFunc(g.calls,
						func(call []string) bool { return len(call) == 1 && call[0] == poison }) {
						t.Error("the message was never sent alone")
					}
					if n := g.left(); n != wantHeld {
						t.Errorf("%d messages are left at the broker, want %d", n, wantHeld)
					}
					if !strings.Contains(g.log.String(), "routing_key=guide.major") ||
						strings.Contains(g.log.String(), "poison") {
						t.Errorf("the log does not name the message, or holds its body: %s", g.log.String())
					}
					stop()
				})
			})
		}
	}
}

// A message that can now be neither sent nor parked is retried, and does not delay other messages.
func TestManyMessagesThatCannotBeParkedBlockNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all []string
		for i, body := range bodies(300) {
			if i%3 == 0 {
				body = strings.Repeat("x", queue.MaxBytes+i)
			}
			all = append(all, body)
		}
		g := newGround(t, all...)
		g.fails = errors.New("the queue is full")
		b := bridge.New(g.options())
		stop := run(t, b)
		time.Sleep(time.Minute)
		if h := b.Health(); h.Counts.Confirmed != 200 || h.Counts.Parked != 0 || h.Unconfirmed != 100 {
			t.Errorf("got %+v", h)
		}
		g.set(func() { g.fails = nil })
		time.Sleep(time.Minute)
		if h := b.Health(); h.Counts.Parked != 100 || !h.Healthy {
			t.Errorf("got %+v", h)
		}
		if stop(); g.left() != 0 {
			t.Errorf("%d left", g.left())
		}
	})
}

type payloads map[string]string

func (p payloads) Put(_ context.Context, body []byte) (bucket, key string, err error) {
	if len(p) == 0 {
		p["key"] = ""
		return "", "", errors.New("slow down")
	}
	p["key"] = string(body)
	return "bucket", "key", nil
}

func TestLargeBodies(t *testing.T) {
	t.Parallel()
	large := `{"text":"` + strings.Repeat("x", queue.MaxBytes) + `"}`
	t.Run("with a place for payloads", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			g := newGround(t, large)
			o, kept := g.options(), payloads{}
			o.Payloads = kept
			o.Send = func(_ context.Context, _ int, out []queue.Outgoing) []error {
				g.mu.Lock()
				defer g.mu.Unlock()
				got := event.Unwrapper{Depth: 4, Load: func(p event.Pointer) (string, *event.Invalid) {
					if p != (event.Pointer{Bucket: "bucket", Key: "key"}) {
						t.Errorf("got %+v", p)
					}
					return kept[p.Key], nil
				}}.Unwrap(nil, out[0].Body, event.Meta{})
				if len(got) != 1 || got[0].Invalid != nil {
					t.Fatalf("got %+v", got)
				}
				g.accepted[got[0].Text]++
				if out[0].Attributes["routing_key"].String != "guide.major" {
					t.Error("the reference has lost its routing key")
				}
				return nil
			}
			stop := run(t, bridge.New(o))
			time.Sleep(10 * time.Second)
			stop()
			if g.accepted[large] != 1 || g.left() != 0 {
				t.Errorf("accepted %d times, %d left", g.accepted[large], g.left())
			}
		})
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			g := newGround(t, append(bodies(3), large)...)
			stop := run(t, bridge.New(g.options()))
			time.Sleep(10 * time.Second)
			stop()
			if !slices.Equal(g.parked, []string{large}) || len(g.accepted) != 3 || g.left() != 0 {
				t.Errorf("parked %d, accepted %d, left %d", len(g.parked), len(g.accepted), g.left())
			}
		})
	})
}

// run starts a bridge. stop stops it, and waits for its end.
func run(t *testing.T, b *bridge.Bridge) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

var late = bridge.Message{Body: []byte("late")}

func TestTheEndWaitsForWhatWasDelivered(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		needs     time.Duration // the duration of a call
		confirmed int
		within    time.Duration
	}{
		"in time":  {10 * time.Second, 5, 11 * time.Second},
		"too late": {time.Hour, 0, 21 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, bodies(5)...)
				o := g.options()
				o.Send = func(ctx context.Context, _ int, out []queue.Outgoing) []error {
					if o.Clock.Sleep(ctx, tt.needs) != nil {
						return queue.FailAll(len(out), ctx.Err())
					}
					return g.send(ctx, out)
				}
				b := bridge.New(o)
				stop := run(t, b)
				time.Sleep(time.Second)
				g.set(func() { g.waiting = append(g.waiting, late) })
				asked := time.Now()
				if stop(); time.Since(asked) > tt.within {
					t.Errorf("ended after %s", time.Since(asked))
				}
				if got := b.Health(); got.Counts.Confirmed != tt.confirmed || g.left() != 6-tt.confirmed {
					t.Errorf("got %+v, and %d left at the broker", got, g.left())
				}
			})
		})
	}
}

func TestOnlyTheFirstConnectionEndsTheBridge(t *testing.T) {
	t.Parallel()
	wrong := backoff.Permanent(errors.New("no such queue"))
	for name, tt := range map[string]struct {
		refuse []error
		ends   bool
	}{
		"for good":               {[]error{wrong}, true},
		"passing":                {[]error{errors.New("refused"), errors.New("refused")}, false},
		"passing, then for good": {[]error{errors.New("refused"), wrong}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, bodies(3)...)
				g.refuse = tt.refuse
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				go func() { // The queue is deleted later. A restart of the bridge would not help.
					time.Sleep(time.Minute)
					var s *session
					g.set(func() { s, g.refuse, g.waiting = g.session, []error{wrong, wrong}, append(g.waiting, late) })
					if s != nil {
						s.end(errors.New("the queue was deleted"))
					}
				}()
				err := bridge.New(g.options()).Run(ctx)
				if tt.ends != (err != nil) || tt.ends == (g.accepted["late"] == 1) {
					t.Errorf("got %v, late accepted %d times", err, g.accepted["late"])
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// A batch waits for more messages only once, so a constant stream of messages does not delay it.
func TestABatchWaitsForOneMomentOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t)
		stop := run(t, bridge.New(g.options()))
		for range queue.MaxEntries {
			time.Sleep(30 * time.Millisecond)
			g.set(func() { g.waiting = append(g.waiting, late) })
			g.session.poke()
		}
		stop()
		if n := len(g.calls); n != queue.MaxEntries/2 {
			t.Errorf("%d calls, want one for the two of each 50 ms: %q", n, g.calls)
		}
	})
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, bodies(2)...)
		b := bridge.New(g.options())
		check := func(when string, status int, problem string) {
			t.Helper()
			w := httptest.NewRecorder()
			b.ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
			var h bridge.Health
			if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil || w.Code != status ||
				!strings.Contains(h.Problem, problem) {
				t.Errorf("%s: got %d %s", when, w.Code, w.Body)
			}
		}
		check("before", 503, "does not consume")
		var away bool
		g.answer = func(out []queue.Outgoing) []error {
			g.mu.Lock()
			defer g.mu.Unlock()
			if away {
				return queue.FailAll(len(out), errors.New("throttled"))
			}
			return nil
		}
		stop := run(t, b)
		time.Sleep(time.Second)
		check("idle", 200, "")
		g.set(func() {
			away, g.waiting = true, append(g.waiting, late)
			g.session.poke()
		})
		time.Sleep(30 * time.Second)
		check("for half a minute", 200, "")
		time.Sleep(time.Minute)
		check("for more than a minute", 503, "has not accepted a message")
		g.set(func() { away = false })
		time.Sleep(time.Minute)
		check("again", 200, "")
		stop()
		check("after", 503, "does not consume")
		if lines := strings.Count(g.log.String(), "msg=bridging "); lines != 2 {
			t.Errorf("%d lines in two and a half minutes:\n%s", lines, g.log.String())
		}
	})
}
