//go:build faults

package faultmap

import (
	"path"
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
	c := survey(t, files)
	for _, page := range files {
		if page != security && (path.Dir(page) != "docs" || path.Ext(page) != ".md") {
			continue
		}
		text := tree.Text(t, page)
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if why := c.known(m[1]); why != "" && m[1] != "TestName/part" { // how a test is named
				t.Errorf("%s: %s %s", page, m[1], why)
			}
		}
		if page == security {
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| a sender") && !named.MatchString(line) {
					t.Errorf("%s: %.60s... names no test", page, line)
				}
			}
		}
		if page == "docs/faults.md" {
			for _, m := range missing(strings.Split(text, "\n"), lines) {
				t.Error(m)
			}
		}
	}
}
