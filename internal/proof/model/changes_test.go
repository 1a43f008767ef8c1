// SPDX-License-Identifier: Apache-2.0

package model

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	rewrite = flag.Bool("rewrite", false, "write the stories in testdata and the tables in docs/model.md anew")
	large   = flag.Bool("large", false, "explore the large bounds as well: minutes, and some gigabytes")
)

// TestEveryChangeFallsWithItsStory explores each change in its bounds. The test compares the
// shortest counterexample with the story in testdata.
func TestEveryChangeFallsWithItsStory(t *testing.T) {
	t.Parallel()
	for _, c := range append(Changes(), Findings()...) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			r := broken[c.Name]()
			if len(r.Path) == 0 {
				t.Fatalf("the change holds: %s", r)
			}
			if r.Stuck != c.Stuck {
				t.Fatalf("stuck: got %t, want %t", r.Stuck, c.Stuck)
			}
			golden(t, filepath.Join("testdata", c.Name+".txt"), c.story(r))
		})
	}
}

// TestDesignHoldsWhereChangesFall checks that the bounds alone break nothing, and that the
// proposals of the findings help.
func TestDesignHoldsWhereChangesFall(t *testing.T) {
	t.Parallel()
	for _, c := range append(Changes(), Findings()...) {
		if c.Against == c.Rules {
			continue // a finding without a proposal
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m := Model{Rules: c.Against, Bounds: c.Bounds}
			holds(t, m, Explore(m, Options{Watch: c.held(), Stuck: true}))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./internal/proof/model -args -rewrite keeps it); got\n%s", name, got)
	}
}

// story returns the text of a change's story file.
func (c Change) story(r Result[State]) string {
	m := c.model()
	lines := m.Story(r.Path)
	var b strings.Builder
	fmt.Fprintf(&b, "Change: %s.\nBounds: %s.\n\n", c.What, c.Bounds)
	fmt.Fprintf(&b, "%s\n", strings.Join(lines, "\n"))
	if r.Round > 0 {
		fmt.Fprintf(&b, "    ... and again from line %d.\n", r.Round)
	}
	fmt.Fprintf(&b, "\n%s\n", m.ending(r))
	return b.String()
}

func (m Model) ending(r Result[State]) string {
	last := m.Describe(r.Path[len(r.Path)-1].To)
	if r.Stuck {
		return fmt.Sprintf("Stuck: without another fault this never settles: %s.", last)
	}
	return fmt.Sprintf("Broken: %s.\nAt the end %s.", r.Broken, last)
}
