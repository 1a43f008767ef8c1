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

// TestEveryChangeFallsWithItsStory explores each change in its bounds, and compares the shortest
// counterexample with the story that is kept for readers.
func TestEveryChangeFallsWithItsStory(t *testing.T) {
	t.Parallel()
	for _, c := range append(Changes(), Findings()...) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m := Model{Rules: c.Rules, Bounds: c.Bounds}
			r := Explore(m, Options{Watch: c.Watch, Stuck: c.Stuck})
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

// TestProposalsHoldWhereTheDesignWasFoundWanting shows that what the findings propose helps.
func TestProposalsHoldWhereTheDesignWasFoundWanting(t *testing.T) {
	t.Parallel()
	for _, c := range Findings() {
		if c.Against == (Rules{}) && c.Rules == (Rules{}) {
			continue // nothing is proposed
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			hold(t, Model{Rules: c.Against, Bounds: c.Bounds}, c.held())
		})
	}
}

// TestDesignHoldsWhereChangesFall shows that the bounds alone break nothing.
func TestDesignHoldsWhereChangesFall(t *testing.T) {
	t.Parallel()
	for _, c := range Changes() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			hold(t, Model{Rules: c.Against, Bounds: c.Bounds}, c.held())
		})
	}
}

func hold(t *testing.T, m Model, watch Broken) {
	t.Helper()
	r := Explore(m, Options{Watch: watch, Stuck: true, Report: report(t)})
	holds(t, m, r)
}

// holds fails where the exploration found anything, or was not complete.
func holds(t *testing.T, m Model, r Result[State]) {
	t.Helper()
	if len(r.Path) > 0 {
		t.Fatalf("the design falls: %s\n%s\n%s", r, strings.Join(m.Story(r.Path), "\n"), m.ending(r))
	}
	if !r.Full || r.Settled == 0 {
		t.Fatalf("not explored to the end: %s", r)
	}
	t.Log(r)
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

// story is the text of a change's file.
func (c Change) story(r Result[State]) string {
	m := Model{Rules: c.Rules, Bounds: c.Bounds}
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
