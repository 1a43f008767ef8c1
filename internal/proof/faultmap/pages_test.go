//go:build faults

package faultmap

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

// security says what a sender can do, and names a test in each line of its tables.
const security = "SECURITY.md"

// TestPagesNameTestsThatExist finds tests on any page that are gone, empty or skip themselves, and
// lines of the faults that name none.
func TestPagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	files := tree.Files(t)
	c, err := survey(files)
	if err != nil {
		t.Fatalf("read the sources: %v", err)
	}
	for _, page := range files {
		if page != security && (path.Dir(page) != "docs" || path.Ext(page) != ".md") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(tree.Root, page))
		if err != nil {
			t.Fatalf("read %s: %v", page, err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if why := c.known(m[1]); why != "" && m[1] != "TestName/part" { // how a test is named
				t.Errorf("%s: %s %s", page, m[1], why)
			}
		}
		if page == security {
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| a sender") && !named.MatchString(line) {
					t.Errorf("%s: %.60s... names no test", page, line)
				}
			}
		}
		if page == "docs/faults.md" {
			for _, m := range missing(strings.Split(string(text), "\n"), lines) {
				t.Error(m)
			}
		}
	}
}
