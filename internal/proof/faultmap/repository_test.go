//go:build faults

package faultmap

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEveryFaultHasItsTests(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatalf("find the repository: %v", err)
	}
	document, err := os.ReadFile(filepath.Join(root, "docs", "faults.md"))
	if err != nil {
		t.Fatalf("read the faults: %v", err)
	}
	c, err := survey(root)
	if err != nil {
		t.Fatalf("read the sources: %v", err)
	}
	faults := parse(string(document))
	for _, m := range missing(faults, lines, c.known) {
		t.Error(m)
	}
	tests := 0
	for _, f := range faults {
		tests += len(f.tests)
	}
	t.Logf("%d lines name %d tests", len(faults), tests)
}
