// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// This file exports names for tests in other packages, which compare simulated runs with the model.

// Mutant is one rule of the code that is broken on purpose.
type Mutant struct {
	Name, Change string
	Make         func(w **World) Hooks
}

// Mutants returns all mutants, and after them the mutants that the rules of this package do not
// notice.
func Mutants() (all []Mutant) {
	for _, list := range [][]mutant{mutants, unnoticed} {
		for _, m := range list {
			all = append(all, Mutant{m.name, m.change, m.make})
		}
	}
	return all
}

// unnoticed are mutants whose broken rule is covered by a second rule. No rule of this package is
// broken within thousands of simulated runs.
var unnoticed = []mutant{
	{
		"admit although newer is pending", "ADMIT does not ask for pending < k",
		editing(only(shard.ADMIT), func(w *shard.Write) { without(w, shard.AttrPending) }),
	},
	{
		"admit keeps the refusals", "ADMIT does not take refusals away",
		editing(only(shard.ADMIT), func(w *shard.Write) { keeping(w, shard.AttrRefusals) }),
	},
	{
		"claim again keeps nothing", "CLAIM again does not set claimed_was",
		editing(only(shard.CLAIMAgain), func(w *shard.Write) { keeping(w, shard.AttrClaimedWas) }),
	},
	{
		"release erases the time", "RELEASE removes lease_until",
		editing(only(shard.RELEASE), func(w *shard.Write) {
			keeping(w, shard.AttrLeaseUntil)
			w.Update = append(w.Update, shard.Action{Verb: shard.Remove, Attr: shard.AttrLeaseUntil})
		}),
	},
	{
		"park under a lease", "PARK does not ask for lease_until < now",
		everywhere(func(s shard.Store) shard.Store {
			return editedStore{s, []shard.Transition{shard.PARK, shard.PARKNotPending}, func(w *shard.Write) {
				without(w, shard.AttrLeaseUntil)
			}}
		}),
	},
}

// One returns the options of a simulated run with one document, and the sources that decode its
// messages.
func One(t testing.TB, seed uint64) (Options, *source.Set) {
	t.Helper()
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) {
		vary(seed, cfg)
		cfg.TableOutage = config.TableOutageClosed // the model's open flights are not followed
		if seed%6 == 1 {
			enrichAll(cfg)
		}
	})
	sources := sourcesOf(t, cfg)
	return Options{Config: cfg, Seed: seed, Faults: Swarm, Upstream: writeOne(seed, sources)}, sources
}

// mostVersions is the largest number of versions that [writeOne] sends. The model has as many.
const mostVersions = 3

// writeOne returns an upstream that the model can follow. The upstream has one document with few
// versions, sent in any order and more than once, some of them in one message. The upstream
// includes deletes, resyncs, poison, and equal versions with different payloads. No event waits for
// its time.
func writeOne(seed uint64, sources *source.Set) Upstream {
	a := &author{dice: newDice(seed, 0x6f6e6500), poison: map[version]poison{}, sources: sources}
	span := time.Second + a.upTo(40*time.Second)
	for i, v, n := 0, 0, 1+a.IntN(mostVersions); i < n; i++ {
		extra, kind := "", "doc.changed"
		if v == 0 || a.chance(0.8) {
			v++
		}
		if a.chance(0.15) {
			extra = `,"mode":"resync","resyncrun":"01JD2V6Y5T3KQ8Z4M7N9P0R1S2"`
		}
		if a.chance(0.25) {
			kind = "doc.deleted"
		} else {
			extra += fmt.Sprintf(`,"data":{"title":"%d"}`, i)
		}
		body := fmt.Sprintf(`{"type":%q,"subject":"one","sequence":"%d"%s}`, kind, v, extra)
		for range 1 + a.IntN(2) {
			a.send(a.upTo(span), body)
		}
		if a.chance(0.25) {
			e := a.sources.Decode(queue.Message{Body: body, Sent: epoch})[0].Event
			a.poison[version{e.Doc, e.Key}] = oneOf(a.dice, rejected, rejected, refused, kills)
		}
	}
	a.join()
	InOrder(a.list)
	return Upstream{Arrivals: a.list, Calm: span + 5*time.Second + a.upTo(2*time.Minute), poisons: a.poison}
}

// Seeds returns how many seeds a test runs.
func Seeds(most int) uint64 { return seeds(most) }

// Updating reports whether the test writes the generated parts of the pages.
func Updating() bool { return *update }

// LongRun returns the values of -for and -seed.
func LongRun() (long time.Duration, seed uint64) { return *longRun, *oneSeed }

// RebuiltOne returns a simulated run of one document whose collection is rebuilt, with a mutant or
// without one. RebuiltOne calls watch for each step.
func RebuiltOne(t testing.TB, seed uint64, mutant string, watch func(Step)) (w *World, switched func() bool) {
	t.Helper()
	edits := editsOf(mutant)
	edits.one, edits.watch = true, watch
	w, b := rebuilding(t, seed, edits)
	return w, func() bool { return b.phases["switched"] }
}

// RebuiltWith returns a simulated run of several documents whose collection is rebuilt, with a
// mutant.
func RebuiltWith(t testing.TB, seed uint64, mutant string) *World {
	t.Helper()
	w, _ := rebuilding(t, seed, editsOf(mutant))
	return w
}

func editsOf(mutant string) (edits rebuildEdits) {
	for _, m := range rebuildMutants {
		if m.name == mutant {
			edits = m.edits
		}
	}
	return edits
}

// RebuildMutants returns the names and changes of the mutants of a rebuild.
func RebuildMutants() (all []Mutant) {
	for _, m := range rebuildMutants {
		all = append(all, Mutant{Name: m.name, Change: m.change})
	}
	return all
}

// UpstreamOf returns the messages that are sent to a simulated run, and the sources that decode
// them.
func UpstreamOf(w *World) (Upstream, *source.Set) { return w.options.Upstream, w.sources }
