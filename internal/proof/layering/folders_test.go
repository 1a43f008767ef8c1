// SPDX-License-Identifier: Apache-2.0

package layering

import (
	"slices"
	"strings"
	"testing"
)

// folders lists the folders of the repository from the bottom to the top, each with the folders
// that it imports. A folder may import only folders above it in this list, so that no imports form
// a circle.
var folders = []struct{ name, imports string }{
	{"internal/shard", ""},
	{"setting", ""},
	{"searchable", ""},
	{"internal/terminal", "internal/shard"},
	{"internal/seam", "internal/shard"},
	{"event", "internal/shard internal/seam"},
	{"source", "internal/shard setting internal/seam event"},
	{"sink", "internal/shard setting internal/seam event"},
	{"internal/config", "internal/shard setting internal/seam source sink"},
	{"internal/pipeline", "internal/shard internal/seam event source sink internal/config"},
	{"internal/fault", "internal/shard internal/seam sink internal/pipeline"},
	{
		"internal/operator",
		"internal/shard searchable internal/terminal internal/seam event source sink internal/config internal/pipeline",
	},
	{
		"internal/console",
		"internal/shard searchable internal/terminal internal/seam source sink internal/config internal/fault internal/operator",
	},
	{
		"internal/local",
		"internal/shard searchable internal/terminal internal/seam event source sink internal/config internal/pipeline " +
			"internal/fault internal/operator internal/console",
	},
	{"internal/deploy", "internal/seam internal/config"},
	{
		"internal/aws",
		"internal/shard setting internal/terminal internal/seam event source sink internal/config internal/pipeline " +
			"internal/operator internal/deploy",
	},
	{"functions", "internal/seam source sink internal/config internal/pipeline internal/operator internal/aws"},
	{
		"internal/simulation",
		"internal/shard internal/terminal internal/seam event source sink internal/config internal/pipeline internal/fault " +
			"internal/operator internal/local internal/deploy internal/aws",
	},
	{
		"infra",
		"internal/shard setting internal/seam source sink internal/config internal/pipeline internal/operator " +
			"internal/deploy internal/aws internal/simulation",
	},
	{
		"command",
		"internal/shard setting searchable internal/terminal internal/seam event source sink internal/config " +
			"internal/pipeline internal/fault internal/operator internal/console internal/local internal/deploy internal/aws internal/simulation",
	},
	{"cmd", "command"},
	{"e2e", "internal/shard internal/seam source sink searchable internal/config internal/operator internal/deploy " +
		"internal/aws"},
	{
		"internal/proof",
		"internal/shard internal/seam source sink internal/config internal/pipeline internal/fault internal/local " +
			"internal/deploy internal/simulation",
	},
}

// examples is the folder of example programs. This folder is not in the list of folders, and may
// import any folder.
const examples = "examples"

func TestFoldersImportWhatIsListed(t *testing.T) {
	t.Parallel()
	linked := list(t)
	listed, at := map[string][]string{}, map[string]int{}
	for i, f := range folders {
		at[f.name], listed[f.name] = i, strings.Fields(f.imports)
		for _, imported := range listed[f.name] {
			if j, known := at[imported]; !known || j == i {
				t.Errorf("%s imports %s, which does not stand above it", f.name, imported)
			}
		}
	}
	found := map[string]map[string]bool{}
	for _, path := range ours(linked) {
		from := folderOf(path)
		if from == examples || isSuite(path) {
			continue
		}
		if _, known := at[from]; !known {
			t.Errorf("%s belongs to no folder of the list", path)
			continue
		}
		for _, imported := range linked[path].Imports {
			to := folderOf(imported)
			if to == "" || to == from {
				continue
			}
			if !slices.Contains(listed[from], to) {
				t.Errorf("%s imports %s: %s may not import %s", path, imported, from, to)
			}
			if found[from] == nil {
				found[from] = map[string]bool{}
			}
			found[from][to] = true
		}
	}
	inside := 0
	for _, f := range folders {
		for _, imported := range listed[f.name] {
			if !found[f.name][imported] {
				t.Errorf("%s does not import %s any more: take it from the list", f.name, imported)
			}
		}
		if strings.HasPrefix(f.name, "internal/") {
			inside++
		}
	}
	if inside > 14 || len(folders) > 24 {
		t.Errorf("%d folders, %d of them in internal/: a reader can hold 24, and 14 of them there", len(folders), inside)
	}
}

// The conformance suites import the package testing. Only tests and other suites may import the
// suites.
func TestOnlyTestsLinkSuites(t *testing.T) {
	t.Parallel()
	linked, suites := list(t), 0
	for _, path := range ours(linked) {
		if isSuite(path) {
			suites++
			continue
		}
		for _, imported := range linked[path].Imports {
			if isSuite(imported) {
				t.Errorf("%s imports the suite %s", path, imported)
			}
		}
	}
	if suites == 0 {
		t.Error("there are no suites")
	}
}

// isSuite reports whether a package of this module is a conformance suite.
func isSuite(path string) bool {
	return under(path, []string{module}) && strings.HasSuffix(path, "test")
}

// folderOf returns the folder of a package, or "" for a package of another module.
func folderOf(path string) string {
	rest, found := strings.CutPrefix(path, module+"/")
	if !found {
		return ""
	}
	names := strings.SplitN(rest, "/", 3)
	if names[0] == "internal" && len(names) > 1 {
		return names[0] + "/" + names[1]
	}
	return names[0]
}
