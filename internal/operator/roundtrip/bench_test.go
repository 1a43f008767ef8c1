// SPDX-License-Identifier: Apache-2.0

package roundtrip_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/roundtrip"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	_ "github.com/lullhq/lull/source/builtin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// every is the interval of the canary in these tests.
const every = 15 * time.Minute

// bench is a whole stack in memory, in virtual time. Its sinks may be read through a fault.
type bench struct {
	*testing.T
	cfg   config.Config
	only  []string // canary.collections
	e     *dev.Engine
	sinks map[string]*memorysink.Sink
	// stale makes reads return this version in place of the document's version.
	stale string

	mu        sync.Mutex                        // guards the fields below: the sinks have round trips at the same time
	calls     int                               // calls of the canary so far
	kill      int                               // the number of the call that kills the run; 0 for none
	after     bool                              // that call takes effect
	dead      bool                              // the run was killed
	lose      bool                              // published messages are lost
	published int                               // messages that were published
	denied    func(o operate.Composition) error // refuses to write an event; may be nil
}

// play runs a story with a stack in memory.
func play(t *testing.T, change func(c *config.Config), story func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, cfg: config.Default(), sinks: map[string]*memorysink.Sink{}}
		versions := true
		b.cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
		b.cfg.Canary.Every = every
		if change != nil {
			change(&b.cfg)
		}
		b.cfg.Complete()
		open := map[string]sink.Sink{}
		for name := range b.cfg.Sinks {
			b.sinks[name] = memorysink.New(clock.System{}, memorysink.Settings{Versions: true, RememberOps: true})
			open[name] = b.sinks[name]
		}
		var err error
		if b.e, err = dev.New(dev.Options{Config: &b.cfg, Clock: clock.System{}, Sinks: open}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		b.e.Start(ctx)
		story(b)
		cancel()
		b.e.Stop()
	})
}

var errKilled = errors.New("killed")

// call does one call of a run, or kills the run there: no later call of the run is made.
func call[A any](b *bench, do func() (A, error)) (a A, err error) {
	b.mu.Lock()
	gone := b.dead
	if !gone {
		b.calls++
	}
	last := !gone && b.calls == b.kill
	b.dead = gone || last
	b.mu.Unlock()
	if !gone && (!last || b.after) {
		a, err = do()
	}
	if gone || last {
		err = errKilled
	}
	return a, err
}

// stack is the stack as the canary reaches it.
type stack struct {
	operate.API
	b *bench
}

func (s stack) Compose(ctx context.Context, c operate.Composition) (operate.Composed, error) {
	return call(s.b, func() (operate.Composed, error) {
		if s.b.denied != nil {
			if err := s.b.denied(c); err != nil {
				return operate.Composed{}, err
			}
		}
		return s.API.Compose(ctx, c)
	})
}

func (s stack) Publish(ctx context.Context, p operate.Publication) (operate.Published, error) {
	return call(s.b, func() (operate.Published, error) {
		s.b.mu.Lock()
		s.b.published++
		s.b.mu.Unlock()
		if s.b.lose {
			return operate.Published{Messages: 1}, nil
		}
		return s.API.Publish(ctx, p)
	})
}

func (s stack) Progress(ctx context.Context, key shard.DocID) (operate.Progress, error) {
	return call(s.b, func() (operate.Progress, error) { return s.API.Progress(ctx, key) })
}

func (s stack) Get(ctx context.Context, key shard.DocID) (operate.Document, error) {
	return call(s.b, func() (operate.Document, error) {
		d, err := s.API.Get(ctx, key)
		if s.b.stale != "" {
			d.Version = s.b.stale
		}
		return d, err
	})
}

func (s stack) TakeJob(ctx context.Context, c job.Claim) (job.Lease, error) {
	return call(s.b, func() (job.Lease, error) { return s.API.TakeJob(ctx, c) })
}

func (s stack) SaveJob(ctx context.Context, l job.Lease) error {
	_, err := call(s.b, func() (struct{}, error) { return struct{}{}, s.API.SaveJob(ctx, l) })
	return err
}

func (s stack) EndJob(ctx context.Context, l job.Lease) error {
	_, err := call(s.b, func() (struct{}, error) { return struct{}{}, s.API.EndJob(ctx, l) })
	return err
}

func (b *bench) api() operate.API { return b.e.Operator(nil).API() }

// run runs the canary once, and returns its results by sink.
func (b *bench) run() map[string]roundtrip.Result {
	b.Helper()
	cfg := b.cfg // the stack reads the settings at the same time
	cfg.Canary.Collections = b.only
	c := roundtrip.Canary{
		Stack: operatetest.API(b.api(), stack{b.api(), b}), Config: &cfg, Clock: clock.System{},
		Budget: roundtrip.Budget,
	}
	began, got := time.Now(), map[string]roundtrip.Result{}
	for _, r := range c.Run(b.Context()) {
		got[r.Sink] = r
	}
	if took := time.Since(began); took > 50*time.Second {
		b.Errorf("a run took %s", took)
	}
	return got
}

// want runs the canary once. It checks the outcome of the only sink, and what the reason says.
func (b *bench) want(outcome roundtrip.Outcome, says string) roundtrip.Result {
	b.Helper()
	got := b.run()["search"]
	if got.Outcome != outcome || !strings.Contains(got.Why, says) {
		b.Fatalf("got %+v, want %s and %q", got, outcome, says)
	}
	return got
}

// next waits for the next run of the schedule.
func (b *bench) next() { time.Sleep(every) }

// clean checks that no sink has a document, and that no dead letter is parked.
func (b *bench) clean(when string) {
	b.Helper()
	for name, s := range b.sinks {
		_ = s.All(b.Context(), func(d sink.Stored) error {
			b.Errorf("%s: sink %s has %s version %s", when, name, d.Doc, d.Version)
			return nil
		})
	}
	if l, err := b.api().Letters(b.Context(), operate.LetterFilter{}); err != nil || len(l) > 0 {
		b.Errorf("%s: got dead letters %+v, error %v", when, l, err)
	}
}

func number(n int) string { return strconv.Itoa(n) }
