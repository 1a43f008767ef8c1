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
	var b strings.Builder
	b.WriteString("| bounds | states | steps |\n|---|---:|---:|\n")
	for _, h := range Holdings() {
		if h.Large {
			continue
		}
		r := designs[h.Name]()
		fmt.Fprintf(&b, "| %s | %d | %d |\n", h.Name, r.States, r.Edges)
	}
	return b.String()
}

// changesTable returns a table of the changes, grouped by the damage that they cause.
func changesTable() string {
	var breaks []string
	rows := map[string]string{}
	for _, c := range Changes() {
		r := broken[c.Name]()
		what := r.Broken.String()
		if r.Stuck {
			what = "never settles"
		}
		if rows[what] == "" {
			breaks = append(breaks, what)
			rows[what] = fmt.Sprintf("| %s | %s |\n", what, link(c.Name, c.What))
			continue
		}
		rows[what] += fmt.Sprintf("| | %s |\n", link(c.Name, c.What))
	}
	table := "| what breaks | change |\n|---|---|\n"
	for _, what := range breaks {
		table += rows[what]
	}
	return table
}

func machinesTable() string {
	var b strings.Builder
	b.WriteString("| machine | what is explored | what breaks |\n|---|---|---|\n")
	for _, c := range slices.Concat(Cases(), JobCases()) {
		r := c.Run()
		what, breaks := c.What, fmt.Sprintf("nothing, in %d states", r.States)
		switch {
		case r.Stuck:
			breaks = "never settles"
		case c.Name != "":
			breaks = r.Broken.String()
		}
		if c.Name != "" {
			what = link(c.Name, c.What)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Machine, what, breaks)
	}
	return b.String()
}
