// SPDX-License-Identifier: Apache-2.0

package layering

import (
	"path"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

// TestOnlyBubblesSleep allows time.Sleep only in packages whose tests run in testing/synctest
// bubbles, where sleeping is virtual and exact. Other tests must wait for a condition.
func TestOnlyBubblesSleep(t *testing.T) {
	t.Parallel()
	sleeps, bubbles := map[string]string{}, map[string]bool{}
	for _, name := range tree.Files(t) {
		if !strings.HasSuffix(name, "_test.go") || path.Base(name) == "sleep_test.go" {
			continue
		}
		text := tree.Text(t, name)
		if strings.Contains(text, "time.Sleep(") {
			sleeps[path.Dir(name)] = name
		}
		for _, sign := range []string{`"testing/synctest"`, "usecasetest.Story("} { // a story is a bubble
			bubbles[path.Dir(name)] = bubbles[path.Dir(name)] || strings.Contains(text, sign)
		}
	}
	for dir, name := range sleeps {
		if !bubbles[dir] {
			t.Errorf("%s sleeps, and no test of its package runs in a synctest bubble: wait for a condition", name)
		}
	}
}
