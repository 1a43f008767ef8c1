// SPDX-License-Identifier: Apache-2.0

// Command build makes a release: `make release VERSION=v0.1.0`.
//
// The command writes a folder with all files of the release. The command refuses if the working
// tree has changes, if the version has no section in CHANGELOG.md, or if the folder exists.
//
// Two builds of the same commit give the same bytes. All files have the time of the commit, and the
// Go toolchain has the version that go.mod names.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lullhq/lull/internal/deploy/release"
)

func main() {
	version := flag.String("version", "", "the version, such as v0.1.0; v0.1.0-rc.1 is a candidate")
	out := flag.String("out", filepath.Join("dist", "release"), "the folder in which the folder of the release is created")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *version, *out, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run writes the release to a folder below out, named after the version. That folder appears only
// when it is complete.
func run(ctx context.Context, version, out string, log io.Writer) (err error) {
	r, err := prepare(ctx, ".", version)
	if err != nil {
		return err
	}
	final := filepath.Join(out, version)
	if _, err := os.Stat(final); err == nil {
		return fmt.Errorf("%s exists: delete it to make it again", final)
	}
	absolute, err := filepath.Abs(out) // the commands that build programs may run in another folder
	if err == nil {
		err = os.MkdirAll(absolute, 0o755)
	}
	if err == nil {
		r.dir, err = os.MkdirTemp(absolute, ".making-")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	r.log = log
	if err := r.make(ctx); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(r.scratch()), os.Chmod(r.dir, 0o755), os.Rename(r.dir, final)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(log, "%s: %s of %s is %s\n", final, "the SHA-256", release.SumsFile, r.total)
	return err
}

// prepare checks the version, the changelog and the working tree, and returns all faults together.
func prepare(ctx context.Context, root, version string) (*making, error) {
	r := &making{root: root, version: version}
	if !release.IsVersion(version) {
		return nil, fmt.Errorf("VERSION is %q: write a version such as v0.1.0, or v0.1.0-rc.1 for a candidate", version)
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	var faults []error
	if r.notes = section(string(changelog), version); r.notes == "" {
		faults = append(
			faults,
			fmt.Errorf("CHANGELOG.md has no section ## %s: rename ## Unreleased and commit", version),
		)
	}
	dirty, err := r.git(ctx, "status", "--porcelain")
	if dirty != "" {
		err = fmt.Errorf("the tree has changes: commit them\n%s", dirty)
	}
	head, headErr := r.git(ctx, "show", "-s", "--format=%H %ct", "HEAD")
	faults = append(faults, err, headErr)
	_, _ = fmt.Sscan(head, &r.commit, &r.seconds)
	if tagged, err := r.git(ctx, "rev-parse", "--verify", "--quiet", version+"^{commit}"); err == nil &&
		tagged != r.commit {
		faults = append(faults, fmt.Errorf("the tag %s is another commit, %s: check it out, or choose another version",
			version, tagged))
	}
	return r, errors.Join(faults...)
}

// section returns the text below the heading of a version in the changelog. The function returns an
// empty text if that heading is missing. For a candidate, the heading is Unreleased.
func section(changelog, version string) string {
	heading := version
	if release.IsCandidate(version) {
		heading = "Unreleased"
	}
	// The heading may have brackets around the version, and a date after the version.
	found := regexp.MustCompile(`(?ms)^## \[?` + regexp.QuoteMeta(heading) + `\]?(?: [^\n]*)?$(.*?)(?:^## |\z)`).
		FindStringSubmatch(changelog)
	if found == nil {
		return ""
	}
	return strings.TrimSpace(found[1])
}
