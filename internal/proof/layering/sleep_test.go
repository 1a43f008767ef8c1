package layering

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnlyBubblesSleep allows time.Sleep in tests of packages that run them in testing/synctest
// bubbles, where sleeping is virtual and exact. Elsewhere a test waits for a condition.
func TestOnlyBubblesSleep(t *testing.T) {
	t.Parallel()
	sleeps, bubbles := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "sleep_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if strings.Contains(string(text), "time.Sleep(") {
			sleeps[dir] = path
		}
		if strings.Contains(string(text), `"testing/synctest"`) {
			bubbles[dir] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, path := range sleeps {
		if !bubbles[dir] {
			t.Errorf("%s sleeps, and no test of its package runs in a synctest bubble: wait for a condition", path)
		}
	}
	if len(bubbles) == 0 {
		t.Error("no package uses synctest: this check looks in the wrong place")
	}
}
