package blevesink_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/sink/blevesink"
)

func TestOpenLeavesForeignFoldersAlone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, content, reason string
	}{
		{"somebody's files", "thesis.txt", "years of work", "is not empty"},
		{"another program's marker", "lull.json", `{"holds":"tides"}`, "lull did not write"},
		{"a marker that is no JSON", "lull.json", "lull", "lull did not write"},
		{"a newer schema", "lull.json", `{"holds":"lull search index","schema":2}`, "newer lull (schema 2, this one knows 1)"},
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

// refused checks that the error names the folder, what was found and what to do.
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

// The marker is written first: a process that ended between the two left a folder that is ours and has no index yet.
func TestOpenFinishesAFolderThatWasOnlyMarked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lull.json"), []byte(`{"holds":"lull search index","schema":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir).Ping(t.Context()); err != nil {
		t.Error(err)
	}
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

// copyFolder copies what a crash would leave on the disk.
func copyFolder(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), content, 0o644)
	})
	if err != nil {
		t.Fatalf("copy folder: %v", err)
	}
	return to
}
