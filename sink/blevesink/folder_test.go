// SPDX-License-Identifier: Apache-2.0

package blevesink_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lullhq/lull/sink/blevesink"
)

func TestOpenLeavesForeignFoldersAlone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, content, reason string
	}{
		{"somebody's files", "thesis.txt", "years of work", "is not empty"},
		{"another program's marker", "lull.json", `{"holds":"tides"}`, "lull did not write"},
		{"a marker that is not JSON", "lull.json", "lull", "lull did not write"},
		{
			"a newer schema", "lull.json", `{"holds":"lull search index","schema":2}`,
			"newer lull (schema 2, this one knows 1)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, tt.file)
			if err := os.WriteFile(file, []byte(tt.content), 0o644); err != nil {
				t.Fatal(err)
			}
			refused(t, dir, tt.reason)
			if got, err := os.ReadFile(file); err != nil || string(got) != tt.content {
				t.Errorf("the file holds %q, %v", got, err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("the folder holds %v, %v", entries, err)
			}
		})
	}
}

func TestOpenRefusesAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, file, "is a file")
}

// refused checks that Open fails, and that the error says which folder, what is in it and what to
// do.
func refused(t *testing.T, dir, reason string) {
	t.Helper()
	x, err := blevesink.Open(dir)
	if err == nil {
		t.Fatalf("opened %v", x.Close())
	}
	var foreign *blevesink.ForeignFolderError
	if !errors.As(err, &foreign) || foreign.Dir != dir {
		t.Fatalf("error %v, want a ForeignFolderError of %s", err, dir)
	}
	for _, part := range []string{dir, reason, "choose an empty folder"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

func TestOpenMakesTheFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := open(t, dir).Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "lull.json")); err != nil {
		t.Error(err)
	}
}

// marked returns a folder that has lull's marker but no index.
func marked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	marker := []byte(`{"holds":"lull search index","schema":1}`)
	if err := os.WriteFile(filepath.Join(dir, "lull.json"), marker, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Open writes the marker before it creates the index. A process that ends in between leaves a
// folder with a marker and without an index.
func TestOpenFinishesAFolderThatWasOnlyMarked(t *testing.T) {
	t.Parallel()
	dir := marked(t)
	if err := open(t, dir).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// Bleve creates an index in several steps. After a crash, Open must remove an incomplete index and
// must not use it.
func TestOpenClearsAnIndexThatWasLeftHalfMade(t *testing.T) {
	t.Parallel()
	dir := marked(t)
	half := filepath.Join(dir, "new-1", "index")
	err := errors.Join(os.MkdirAll(filepath.Join(half, "store"), 0o755),
		os.WriteFile(filepath.Join(half, "index_meta.json"), []byte(`{"storage":"scorch"`), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	x := open(t, dir)
	if err := x.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"index", "lull.json"}) {
		t.Errorf("the folder holds %v (%v), want index and lull.json alone", names, err)
	}
}

// If several callers open a folder without an index at the same time, one of them creates the
// index. The other callers get an InUseError.
func TestOneOfManyMakesTheIndex(t *testing.T) {
	t.Parallel()
	dir := marked(t)
	opened, errs := make([]*blevesink.Index, 5), make([]error, 5)
	var wg sync.WaitGroup
	for i := range opened {
		wg.Go(func() { opened[i], errs[i] = blevesink.Open(dir) })
	}
	wg.Wait()
	n := 0
	for i, x := range opened {
		var inUse *blevesink.InUseError
		switch {
		case errs[i] == nil:
			n++
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		case !errors.As(errs[i], &inUse):
			t.Errorf("open: %v, want an InUseError", errs[i])
		}
	}
	if n != 1 {
		t.Errorf("%d have it open, want one", n)
	}
	open(t, dir)
}

func TestOneOpenAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := blevesink.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := blevesink.Open(dir)
	var inUse *blevesink.InUseError
	if !errors.As(err, &inUse) || inUse.Dir != dir || !strings.Contains(err.Error(), dir) {
		t.Errorf("second open: %v, %v; want an InUseError of %s", second, err, dir)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

// copyFolder copies a folder, with the files that a crash would leave on the disk.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatalf("copy folder: %v", err)
	}
	return to
}
