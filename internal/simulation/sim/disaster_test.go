// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// struck returns the simulated run of a seed in which data is lost at a random moment. The restored
// backup is from a random earlier moment.
func struck(t testing.TB, seed uint64, of Disaster) *World {
	t.Helper()
	make := build
	if seed%3 == 0 {
		make = republishing
	}
	w, d := make(t, seed, Swarm), newDice(seed, 0x6c6f7373+uint64(of.Loss))
	of.At = d.upTo(w.options.Upstream.Calm)
	of.Backup = d.upTo(of.At)
	w.await(&of)
	return w
}

// TestEveryPromiseHoldsAfterTheRunbooksSteps follows the pages of the runbook. After their steps
// every promise holds again, whenever the loss happened. If the functions are stopped, no document
// goes back in the meantime.
func TestEveryPromiseHoldsAfterTheRunbooksSteps(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]Disaster{
		"the table is restored":                       {Loss: TableRestored},
		"the table is restored while everything runs": {Loss: TableRestored, Live: true},
		"the sink is restored":                        {Loss: SinkRestored},
		"the sink is created again, empty":            {Loss: SinkEmptied},
		"the queues are purged":                       {Loss: QueuesPurged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raised := int64(0)
			for _, r := range runs(t, 200, Swarm, func(seed uint64) *World { return struck(t, seed, of) }) {
				raised += r.Counts.Writes[shard.RAISE.String()]
			}
			if of.Loss == TableRestored && raised == 0 {
				t.Error("no row was raised: the worlds do not get there")
			}
		})
	}
}

// often makes prune compare a few rows with the sink every minute.
func often(o *Options) {
	o.Config.Lifecycle.DriftSample, o.Config.Lifecycle.PruneEvery = 20, time.Minute
}

// sampled returns the simulated run of a seed in which the sink is emptied while prune compares
// rows with the sink.
func sampled(t testing.TB, seed uint64, silent bool) *World {
	w := build(t, seed, Swarm, often)
	w.await(&Disaster{Loss: SinkEmptied, At: w.options.Upstream.Calm / 2, Live: seed%2 == 1, Silent: silent})
	return w
}

// TestASampleFindsWhatWasLostAndNothingElse: prune compares a few rows with the sink, here every
// minute. Prune must report lost documents as drift, but not documents whose write is under way.
func TestASampleFindsWhatWasLostAndNothingElse(t *testing.T) {
	t.Parallel()
	compared, drift := 0, 0
	for w, r := range runs(t, 200, Swarm, func(seed uint64) *World { return build(t, seed, Swarm, often) }) {
		compared += w.coverage[step(journal.Sampled)]
		w = sampled(t, r.Seed, true)
		w.Run()
		drift += w.coverage[step(journal.Drift)]
	}
	if compared == 0 || drift == 0 {
		t.Errorf("%d samples compared, %d times drift: the worlds do not get there", compared, drift)
	}
}

// lapses are steps of the runbook, or conditions of RAISE, that a developer might leave out.
var lapses = []struct {
	name   string
	of     Disaster
	within uint64 // the number of seeds within which the lapse must be caught, with some margin
}{
	{"nothing raises the rows", Disaster{Loss: TableRestored, Reconcile: func(s *reconcile.Service) {
		s.Shards = ignoring{s.Shards, only(shard.RAISE)}
	}}, 100},
	{"the functions run while the table is restored", Disaster{Loss: TableRestored, Live: true, Strict: true}, 100},
	{"the source does not send again what the table forgot", Disaster{Loss: TableRestored, Silent: true}, 300},
	{"the source does not send again what the sink lost", Disaster{Loss: SinkRestored, Silent: true}, 100},
	{"the source does not send again what was purged", Disaster{Loss: QueuesPurged, Silent: true}, 100},
	{
		"RAISE does not ask whether the row is as it was read",
		Disaster{Loss: TableRestored, Live: true, Reconcile: func(s *reconcile.Service) {
			s.Shards = editedStore{s.Shards, only(shard.RAISE), func(w *shard.Write) { w.Cond = w.Cond[:1] }}
		}},
		3000,
	},
}

func TestEveryLapseIsCaught(t *testing.T) {
	t.Parallel()
	for _, l := range lapses {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			caught(t, l.within, func(seed uint64) *World { return struck(t, seed, l.of) })
		})
	}
}
