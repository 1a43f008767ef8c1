//go:build faults

package faultmap

import (
	"os"
	"path/filepath"
	"testing"
)

// Other pages name tests, too: none of them is gone, empty or skips itself.
func TestPagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatalf("find the repository: %v", err)
	}
	c, err := survey(root)
	if err != nil {
		t.Fatalf("read the sources: %v", err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("find the pages: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatalf("read %s: %v", filepath.Base(page), err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "TestName/part" {
				continue // how a test is named
			}
			if why := c.known(m[1]); why != "" {
				t.Errorf("%s: %s %s", filepath.Base(page), m[1], why)
			}
		}
	}
}
