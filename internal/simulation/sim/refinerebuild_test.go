// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/refine"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/simulation/sim"
)

// followRebuild simulates a seed in which the collection is rebuilt, with a mutant or without one.
// followRebuild compares each step with the model.
func followRebuild(t *testing.T, seed uint64, mutant string) (*refine.Rebuild, sim.Result, bool) {
	t.Helper()
	var c *refine.Rebuild
	w, switched := sim.RebuiltOne(t, seed, mutant, func(s sim.Step) { c.See(s) })
	upstream, sources := sim.UpstreamOf(w)
	c, err := refine.NewRebuild(refine.Settings{Versions: true, Upstream: upstream, Sources: sources})
	if err != nil {
		t.Fatal(err)
	}
	r := w.Run()
	return c, r, switched()
}

// TestEveryStepOfARebuildIsAStepOfTheModel: each step of turns and programs for a document, while
// its collection is rebuilt, must be a step of the machine Rebuild.
func TestEveryStepOfARebuildIsAStepOfTheModel(t *testing.T) {
	t.Parallel()
	counts := map[refine.Step]int{}
	switches := 0
	first, last := uint64(1), sim.Seeds(1500)
	if _, only := sim.LongRun(); only != 0 {
		first, last = only, only
	}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		c, r, switched := followRebuild(t, seed, "")
		for _, p := range c.Partings() {
			t.Errorf("seed %d: %s", seed, p)
		}
		for _, v := range r.Violations {
			t.Errorf("seed %d: %s", seed, v)
		}
		for step, n := range c.Counts {
			counts[step] += n
		}
		if switched {
			switches++
		}
	}
	for _, l := range refine.MappingOfRebuild() {
		t.Logf("%8d %s", counts[l.Step], l.Step)
		if counts[l.Step] == 0 && last == 1500 {
			t.Errorf("%s: never happens in %d worlds", l.Step, last)
		}
		delete(counts, l.Step)
	}
	for step := range counts {
		t.Errorf("%s is not in MappingOfRebuild", step)
	}
	t.Logf("%d of %d worlds switched", switches, last)
}

// TestEveryMutantOfARebuildIsNoticed: a mutant of a rebuild leaves the model in runs with one
// document, or breaks a promise in runs with several. testdata/mutants.md states within how many
// seeds, and -update writes that.
func TestEveryMutantOfARebuildIsNoticed(t *testing.T) {
	t.Parallel()
	if sim.Seeds(10) < 10 {
		t.Skip("thousands of worlds")
	}
	_, stated, _ := tree.Part(t, "internal/simulation/sim/testdata/mutants.md", "rebuild mutants")
	all := sim.RebuildMutants()
	lines := make([]string, len(all))
	t.Run("hunt", func(t *testing.T) {
		for i, m := range all {
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				mostLeft, mostBroken := uint64(3000), uint64(200)
				if !sim.Updating() {
					if mostLeft, mostBroken = statesBoth(stated, m); mostLeft+mostBroken == 0 {
						t.Fatal("testdata/mutants.md says of it that nothing notices it, or has no such line")
					}
				}
				left := firstOf(mostLeft, func(seed uint64) bool {
					c, _, _ := followRebuild(t, seed, m.Name)
					return len(c.Partings()) > 0
				})
				broken := firstOf(mostBroken, func(seed uint64) bool {
					return len(sim.RebuiltWith(t, seed, m.Name).Run().Violations) > 0
				})
				if !sim.Updating() && (mostLeft > 0 && left == 0 || mostBroken > 0 && broken == 0) {
					t.Errorf("leaves the model in world %d of %d, breaks a promise in world %d of %d", left, mostLeft, broken,
						mostBroken)
				}
				lines[i] = fmt.Sprintf("| %s | %s | %s | %s |\n", m.Name, m.Change, bound(left), bound(broken))
				t.Logf("leaves the model in world %d, breaks a promise in world %d", left, broken)
			})
		}
	})
	if got := strings.Count(stated, "\n") - 2; got != len(all) && !sim.Updating() {
		t.Errorf("the page has %d mutants, there are %d", got, len(all))
	}
	if sim.Updating() && !t.Failed() && !slices.Contains(lines, "") { // -run may leave some out
		tree.Generated(t, "internal/simulation/sim/testdata/mutants.md", "rebuild mutants",
			"| mutant | what it changes | leaves the model | breaks a promise |\n|---|---|---|---|\n"+strings.Join(lines, ""),
			true)
	}
}

// firstOf returns the first seed for which the function is returns true, or 0.
func firstOf(most uint64, is func(seed uint64) bool) uint64 {
	for seed := uint64(1); seed <= most; seed++ {
		if is(seed) {
			return seed
		}
	}
	return 0
}

// statesBoth reads from the page within how many runs a mutant leaves the model, and breaks a
// promise; 0 means never.
func statesBoth(table string, m sim.Mutant) (left, broken uint64) {
	_, rest, _ := strings.Cut(table, fmt.Sprintf("\n| %s | %s | ", m.Name, m.Change))
	line, _, _ := strings.Cut(rest, "\n")
	cells := strings.Split(line, "|")
	_, _ = fmt.Sscan(cells[0], &left) // "no" leaves the number at 0
	if len(cells) > 1 {
		_, _ = fmt.Sscan(cells[1], &broken)
	}
	return left, broken
}
