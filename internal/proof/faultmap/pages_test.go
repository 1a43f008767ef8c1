// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faultmap

import (
	"path"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

// security is the page that lists what a sender can do. Each line of its tables names a test.
const security = "SECURITY.md"

// TestPagesNameTestsThatExist fails if a page names a test that does not exist, is empty or skips
// itself. The test also fails if a line of the faults names no test.
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
			if why := c.known(m[1]); why != "" && m[1] != "TestName/part" { // the placeholder for the name of a test
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
