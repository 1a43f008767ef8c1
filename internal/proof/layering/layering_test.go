package layering

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNoPackageLinksWhatItsLayerMustNot(t *testing.T) {
	t.Parallel()
	root := repository(t)
	for _, r := range rules {
		for _, name := range r.packages {
			t.Run(r.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				if !hasGo(t, filepath.Join(root, filepath.FromSlash(name))) {
					t.Fatalf("%s does not exist: a rule about it says nothing", name)
				}
				linked := link(t, root, module+"/"+name)
				for _, fault := range r.faults(linked, module+"/"+name) {
					t.Error(fault)
				}
			})
		}
	}
}

// A rule that lets everything through would never be noticed in a tidy
// repository, so each kind of fault is shown once to be one.
func TestRuleFindsFaults(t *testing.T) {
	t.Parallel()
	linked := map[string]pkg{
		"m/a": {ImportPath: "m/a", Imports: []string{"m/b", "log/slog"}},
		"m/b": {ImportPath: "m/b", Imports: []string{"x.org/heavy/part"}},
		"x.org/heavy/part": {
			ImportPath: "x.org/heavy/part",
			Imports:    []string{"os", "x.org/heavy/rest"},
		},
		"x.org/heavy/rest": {ImportPath: "x.org/heavy/rest"},
		"log/slog":         {ImportPath: "log/slog"},
		"os":               {ImportPath: "os"},
	}
	tests := []struct {
		name string
		rule rule
		want []string
	}{
		{"nothing forbidden", rule{}, nil},
		{
			"indirect",
			rule{forbid: []string{"x.org/heavy"}},
			[]string{"m/a links x.org/heavy/part: m/a -> m/b -> x.org/heavy/part"},
		},
		{"a prefix of a name is another package", rule{forbid: []string{"x.org/hea"}}, nil},
		{"itself is no fault", rule{forbid: []string{"m/a"}}, nil},
		{"excepted", rule{forbid: []string{"m"}, except: []string{"m/b"}}, nil},
		{"direct", rule{direct: []string{"log"}}, []string{"m/a imports log/slog"}},
		{"direct only", rule{direct: []string{"os"}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.rule.faults(linked, "m/a"); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// faults lists what importPath links against the rule, each with the shortest
// chain of imports that leads to it: one that starts there, not deeper.
func (r rule) faults(linked map[string]pkg, importPath string) []string {
	var faults []string
	for _, p := range sortedKeys(linked) {
		if p == importPath || !under(p, r.forbid) || under(p, r.except) {
			continue
		}
		path := chain(linked, importPath, p)
		if by := path[len(path)-2]; by != importPath && under(by, r.forbid) && !under(by, r.except) {
			continue // what a forbidden package brings along says nothing new
		}
		faults = append(faults, fmt.Sprintf("%s links %s: %s", importPath, p, strings.Join(path, " -> ")))
	}
	for _, p := range linked[importPath].Imports {
		if under(p, r.direct) {
			faults = append(faults, fmt.Sprintf("%s imports %s", importPath, p))
		}
	}
	return faults
}

// under reports whether an import path is one of parents or lies below one.
func under(importPath string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool {
		return importPath == parent || strings.HasPrefix(importPath, parent+"/")
	})
}

// chain is the shortest path of imports between two packages of linked.
func chain(linked map[string]pkg, from, to string) []string {
	via := map[string]string{from: ""}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for _, p := range linked[next[0]].Imports {
			if _, seen := via[p]; !seen {
				via[p] = next[0]
				next = append(next, p)
			}
		}
	}
	var path []string
	for p := to; p != ""; p = via[p] {
		path = append(path, p)
	}
	slices.Reverse(path)
	return path
}

func sortedKeys(linked map[string]pkg) []string {
	keys := make([]string, 0, len(linked))
	for k := range linked {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// pkg is what the go command tells about one linked package.
type pkg struct {
	ImportPath string
	Imports    []string
}

// link asks the go command for everything that importPath links, as a Lambda
// function is built: without cgo and without the RPC mode of aws-lambda-go.
func link(t *testing.T, root, importPath string) map[string]pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", "lambda.norpc", "-json=ImportPath,Imports",
		importPath)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list %s: %v\n%s", importPath, err, stderr.String())
	}
	linked := make(map[string]pkg)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return linked
		}
		if err != nil {
			t.Fatalf("decode the list of %s: %v", importPath, err)
		}
		linked[p.ImportPath] = p
	}
}

// repository is the folder of go.mod. It looks at every Go file below it,
// because a cached test result is only as fresh as the files that the test
// itself has looked at, and the go command looks at them in another process.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatalf("find the repository: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("find the repository: %v", err)
	}
	for _, dir := range []string{"cmd", "event", "functions", "infra", "internal", "setting", "sink", "source"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil || filepath.Ext(path) != ".go":
				return err
			}
			_, err = os.Stat(path)
			return err
		})
		if err != nil {
			t.Fatalf("look at %s: %v", dir, err)
		}
	}
	return root
}

// hasGo reports whether a folder holds Go files that are built.
func hasGo(t *testing.T, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatalf("look for Go files: %v", err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		return !strings.HasSuffix(name, "_test.go")
	})
}
