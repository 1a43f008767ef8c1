// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// ender ends a process before one of its I/Os. A process that crashes does no further I/O: its
// invocations are killed at once. A process that ends by Ctrl-C finishes its invocations.
type ender struct {
	next    fault.Injector
	at      int64
	crashes bool
	end     context.CancelFunc

	seen  atomic.Int64
	ended atomic.Bool
}

func (k *ender) Decide(ctx context.Context, inv *fault.Invocation, op fault.Op) fault.Verdict {
	if n := k.seen.Add(1); n == k.at {
		k.ended.Store(true)
		k.end()
	}
	if k.crashes && k.ended.Load() {
		return fault.CrashBefore
	}
	return k.next.Decide(ctx, inv, op)
}

// poisons is how many of the messages become dead letters.
const poisons = 20

// sender sends each message until a queue accepts it, and never again after that.
type sender struct {
	messages []feed.Timed
	start    time.Time
}

func (u *sender) play(ctx context.Context, e *Engine) {
	for len(u.messages) > 0 {
		m := u.messages[0]
		if (clock.System{}).Sleep(ctx, time.Until(u.start.Add(m.After))) != nil || e.take(ctx, m.Outgoing) != nil {
			return
		}
		u.messages = u.messages[1:]
	}
}

// A process ends at any moment of a run with faults, and a new process continues. The result must
// be the same as in a run without an end.
func TestARunThatIsBrokenOffGoesOnAsIfItHadNot(t *testing.T) {
	t.Parallel()
	seeds, points := uint64(4), int64(40)
	if testing.Short() {
		seeds, points = 2, 10
	}
	for seed := range seeds {
		whole := brokenOff(t, seed, 0, true)
		for i := int64(1); i <= points; i++ {
			every := max(whole*i/points, 1)
			brokenOff(t, seed, every, i%3 != 0)
		}
	}
}

// brokenOff runs a stack whose process ends after every I/Os; 0 means never. brokenOff checks the
// result in the end, and returns the number of I/Os.
func brokenOff(t *testing.T, seed uint64, every int64, crashes bool) (seen int64) {
	t.Helper()
	t.Run(fmt.Sprintf("seed %d every %d crashes %t", seed, every, crashes), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			u := &sender{start: start, messages: append(publishing(seed, 6, 20*time.Second, 40*time.Second),
				del(50*time.Second, "doc-0001", 11))}
			for i := range poisons {
				u.messages = append(u.messages, put(time.Duration(i)*2*time.Second, fmt.Sprint("poison-", i), 1, `[]`))
			}
			if seed%2 == 0 {
				u.messages = append(u.messages, notBefore(start.Add(5*time.Minute), put(3*time.Second, "soon", 1)),
					notBefore(start.Add(2*time.Hour), put(4*time.Second, "later", 1)))
			}
			slices.SortStableFunc(u.messages, func(a, b feed.Timed) int { return cmp.Compare(a.After, b.After) })
			want := expected(t, u.messages)
			maps.DeleteFunc(want, func(doc, _ string) bool { return strings.Contains(doc, "poison") })
			rates := fault.Standard()
			rates.Kill, rates.IOFailAfter, rates.FlightLost = 0.02, 0.01, 0.05
			l := life{
				dir:  t.TempDir(),
				sink: memorysink.New(clock.System{}, memorysink.Settings{Versions: true, RememberOps: true}),
			}
			for n := uint64(0); ; n++ {
				at := every
				if n >= 6 {
					at = 0 // the last process does not end early
				}
				ended, ops := l.until(t, u, fault.NewMix(rates, seed+n), at, crashes, want)
				seen += ops
				if !ended {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	})
	return seen
}

// until runs one process. If the process does not end early, until checks the result.
func (l life) until(
	t *testing.T,
	u *sender,
	mix *fault.Mix,
	at int64,
	crashes bool,
	want map[string]string,
) (ended bool,
	seen int64,
) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k := &ender{next: mix, at: at, crashes: crashes, end: cancel}
	e := l.open(t, Options{Faults: mix, Inject: k, Pollers: 2})
	defer e.folder.Close()
	if err := e.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.Start(ctx)
	u.play(ctx, e)
	for ctx.Err() == nil && e.Settle(ctx) == nil && e.ledger.Scheduled() > 0 {
		_ = (clock.System{}).Sleep(ctx, time.Minute)
	}
	if k.ended.Load() {
		e.Stop()
		return true, k.seen.Load()
	}
	r, err := e.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A scheduled event may be copied twice, and then counts as two events.
	if err := r.Check(); err != nil && want[string(doc("later"))] == "" {
		t.Error(err)
	}
	cancel()
	e.Stop()
	if len(u.messages) > 0 || e.Left() > 0 || e.Schedule.Len() > 0 {
		t.Errorf("%d messages to send, %d left, %d scheduled: want none", len(u.messages), e.Left(), e.Schedule.Len())
	}
	got := map[string]string{}
	if err := l.sink.All(t.Context(), func(d sink.Stored) error {
		got[string(d.Doc)] = d.Version
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	diff(t, got, want)
	all, _, err := e.Letters.List(t.Context(), deadletter.Filter{}, "", 100)
	if err != nil || len(all) != poisons {
		t.Errorf("%d dead letters, error %v, want %d", len(all), err, poisons)
	}
	for id := range want {
		last := ""
		for _, op := range l.sink.History(doc(id[len("content#"):])) {
			if string(op.Key) < last {
				t.Errorf("%s went back to version %s", id, op.Version)
			}
			last = string(op.Key)
		}
	}
	return false, k.seen.Load()
}
