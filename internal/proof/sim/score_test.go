package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of mutants into docs/simulator.md")

// bounds are the numbers of seeds within which a mutant may be said to be killed: with room,
// because every change of the product moves the seed that does it.
var bounds = []int{10, 30, 100, 300, 1000, 3000}

const room = 2

// death is how a mutant fell.
type death struct {
	seed int
	rule string
}

// hunt looks for the first seed that kills a mutant.
func hunt(t *testing.T, m mutant, within int) (death, bool) {
	t.Helper()
	for seed := 1; seed <= within; seed++ {
		var w *World
		w = build(t, uint64(seed), Swarm, func(o *Options) { o.Hooks = m.make(&w) })
		if r := w.Run(); len(r.Violations) > 0 {
			return death{seed, r.Violations[0].Rule}, true
		}
	}
	return death{}, false
}

// line is the mutant's line in docs/simulator.md.
func (m mutant) line(d death) string {
	within := bounds[len(bounds)-1]
	for i := len(bounds) - 1; i >= 0 && room*d.seed <= bounds[i]; i-- {
		within = bounds[i]
	}
	return fmt.Sprintf("| %s | %s | %s | %d |\n", m.name, m.change, d.rule, within)
}

// stated reads the number of seeds that the page gives the mutant.
func (m mutant) stated(page string) (int, bool) {
	_, rest, ok := strings.Cut(page, fmt.Sprintf("\n| %s | %s | ", m.name, m.change))
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
	page := readPage(t)
	lines := make([]string, len(mutants))
	t.Run("hunt", func(t *testing.T) {
		for i, m := range mutants {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				within, ok := m.stated(page)
				if *update {
					within, ok = bounds[len(bounds)-1], true
				}
				if !ok {
					t.Fatal("docs/simulator.md has no such line (go test ./internal/proof/sim -args -update)")
				}
				d, killed := hunt(t, m, within)
				if !killed {
					t.Fatalf("lives after %d seeds: %s", within, m.change)
				}
				lines[i] = m.line(d)
			})
		}
	})
	if got := strings.Count(mutantTable(t, page), "\n") - 2; got != len(mutants) && !*update {
		t.Errorf("the page has %d mutants, there are %d", got, len(mutants))
	}
	if *update && !t.Failed() {
		want := "| mutant | what it changes | first caught as | within seeds |\n|---|---|---|---|\n" +
			strings.Join(lines, "")
		if err := os.WriteFile(pagePath(), []byte(strings.Replace(page, mutantTable(t, page), want, 1)),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func pagePath() string { return filepath.Join("..", "..", "..", "docs", "simulator.md") }

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(pagePath())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// mutantTable is the part of the page between its marks.
func mutantTable(t *testing.T, page string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "<!-- mutants: begin, written by go test ./internal/proof/sim -args -update -->\n")
	part, _, ok2 := strings.Cut(rest, "<!-- mutants: end -->\n")
	if !ok || !ok2 {
		t.Fatal("docs/simulator.md has lost the marks around its table of mutants")
	}
	return part
}
