// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	_ "github.com/lullhq/lull/sink/webhook" // a kind that cannot recognise its index
)

// republishing returns the simulated run of a seed in which documents are published again with the
// same bytes. The sink keeps unchanged documents. In some runs, payloads are objects.
func republishing(t testing.TB, seed uint64, level Level, change ...func(*Options)) *World {
	t.Helper()
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) {
		vary(seed, cfg)
		cfg.TableOutage = config.TableOutageClosed
		s := cfg.Sinks["search"]
		s.Unchanged = sink.Keep
		cfg.Sinks["search"] = s
		if seed%4 == 3 {
			cfg.Payload.Allow = []config.BucketPrefix{{Bucket: "open"}}
			cfg.Payload.MissingWait = time.Minute
		}
	})
	return begin(t, Options{
		Config: cfg, Seed: seed, Faults: level,
		Upstream: write(seed, sourcesOf(t, cfg), shape{again: true, more: 3, over: 4 * time.Minute}),
	}, change...)
}

// named changes the settings of a simulated run, so that the sink cannot recognise its index. Only
// the operator's text names the index. Such a sink may have no versions.
func named(cfg *config.Config) {
	s := cfg.Sinks["search"]
	s.Kind, s.URL, s.Generation = "webhook", "https://hooks.example.org/lull", "one"
	cfg.Sinks["search"] = s
}

// Named is the level of runs with the settings named, which exists only in tests.
const Named Level = "keep-named"

// republishingNamed is republishing with the settings named.
func republishingNamed(t testing.TB, seed uint64, change ...func(*Options)) *World {
	return republishing(t, seed, Swarm, append(change, func(o *Options) {
		cfg := *o.Config
		cfg.Sinks = maps.Clone(cfg.Sinks)
		named(&cfg)
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		o.Config = &cfg
	})...)
}

// TestEveryPromiseHoldsWhereTheOperatorNamesTheIndex is the same for a sink that cannot recognise
// its index, with versions and without.
func TestEveryPromiseHoldsWhereTheOperatorNamesTheIndex(t *testing.T) {
	t.Parallel()
	kept := 0
	for w := range runs(t, 600, Named, func(seed uint64) *World { return republishingNamed(t, seed) }) {
		kept += w.coverage[step(journal.Kept)]
	}
	if t.Logf("%d kept", kept); kept == 0 {
		t.Error("no simulated run reaches this case")
	}
}

// The operator changes the text when the index was emptied. Then nothing is kept in it.
func TestNothingIsKeptAfterTheOperatorHasNamedTheIndexAnew(t *testing.T) {
	t.Parallel()
	hold(t, 200, Named, func(seed uint64) *World {
		w := republishingNamed(t, seed)
		w.await(&Disaster{Loss: SinkEmptied, At: 40 * time.Second})
		return w
	})
}

// Without that change the simulator finds a document that the emptied index lacks: this is why the
// settings ask for a text.
func TestAnIndexThatWasEmptiedUnderItsNameIsNoticed(t *testing.T) {
	t.Parallel()
	caught(t, 300, func(seed uint64) *World {
		w := republishingNamed(t, seed)
		w.await(&Disaster{Loss: SinkEmptied, At: 40 * time.Second, Unnamed: true})
		return w
	})
}

// Keep is the level of [republishing], which exists only in tests.
const Keep Level = "keep"

// TestEveryPromiseHoldsWhereUnchangedDocumentsAreKept: in these simulated runs documents are
// published again, mostly with bytes that they had before. Some turns run with another build or
// with other settings, as in a deployment.
func TestEveryPromiseHoldsWhereUnchangedDocumentsAreKept(t *testing.T) {
	t.Parallel()
	kept, loaded := 0, 0
	for w, r := range runs(t, 1000, Keep, func(seed uint64) *World { return republishing(t, seed, Swarm) }) {
		if n := w.coverage[step(journal.Kept)]; r.Seed%4 == 3 {
			loaded += n
		} else {
			kept += n
		}
	}
	if t.Logf("%d kept, %d of them loaded under the lease", kept+loaded, loaded); kept == 0 || loaded == 0 {
		t.Error("no simulated run reaches this case")
	}
}

func TestNothingIsKeptInAnIndexThatWasMadeAnew(t *testing.T) {
	t.Parallel()
	hold(t, 300, Keep, func(seed uint64) *World {
		w := republishing(t, seed, Swarm)
		w.await(&Disaster{Loss: SinkEmptied, At: 40 * time.Second})
		return w
	})
}

// keepMutants are rules of KEEP that a developer might simplify. Each has the number of seeds
// within which a test must notice the change, with some margin, as on the page of the other
// mutants.
var keepMutants = []struct {
	mutant
	within uint64
}{
	{mutant{
		"keep what was read", "KEEP asks neither for the committed version nor for its bytes",
		editing(keepWrites, func(w *shard.Write) {
			without(w, shard.AttrCommitted)
			without(w, shard.AttrContent)
		}),
	}, 3000},
	{mutant{
		"keep beside a writer", "CLAIM leaves content, and KEEP asks neither for claimed nor for the lease",
		editing(slices.Concat(claims, keepWrites), func(w *shard.Write) {
			if slices.Contains(claims, w.Transition) {
				keeping(w, shard.AttrContent)
				return
			}
			without(w, shard.AttrClaimed)
			without(w, shard.AttrLeaseUntil)
		}),
	}, 3000},
}

var keepWrites = []shard.Transition{shard.KEEP, shard.KEEPNewerWaiting}

func TestEveryMutantOfKeepIsKilled(t *testing.T) {
	t.Parallel()
	if raceEnabled || testing.Short() {
		t.Skip("thousands of worlds")
	}
	for _, m := range keepMutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			caught(t, m.within, func(seed uint64) *World {
				return m.broken(func(change func(*Options)) *World { return republishing(t, seed, Swarm, change) })
			})
		})
	}
}
