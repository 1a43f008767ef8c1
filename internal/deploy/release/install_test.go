// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestGoInstall makes the archive of a version that Go's module proxies would serve, and installs
// the command line from it. So a file that the archive lacks, or a replace line in go.mod, fails
// here and not for the first user.
func TestGoInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the whole command line from an empty module cache")
	}
	const path, version = "github.com/lullhq/lull", "v0.1.0-rc.1"
	proxy := t.TempDir()
	folder := filepath.Join(proxy, path, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const root = "../../.."
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write("list", version+"\n")
	write(version+".info", `{"Version":"`+version+`"}`)
	write(version+".mod", string(mod))
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.CreateFromVCS(archive, module.Version{Path: path, Version: version}, root, "HEAD", ""); err != nil {
		t.Fatal(err)
	}

	cache := output(t, nil, "go", "env", "GOMODCACHE")
	bin := t.TempDir()
	output(t, []string{ // GOSUMDB: go.sum has judged the modules of this cache already
		"GOBIN=" + bin, "GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw", "GOSUMDB=off",
		"GOPROXY=file://" + proxy + ",file://" + filepath.ToSlash(filepath.Join(cache, "cache", "download")),
	}, "go", "install", path+"/cmd/lull@"+version)
	lull := filepath.Join(bin, "lull")
	if got := output(t, nil, lull, "--version"); !strings.Contains(got, version) {
		t.Errorf("lull --version prints %q, want %s in it", got, version)
	}
	// A new stack is made of files that are compiled in, and its example events are indexed.
	stack := filepath.Join(t.TempDir(), "stack")
	output(t, nil, lull, "new", stack)
	output(t, nil, lull, "dev", "--local", "--config", filepath.Join(stack, "lull.yaml"),
		"--events", filepath.Join(stack, "events.ndjson"), "--exit-when-idle", "--speed", "100")
}

// output runs a program outside of this module and returns what it prints.
func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), env...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, problems.String())
	}
	return strings.TrimSpace(string(out))
}
