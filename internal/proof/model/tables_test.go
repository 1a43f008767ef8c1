package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

// TestTablesOfTheDocsAreUpToDate explores everything again and compares the results with the tables
// of docs/model.md.
func TestTablesOfTheDocsAreUpToDate(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]string{
		"holds": holdsTable(), "changes": changesTable(Changes()), "machines": machinesTable(),
		"findings": changesTable(Findings()),
	} {
		tree.Generated(t, "docs/model.md", name, table, *rewrite)
	}
}

func holdsTable() string {
	var b strings.Builder
	b.WriteString("| bounds | states | steps |\n|---|---|---|\n")
	for _, h := range Holdings() {
		if h.Large {
			continue
		}
		r := designs[h.Name]()
		fmt.Fprintf(&b, "| %s: %s | %d | %d |\n", h.Name, h.Bounds, r.States, r.Edges)
	}
	return b.String()
}

func changesTable(changes []Change) string {
	var b strings.Builder
	b.WriteString("| change | what breaks | lines | states |\n|---|---|---|---|\n")
	for _, c := range changes {
		r := broken[c.Name]()
		breaks := r.Broken.String()
		if r.Stuck {
			breaks = "never settles: " + c.model().Describe(r.Path[len(r.Path)-1].To)
		}
		fmt.Fprintf(&b, "| [%s](../internal/proof/model/testdata/%s.txt) | %s | %d | %d |\n", c.What, c.Name, breaks,
			len(r.Path), r.States)
	}
	return b.String()
}

func machinesTable() string {
	var b strings.Builder
	b.WriteString("| machine | what is explored | what breaks | lines | states |\n|---|---|---|---|---|\n")
	for _, c := range Cases() {
		r := c.Run()
		what, breaks, lines := c.What, "nothing: the design holds", "-"
		if c.Name != "" {
			what = fmt.Sprintf("[%s](../internal/proof/model/testdata/%s.txt)", c.What, c.Name)
			breaks, lines = r.Broken.String(), fmt.Sprint(r.Steps)
			if r.Stuck {
				breaks = "never settles"
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d |\n", c.Machine, what, breaks, lines, r.States)
	}
	return b.String()
}
