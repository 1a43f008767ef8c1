// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
	"github.com/lullhq/lull/internal/deploy/release/releasetest"
)

// program returns a function that makes a program for a machine, which has this number in ELF.
func program(t *testing.T, machine uint16) func(names.Program) []byte {
	t.Helper()
	return func(of names.Program) []byte {
		path := filepath.Join(t.TempDir(), release.Program)
		if err := writeELF(path, machine, string(of)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}

// The functions of a release are staged like the functions in AssetDir. The test is not parallel,
// because an environment variable sets the cache folder.
func TestFunctionsComeFromARelease(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // on macOS the cache folder is below HOME
	dir := t.TempDir()
	const arm, x86 = 183, 62
	sum, url := releasetest.Write(t, dir, "v0.1.0", "arm64", program(t, arm))
	wrongSum, wrongURL := releasetest.Write(t, t.TempDir(), "v0.2.0", "arm64", program(t, x86))

	p := &Props{Config: deployable("lull"), Release: Release{Version: "v0.1.0", Sum: sum, URL: url}}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	folder, err := stage(p)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	for _, f := range names.Functions() {
		of := f.Program("opensearch")
		got, err := os.ReadFile(filepath.Join(folder, of.File(), release.Program))
		if err != nil || string(got) != string(program(t, arm)(of)) {
			t.Errorf("%s: got %d bytes: %v", f, len(got), err)
		}
	}

	for name, tt := range map[string]struct {
		release Release
		assets  string
		arch    Architecture
		want    []string
	}{
		"nothing at all": {want: []string{"run make build and set AssetDir (LULL_DIST), or set Release (LULL_RELEASE)"}},
		"both":           {release: p.Release, assets: "dist", want: []string{"AssetDir are both set"}},
		"another version": {
			release: Release{Version: "v0.3.0", Sum: sum, URL: "file:///nowhere"},
			want:    []string{"Release (v0.3.0)", "file:///nowhere/v0.3.0/SHA256SUMS does not exist", "LULL_DIST"},
		},
		"no version": {release: Release{Version: "latest"}, want: []string{`release "latest" is not a version`}},
		"no sum":     {release: Release{Version: "v0.1.0"}, want: []string{"give the SHA-256 of its file SHA256SUMS"}},
		"another architecture": {
			release: p.Release, arch: X86_64,
			want: []string{"does not contain lull-receive_v0.1.0_x86_64.zip"},
		},
		"wrongly built": {
			release: Release{Version: "v0.2.0", Sum: wrongSum, URL: wrongURL},
			want:    []string{"is built for EM_X86_64, the function is arm64"},
		},
	} {
		err := (&Props{Config: deployable("lull"), Release: tt.release, AssetDir: tt.assets, Architecture: tt.arch}).Validate()
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is missing in %v", name, want, err)
			}
		}
	}
}

// A module with lull in its module cache can build the functions without a clone.
func TestFunctionsAreBuiltFromAModuleThatRequiresLull(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles four programs")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	releasetest.File(t, filepath.Join(dir, "go.sum"), sums)
	releasetest.File(t, filepath.Join(dir, "go.mod"), []byte("module example.org/newsroom\n\ngo 1.26.0\n\n"+
		"replace github.com/lullhq/lull => "+root+"\n\nrequire github.com/lullhq/lull v0.0.0\n"))
	if err := BuildFunctions("dist", ARM64); err == nil || !strings.Contains(err.Error(), "go get -tool") {
		t.Errorf("without tools: got %v, want what to run", err)
	}
	// For a module that requires lull, the go command reads more go.mod files than for lull itself.
	// A new machine has not yet downloaded these files.
	graph := exec.Command("go", "mod", "graph")
	graph.Dir = root
	if said, err := graph.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, f := range names.Functions() {
		get := exec.Command("go", "get", "-tool", functionsPath+string(f.Program("opensearch")))
		get.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
		if said, err := get.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", f, err, said)
		}
	}
	if err := BuildFunctions("dist", ARM64); err != nil {
		t.Fatal(err)
	}
	if err := (&Props{Config: deployable("lull"), AssetDir: filepath.Join(dir, "dist")}).Validate(); err != nil {
		t.Error(err)
	}
	if err := BuildFunctions("dist", "mips"); err == nil {
		t.Error("mips passed")
	}
}
