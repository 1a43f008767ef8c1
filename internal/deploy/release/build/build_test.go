// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const changelog = `# Changelog

## Unreleased

Next.

## [v0.2.0] (2026-12-01)

Second.

### Changed

- This.

## v0.1.0

First.
`

func TestAVersionHasItsSectionOfTheChangelog(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v0.1.0": "First.", "v0.2.0": "Second.\n\n### Changed\n\n- This.", "v0.3.0-rc.1": "Next.", "v0.3.0": "", "v0.1": "",
	} {
		if got := section(changelog, version); got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}

// repository creates a git repository with one commit. The returned function runs a git command in
// the repository.
func repository(t *testing.T) (root string, git func(args ...string)) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root = t.TempDir()
	git = func(args ...string) {
		t.Helper()
		c := exec.Command("git", args...)
		c.Dir = root
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=2026-11-22T08:00:00Z")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "CHANGELOG.md"), []byte(changelog), 0o600); err != nil {
		t.Fatal(err)
	}
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "--message", "one")
	return root, git
}

func TestAReleaseIsRefusedWithEveryReason(t *testing.T) {
	t.Parallel()
	root, git := repository(t)
	r, err := prepare(t.Context(), root, "v0.1.0")
	if err != nil || len(r.commit) != 40 || !r.time().Equal(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)) ||
		r.notes != "First." {
		t.Fatalf("got %+v and %v", r, err)
	}
	git("tag", "v0.1.0")
	git("tag", "v0.5.0")
	if _, err := prepare(t.Context(), root, "v0.1.0"); err != nil {
		t.Errorf("the commit has the tag of the version: got %v, want no error", err)
	}
	git("commit", "--quiet", "--allow-empty", "--message", "two")
	if err := os.WriteFile(filepath.Join(root, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string][]string{
		"v0.1.0": {"the tree has changes: commit them\n?? more", "the tag v0.1.0 is another commit"},
		"v0.5.0": {"no section ## v0.5.0", "the tree has changes", "the tag v0.5.0"},
		"0.1.0":  {`VERSION is "0.1.0": write a version such as v0.1.0`},
		"":       {"write a version"},
	} {
		_, err := prepare(t.Context(), root, version)
		for _, text := range want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error does not contain %q: %v", version, text, err)
			}
		}
	}
}

// An archive contains neither the user who packed it nor the current time. The program of a
// function is executable.
func TestArchivesOfTheSameFilesAreTheSame(t *testing.T) {
	t.Parallel()
	at := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	files := []entry{{"bootstrap", 0o755, []byte("program")}, {"README.md", 0o644, []byte("text")}}
	for name, pack := range map[string]func(time.Time, []entry) ([]byte, error){"tar": tarArchive, "zip": zipArchive} {
		first, err := pack(at, files)
		again, err2 := pack(at, files)
		if err = errors.Join(err, err2); err != nil || !bytes.Equal(first, again) {
			t.Errorf("%s: two archives of the same files differ: %v", name, err)
		}
		if name == "zip" {
			z, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
			if err != nil || len(z.File) != 2 || z.File[0].Mode() != 0o755 || !z.File[0].Modified.Equal(at) {
				t.Errorf("got %v of %v: %v", z.File[0].Mode(), z.File[0].Modified, err)
			}
		}
	}
}
