// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

var update = flag.Bool("update", false, "write the table of mutants into testdata/mutants.md")

// bounds are the numbers of seeds within which a mutant counts as killed. The bounds include a
// margin, because every change of the product changes which seed kills a mutant.
var bounds = []int{10, 30, 100, 300, 1000, 3000}

const room = 2

// hunt returns the first run that kills a mutant. Each fourth run is wide.
func hunt(t *testing.T, m mutant, within int) Result {
	t.Helper()
	return caught(t, uint64(within), func(seed uint64) *World {
		level := Swarm
		if seed%4 == 0 {
			level = Wide
		}
		return m.broken(func(change func(*Options)) *World { return world(t, seed, level, change) })
	})
}

// line returns the mutant's line in testdata/mutants.md.
func (m mutant) line(r Result) string {
	within := bounds[len(bounds)-1]
	for i := len(bounds) - 1; i >= 0 && room*int(r.Seed) <= bounds[i]; i-- {
		within = bounds[i]
	}
	return fmt.Sprintf("| %s | %s | %s | %d |\n", m.name, m.change, r.Violations[0].Rule, within)
}

// stated reads the mutant's number of seeds from the page's table.
func (m mutant) stated(table string) (int, bool) {
	_, rest, ok := strings.Cut(table, fmt.Sprintf("\n| %s | %s | ", m.name, m.change))
	line, _, _ := strings.Cut(rest, "\n")
	fields := strings.Split(line, "|")
	if !ok || len(fields) < 2 {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(fields[1]))
	return n, err == nil
}

func TestEveryMutantIsKilledWithinTheNumberOfSeedsThatThePageStates(t *testing.T) {
	t.Parallel()
	if raceEnabled || testing.Short() {
		t.Skip("thousands of worlds")
	}
	_, table, _ := tree.Part(t, "internal/simulation/sim/testdata/mutants.md", "mutants")
	lines := make([]string, len(mutants))
	t.Run("hunt", func(t *testing.T) {
		for i, m := range mutants {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				within, ok := m.stated(table)
				if *update {
					within, ok = bounds[len(bounds)-1], true
				}
				if !ok {
					t.Fatal("testdata/mutants.md has no such line (go test ./internal/simulation/sim -args -update)")
				}
				lines[i] = m.line(hunt(t, m, within))
			})
		}
	})
	if got := strings.Count(table, "\n") - 2; got != len(mutants) && !*update {
		t.Errorf("the page has %d mutants, there are %d", got, len(mutants))
	}
	if *update && !t.Failed() {
		tree.Generated(t, "internal/simulation/sim/testdata/mutants.md", "mutants",
			"| mutant | what it changes | first caught as | within seeds |\n|---|---|---|---|\n"+strings.Join(lines, ""), true)
	}
}
