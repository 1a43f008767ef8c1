// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release/releasetest"
)

// A release contains all programs that were built, including one program of index for each kind of
// sink.
func TestAReleaseHasEveryProgramThatWasBuilt(t *testing.T) {
	t.Parallel()
	dist := t.TempDir()
	for _, path := range []string{"receive/bootstrap", "index/opensearch/bootstrap", "index/postgres/bootstrap", "index/readme"} {
		releasetest.File(t, filepath.Join(dist, filepath.FromSlash(path)), []byte(path))
	}
	got, err := programsIn(dist)
	want := []names.Program{"index/opensearch", "index/postgres", "receive"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := programsIn(filepath.Join(dist, "none")); err == nil {
		t.Error("programsIn returned no error for a folder that does not exist")
	}
}
