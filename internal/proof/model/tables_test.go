// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

// TestTablesOfTheDocsAreUpToDate explores everything again and compares the results with the tables
// of docs/model.md.
func TestTablesOfTheDocsAreUpToDate(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]string{
		"holds": holdsTable(), "changes": changesTable(), "machines": machinesTable(),
	} {
		tree.Generated(t, "docs/model.md", name, table, *rewrite)
	}
}

// TestThePageExplainsEveryFinding: docs/model.md links the story of each finding.
func TestThePageExplainsEveryFinding(t *testing.T) {
	t.Parallel()
	page := tree.Text(t, "docs/model.md")
	for _, c := range Findings() {
		if !strings.Contains(page, "/"+c.Name+".txt)") {
			t.Errorf("docs/model.md does not link the story of %s", c.Name)
		}
	}
}

// link returns a link from docs/model.md to a story.
func link(name, text string) string {
	return fmt.Sprintf("[%s](../internal/proof/model/testdata/%s.txt)", text, name)
}

func holdsTable() string {
	bounds, states, steps := 0, 0, 0
	for _, h := range Holdings() {
		if h.Large {
			continue
		}
		r := designs[h.Name]()
		bounds, states, steps = bounds+1, states+r.States, steps+r.Edges
	}
	return fmt.Sprintf("| bounds | states | steps |\n|---:|---:|---:|\n| %d | %d | %d |\n", bounds, states, steps)
}

// summary is a table with a line for each damage: how many changes cause it, and the story of the
// first.
type summary struct {
	breaks []string
	counts map[string]int
	first  map[string]string
}

func (s *summary) add(breaks, name, what string) {
	if s.counts == nil {
		s.counts, s.first = map[string]int{}, map[string]string{}
	}
	if s.counts[breaks]++; s.counts[breaks] == 1 {
		s.breaks = append(s.breaks, breaks)
		s.first[breaks] = link(name, what)
	}
}

func (s *summary) String() string {
	var b strings.Builder
	for _, breaks := range s.breaks {
		fmt.Fprintf(&b, "| %s | %d | %s |\n", breaks, s.counts[breaks], s.first[breaks])
	}
	return b.String()
}

// changesTable returns a table of the damages that changes cause.
func changesTable() string {
	var all summary
	for _, c := range Changes() {
		r := broken[c.Name]()
		what := r.Broken.String()
		if r.Stuck {
			what = "never settles"
		}
		all.add(what, c.Name, c.What)
	}
	return "| what breaks | changes | the first of them |\n|---|---:|---|\n" + all.String()
}

// machinesTable returns a table of what was explored of each small machine.
func machinesTable() string {
	var b strings.Builder
	b.WriteString("| machine | bounds | states | changes, each of which breaks it |\n|---|---:|---:|---:|\n")
	cases := slices.Concat(Cases(), JobCases())
	for i := 0; i < len(cases); {
		machine, bounds, states, changes := cases[i].Machine, 0, 0, 0
		for ; i < len(cases) && cases[i].Machine == machine; i++ {
			if r := cases[i].Run(); cases[i].Name == "" {
				bounds, states = bounds+1, states+r.States
			} else {
				changes++
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", machine, bounds, states, changes)
	}
	return b.String()
}
