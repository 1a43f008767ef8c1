// SPDX-License-Identifier: Apache-2.0

package layering

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/proof/tree"
)

func TestNoPackageLinksWhatItMustNot(t *testing.T) {
	t.Parallel()
	linked := list(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			held := 0
			for _, path := range ours(linked) {
				if r.holds(path) {
					held++
					for _, fault := range r.faults(linked, path) {
						t.Error(fault)
					}
				}
			}
			if held == 0 {
				t.Error("the rule is about packages that do not exist")
			}
		})
	}
}

// TestIndexLinksTheKindOfItsSinkAlone: the index program for a kind of sink links only that kind,
// because some kinds have large clients. A kind may also link the kinds that it is built on.
func TestIndexLinksTheKindOfItsSinkAlone(t *testing.T) {
	t.Parallel()
	linked, held := list(t), 0
	kinds := linked[module+"/sink/builtin"].Imports
	for _, path := range ours(linked) {
		kind, ok := strings.CutPrefix(path, module+"/functions/index/")
		if !ok {
			continue
		}
		held++
		own := module + "/sink/" + kind
		others := slices.DeleteFunc(slices.Clone(kinds), func(p string) bool {
			return p == own || slices.Contains(linked[own].Imports, p)
		})
		for _, fault := range (rule{forbid: append(others, module+"/sink/builtin")}).faults(linked, path) {
			t.Error(fault)
		}
	}
	if held == 0 {
		t.Error("index has no program")
	}
}

// TestRulesFindFaults shows one fault of each kind. Without this test, a rule that allows
// everything would go unnoticed.
func TestRulesFindFaults(t *testing.T) {
	t.Parallel()
	linked := map[string]pkg{
		"m/a":              {Imports: []string{"m/b", "log/slog"}},
		"m/b":              {Imports: []string{"x.org/heavy/part"}},
		"x.org/heavy/part": {Imports: []string{"os", "x.org/heavy/rest"}},
		"x.org/heavy/rest": {}, "log/slog": {}, "os": {},
	}
	for name, tt := range map[string]struct {
		rule rule
		want []string
	}{
		"nothing forbidden": {},
		"indirect": {
			rule{forbid: []string{"x.org/heavy"}},
			[]string{"m/a links x.org/heavy/part: m/a -> m/b -> x.org/heavy/part"},
		},
		"a prefix of a name is another package": {rule: rule{forbid: []string{"x.org/hea"}}},
		"direct":                                {rule{direct: []string{"log"}}, []string{"m/a imports log/slog"}},
		"direct only":                           {rule: rule{direct: []string{"os"}}},
	} {
		if got := tt.rule.faults(linked, "m/a"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	for path, want := range map[string]string{
		module + "/internal/shard": "internal/shard", module + "/internal/seam/queue": "internal/seam", module + "/event": "event",
		module + "/sink/internal/exchange": "sink", "github.com/aws/aws-sdk-go-v2/internal/x": "", module + "x/event": "",
	} {
		if got := folderOf(path); got != want {
			t.Errorf("%s is in folder %q, want %q", path, got, want)
		}
	}
}

// holds reports whether the rule applies to a package.
func (r rule) holds(path string) bool {
	folder := strings.TrimPrefix(path, module+"/")
	return under(path, []string{module}) && under(folder, r.of) && !under(folder, r.but) && !isSuite(path)
}

// below returns the folders of packages of this module.
func below(paths []string) []string {
	folders := make([]string, len(paths))
	for i, path := range paths {
		folders[i] = strings.TrimPrefix(path, module+"/")
	}
	return folders
}

// faults lists the forbidden packages that a package links, each with the shortest chain of imports
// that leads to it. Imports of a forbidden package are not followed.
func (r rule) faults(linked map[string]pkg, path string) (faults []string) {
	via := map[string]string{path: ""}
	for next := []string{path}; len(next) > 0; next = next[1:] {
		at := next[0]
		if at != path && under(at, r.forbid) {
			chain := at
			for p := via[at]; p != ""; p = via[p] {
				chain = p + " -> " + chain
			}
			faults = append(faults, fmt.Sprintf("%s links %s: %s", path, at, chain))
			continue
		}
		for _, p := range linked[at].Imports {
			if _, seen := via[p]; !seen {
				via[p] = at
				next = append(next, p)
			}
		}
	}
	for _, p := range linked[path].Imports {
		if under(p, r.direct) {
			faults = append(faults, fmt.Sprintf("%s imports %s", path, p))
		}
	}
	return faults
}

// under reports whether a path is one of parents, or is below one of parents.
func under(path string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool {
		return path == parent || strings.HasPrefix(path, parent+"/")
	})
}

// pkg is the description of one package by the go command.
type pkg struct {
	ImportPath string
	Imports    []string
}

// ours returns the packages of this module.
func ours(linked map[string]pkg) []string {
	paths := slices.Sorted(maps.Keys(linked))
	return slices.DeleteFunc(paths, func(path string) bool { return !under(path, []string{module}) })
}

// list asks the go command for all packages that this module links. The build settings are the ones
// of a Lambda function: without cgo, and without the RPC mode of aws-lambda-go.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	tree.Files(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "lambda.norpc", "-json=ImportPath,Imports",
		"./...")
	cmd.Dir, cmd.Env = tree.Root, append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list the packages: %v\n%s", err, stderr.String())
	}
	linked := map[string]pkg{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return linked
		}
		if err != nil {
			t.Fatalf("decode the list: %v", err)
		}
		linked[p.ImportPath] = p
	}
}
