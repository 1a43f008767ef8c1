// SPDX-License-Identifier: Apache-2.0

// Package releasetest writes releases for tests. These releases have the layout of real releases.
package releasetest

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
)

// Write writes a release for one architecture into a folder of releases: the zips of the functions,
// and the file with their checksums. Write returns the SHA-256 of the file with the checksums, and
// the URL of the folder.
func Write(t testing.TB, dir, version, arch string, program func(names.Program) []byte) (sum, at string) {
	t.Helper()
	var list strings.Builder
	for _, f := range append(names.Functions(), names.Feed, names.Searchable) {
		p := f.Program("opensearch")
		name := release.Zip(version, p, arch)
		packed := Zipped(t, release.Program, program(p))
		File(t, filepath.Join(dir, version, name), packed)
		_, _ = fmt.Fprintf(&list, "%s  %s\n", release.Sum(packed), name)
	}
	File(t, filepath.Join(dir, version, release.SumsFile), []byte(list.String()))
	return release.Sum([]byte(list.String())), (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
}

// Zipped returns a zip that contains one file.
func Zipped(t testing.TB, name string, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	if err := errors.Join(z.AddFS(fstest.MapFS{name: {Data: content}}), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// File writes a file and creates the folders above the file.
func File(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
}
