package sim

import (
	"context"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/reconcile"
	"github.com/lullhq/lull/internal/shard"
)

// struck is the world of a seed in which something is lost at any moment. The image that is
// restored was taken at any earlier one.
func struck(t testing.TB, seed uint64, loss Loss, live bool, hooks Hooks) *World {
	t.Helper()
	make := build
	if seed%3 == 0 {
		make = republishing
	}
	return make(t, seed, Swarm, func(o *Options) {
		d := newDice(seed, 0x6c6f7373+uint64(loss))
		at := d.upTo(o.Upstream.Calm)
		o.Disaster = &Disaster{Loss: loss, Backup: d.upTo(at), At: at, Live: live}
		o.Hooks = hooks
	})
}

// The runbook's pages: after their steps every promise holds again, whenever the loss came. With
// the functions stopped no document goes back meanwhile.
func TestEveryPromiseHoldsAfterTheRunbooksSteps(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name string
		loss Loss
		live bool
	}{
		{"the table is restored", TableRestored, false},
		{"the table is restored while everything runs", TableRestored, true},
		{"the sink is restored", SinkRestored, false},
		{"the sink is created again, empty", SinkEmptied, false},
		{"the queues are purged", QueuesPurged, false},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			raised := int64(0)
			for _, r := range runs(t, 200, Swarm, func(seed uint64) *World {
				return struck(t, seed, of.loss, of.live, Hooks{})
			}) {
				raised += r.Counts.Writes[shard.RAISE.String()]
			}
			if of.loss == TableRestored && raised == 0 {
				t.Error("no row was raised: the worlds do not get there")
			}
		})
	}
}

// often has prune compare a few rows with the sink every minute.
func often(o *Options) {
	o.Config.Lifecycle.DriftSample, o.Config.Lifecycle.PruneEvery = 20, time.Minute
}

// sampled is the world of a seed in which the sink is emptied while rows are compared with it.
func sampled(t testing.TB, seed uint64, hooks Hooks) *World {
	return build(t, seed, Swarm, often, func(o *Options) {
		o.Disaster = &Disaster{Loss: SinkEmptied, At: o.Upstream.Calm / 2, Live: seed%2 == 1}
		o.Hooks = hooks
	})
}

// Prune has a few rows compared with the sink, every minute here. Whatever is under way, is not
// called drift; what was lost is.
func TestASampleFindsWhatWasLostAndNothingElse(t *testing.T) {
	t.Parallel()
	compared, drift := 0, 0
	for w, r := range runs(t, 200, Swarm, func(seed uint64) *World { return build(t, seed, Swarm, often) }) {
		compared += w.oracle.alarms[journal.Sampled]
		w = sampled(t, r.Seed, Hooks{Silent: true})
		w.Run()
		drift += w.oracle.alarms[journal.Drift]
	}
	if compared == 0 || drift == 0 {
		t.Errorf("%d samples compared, %d times drift: the worlds do not get there", compared, drift)
	}
}

// lapse is a step of the pages, or a condition of RAISE, that somebody might leave out.
type lapse struct {
	name   string
	loss   Loss
	live   bool
	hooks  func() Hooks
	within uint64 // seeds: with room
}

func reconciling(change func(*reconcile.Service)) func() Hooks {
	return func() Hooks { return Hooks{Reconcile: change} }
}

var lapses = []lapse{
	{"nothing raises the rows", TableRestored, false, reconciling(func(s *reconcile.Service) {
		s.Shards = dropping{s.Shards}
	}), 100},
	{"the functions run while the table is restored", TableRestored, true, func() Hooks {
		return Hooks{Strict: true}
	}, 100},
	{"the source does not send again what the table forgot", TableRestored, false, silent, 300},
	{"the source does not send again what the sink lost", SinkRestored, false, silent, 100},
	{"the source does not send again what was purged", QueuesPurged, false, silent, 100},
	{"RAISE does not ask whether the row is as it was read", TableRestored, true, reconciling(func(
		s *reconcile.Service,
	) {
		s.Shards = editedStore{s.Shards, only(shard.RAISE), func(w *shard.Write) { w.Cond = w.Cond[:1] }}
	}), 3000},
}

func silent() Hooks { return Hooks{Silent: true} }

// dropping says yes to RAISE and does nothing.
type dropping struct{ shard.Store }

func (d dropping) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if w.Transition == shard.RAISE {
		return shard.Row{}, nil
	}
	return d.Store.Write(ctx, w)
}

func TestEveryLapseIsCaught(t *testing.T) {
	t.Parallel()
	for _, l := range lapses {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			caught(t, l.within, func(seed uint64) *World { return struck(t, seed, l.loss, l.live, l.hooks()) })
		})
	}
}
