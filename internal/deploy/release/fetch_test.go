// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
	"github.com/lullhq/lull/internal/deploy/release/releasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// says returns the content of a program for the test: a text that names the program.
func says(p names.Program) []byte { return []byte("program of " + p) }

// index is the program of the function index for OpenSearch.
var index = names.Index.Program("opensearch")

func TestProgramsComeFromARelease(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	sum, folder := releasetest.Write(t, dir, "v0.1.0", "arm64", says)
	var asked atomic.Int64
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for name, base := range map[string]string{"http": server.URL, "a folder": folder} {
		for _, f := range names.Functions() {
			p := f.Program("opensearch")
			got, err := release.Source{Version: "v0.1.0", Base: base, Sum: sum}.Program(t.Context(), p, "arm64")
			if want := says(p); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: got %q and %v, want %q", name, got, err, want)
			}
		}
	}
	// The first run sends two requests. The second run finds both files in the cache, and sends
	// none. Before the third run, the test damages one file in the cache, and only that file is
	// requested again.
	s := release.Source{Version: "v0.1.0", Base: server.URL, Sum: sum, Cache: cache}
	for i, want := range []int64{2, 0, 1} {
		asked.Store(0)
		if i == 2 {
			releasetest.File(
				t,
				filepath.Join(cache, "v0.1.0", release.Zip("v0.1.0", index, "arm64")),
				[]byte("broken"),
			)
		}
		if _, err := s.Program(t.Context(), index, "arm64"); err != nil || asked.Load() != want {
			t.Errorf("run %d: got error %v and %d requests, want %d requests", i, err, asked.Load(), want)
		}
	}
}

// If a downloaded file has the wrong checksum, the file is neither used nor stored in the cache.
func TestWhatIsNotTheReleaseIsRefused(t *testing.T) {
	t.Parallel()
	const version = "v0.1.0"
	for name, tt := range map[string]struct {
		change func(t *testing.T, dir string, s *release.Source)
		arch   string
		want   string
	}{
		"another zip": {change: func(t *testing.T, dir string, _ *release.Source) {
			releasetest.File(t, filepath.Join(dir, version, release.Zip(version, index, "arm64")), releasetest.Zipped(t, release.Program, []byte("evil")))
		}, want: "the file differs from the released one; nothing was stored"},
		"another file of checksums": {change: func(t *testing.T, dir string, _ *release.Source) {
			releasetest.File(t, filepath.Join(dir, version, release.SumsFile), []byte("00  x\n"))
		}, want: "SHA256SUMS of release v0.1.0 has the SHA-256"},
		"a zip that is too large": {change: func(t *testing.T, dir string, _ *release.Source) {
			releasetest.File(t, filepath.Join(dir, version, release.SumsFile), make([]byte, 1<<20+1))
		}, want: "larger than 1048576 bytes"},
		"a version that does not exist": {
			change: func(_ *testing.T, _ string, s *release.Source) { s.Version = "v9.9.9" },
			want:   "is v9.9.9 released?",
		},
		"an architecture that does not exist": {
			arch: "x86_64",
			want: "release v0.1.0 does not contain lull-index-opensearch_v0.1.0_x86_64.zip",
		},
		"no checksum":      {change: func(_ *testing.T, _ string, s *release.Source) { s.Sum = "" }, want: "give the SHA-256 of its file SHA256SUMS"},
		"a short checksum": {change: func(_ *testing.T, _ string, s *release.Source) { s.Sum = "ab" }, want: "64 hexadecimal digits"},
		"no version":       {change: func(_ *testing.T, _ string, s *release.Source) { s.Version = "latest" }, want: "not a version such as v0.1.0"},
		"a way out":        {change: func(_ *testing.T, _ string, s *release.Source) { s.Version = "v0.1.0-../.." }, want: "not a version"},
		"no address":       {change: func(_ *testing.T, _ string, s *release.Source) { s.Base = "releases" }, want: "neither https"},
		"no server": {change: func(_ *testing.T, _ string, s *release.Source) {
			s.Base = "http://user:" + "password@127.0.0.1:1/releases"
		}, want: "fetch http://user:xxxxx@127.0.0.1:1/releases/v0.1.0/SHA256SUMS: dial tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, cache := t.TempDir(), t.TempDir()
			sum, folder := releasetest.Write(t, dir, version, "arm64", says)
			s := release.Source{Version: version, Base: folder, Sum: sum, Cache: cache}
			if tt.change != nil {
				tt.change(t, dir, &s)
			}
			arch := "arm64"
			if tt.arch != "" {
				arch = tt.arch
			}
			_, err := s.Program(context.Background(), index, arch)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "password") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			stored, err := filepath.Glob(filepath.Join(cache, "*", "*lull-*")) // including partly written files
			if err != nil || len(stored) > 0 {
				t.Errorf("the cache contains %v, error %v; want an empty cache", stored, err)
			}
		})
	}
}

// A zip may have the right checksum and no program, if the release was built wrong. The error names
// that zip.
func TestAZipWithoutAProgramIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dlq := names.DLQ.Program("")
	name := release.Zip("v0.1.0", dlq, "arm64")
	packed := releasetest.Zipped(t, "main", nil)
	list := []byte(release.Sum(packed) + "  " + name + "\n")
	releasetest.File(t, filepath.Join(dir, "v0.1.0", name), packed)
	releasetest.File(t, filepath.Join(dir, "v0.1.0", release.SumsFile), list)
	_, err := release.Source{
		Version: "v0.1.0",
		Base:    "file://" + filepath.ToSlash(dir),
		Sum:     release.Sum(list),
	}.Program(
		t.Context(),
		dlq,
		"arm64",
	)
	if err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
}

func TestVersionsOfReleases(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{
		"v0.1.0": {true, false}, "v10.20.30": {true, false}, "v0.2.0-rc.1": {true, true},
		"": {}, "0.1.0": {}, "v1": {}, "v01.0.0": {}, "v0.1.0+x": {}, "v0.1.0-": {}, "v0.1.0-../x": {}, "v0.1.0\n": {},
	} {
		if got := [2]bool{release.IsVersion(text), release.IsVersion(text) && release.IsCandidate(text)}; got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
