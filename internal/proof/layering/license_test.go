// SPDX-License-Identifier: Apache-2.0

package layering

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

var license = flag.Bool("license", false, "add the missing license lines")

// TestEveryFileOfCodeNamesItsLicense checks the line of the SPDX standard that scanners of licenses
// read. With -args -license it adds the missing lines.
func TestEveryFileOfCodeNamesItsLicense(t *testing.T) {
	const name = "SPDX-License-Identifier: Apache-2.0"
	comment := map[string]string{
		".go": "// " + name, ".js": "// " + name, ".ts": "// " + name, ".mts": "// " + name, ".java": "// " + name,
		".sh": "# " + name, ".py": "# " + name, "run": "# " + name, "stages": "# " + name, ".css": "/* " + name + " */",
	}
	for _, file := range tree.Files(t) {
		line := comment[path.Ext(file)]
		if path.Ext(file) == "" {
			line = comment[path.Base(file)]
		}
		if line == "" || strings.Contains(file, "/testdata/") {
			continue
		}
		text := tree.Text(t, file)
		first, rest := "", text
		if strings.HasPrefix(text, "#!") {
			shebang, after, _ := strings.Cut(text, "\n")
			first, rest = shebang+"\n", after
		}
		switch {
		case strings.HasPrefix(rest, line+"\n"):
		case !*license:
			t.Errorf("%s: the license line is missing: go test ./internal/proof/layering -run License -args -license", file)
		default:
			gap := "\n"
			if first != "" {
				gap = "#\n"
			}
			licensed := []byte(first + line + "\n" + gap + rest)
			if err := os.WriteFile(filepath.Join(tree.Root, file), licensed, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
