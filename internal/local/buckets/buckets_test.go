// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/seam/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened returns a folder of buckets for one test.
func opened(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// place creates the folder of a file and returns the path of the file.
func place(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// write writes a file.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(place(t, dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAnObjectIsAFileInsideTheFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "buckets")
	f := opened(t, dir)
	for path, text := range map[string]string{
		"b/a.json": "{}", "b/deep/ä b?.json": "[]", "b/full": strings.Repeat("x", payload.MaxObject),
		"b/large": strings.Repeat("x", payload.MaxObject+1), "../secret": "secret",
	} {
		write(t, dir, path, text)
	}
	for link, to := range map[string]string{
		"b/out": filepath.Join(top, "secret"), "b/up": "../../secret", "b/in": "a.json", "b/round": "round",
		"elsewhere": top,
	} {
		if err := os.Symlink(to, place(t, dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		bucket, key string
		want        string // the object, or a part of the permanent error
		missing     bool
	}{
		{bucket: "b", key: "a.json", want: "{}"},
		{bucket: "b", key: "deep/ä b?.json", want: "[]"},
		{bucket: "b", key: "in", want: "{}"},
		{bucket: "b", key: "full", want: strings.Repeat("x", payload.MaxObject)},
		{bucket: "b", key: "large", want: "more than"},
		{bucket: "b", key: "none", want: "not there", missing: true},
		{bucket: "b", key: "a.json/x", want: "not there", missing: true},
		{bucket: "none", key: "a.json", want: "not there", missing: true},
		{bucket: "b", key: "deep", want: "regular file"},
		{bucket: "b", key: "out", want: "regular file inside the folder"},
		{bucket: "b", key: "up", want: "regular file inside the folder"},
		{bucket: "b", key: "round", want: "regular file"},
		{bucket: "elsewhere", key: "secret", want: "regular file inside the folder"},
		{bucket: "b", key: strings.Repeat("x", 1000), want: "regular file"},
		{bucket: "b", key: "../secret", want: "a folder cannot contain"},
		{bucket: "b", key: "../../secret", want: "a folder cannot contain"},
		{bucket: "b", key: "x/../a.json", want: "a folder cannot contain"},
		{bucket: "b", key: "//a.json", want: "a folder cannot contain"},
		{bucket: "b", key: "/etc/passwd", want: "a folder cannot contain"},
		{bucket: "b", key: "deep/", want: "a folder cannot contain"},
		{bucket: "b", key: "a\x00", want: "a folder cannot contain"},
		{bucket: "..", key: "secret", want: "a folder cannot contain"},
		{bucket: ".", key: "b", want: "a folder cannot contain"},
		{bucket: "b/deep", key: "x", want: "a folder cannot contain"},
		{bucket: "", key: "b/a.json", want: "a folder cannot contain"},
	} {
		got, err := f.Load(t.Context(), tt.bucket, tt.key)
		var bad *event.Invalid
		switch {
		case err == nil && string(got) != tt.want:
			t.Errorf("%s %s: got %.40q, want %.40q", tt.bucket, tt.key, got, tt.want)
		case err == nil:
		case !errors.As(err, &bad) || bad.Missing != tt.missing || !strings.Contains(bad.Problem, tt.want):
			t.Errorf("%s %.40s: got %v, want %q for good, missing %v", tt.bucket, tt.key, err, tt.want, tt.missing)
		case strings.Contains(bad.Problem, top) || strings.Contains(bad.Problem, "secret"):
			t.Errorf("%s %s: %q tells of the disk", tt.bucket, tt.key, bad.Problem)
		}
	}
}

func TestAnObjectCanBeReadAsSoonAsItIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := opened(t, dir)
	for _, text := range []string{"{}", `{"v":2}`} {
		write(t, dir, "b/k", text)
		if got, err := f.Load(t.Context(), "b", "k"); err != nil || string(got) != text {
			t.Errorf("got %q, %v; want %q", got, err, text)
		}
	}
}

// A permission may be granted later, and a disk may recover. If a file cannot be read, the error is
// therefore temporary, and the message that names the file waits.
func TestAFileThatCannotBeReadNowIsNotRefusedForGood(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	dir := t.TempDir()
	f := opened(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "b"), 0o000); err != nil {
		t.Fatal(err)
	}
	_, err := f.Load(t.Context(), "b", "k")
	var bad *event.Invalid
	if err == nil || errors.As(err, &bad) {
		t.Errorf("got %v, want an error that may pass", err)
	}
}

func TestAWatcherNotifiesAsS3Does(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := opened(t, dir)
	var got []string
	var failing error
	last := ""
	w := f.Watch(clock.System{}, func(_ context.Context, text string) error {
		r := gjson.Get(text, "Records.0")
		if seq := r.Get("s3.object.sequencer").Str; seq <= last {
			t.Errorf("sequencer %s after %s", seq, last)
		} else {
			last = seq
		}
		if failing == nil {
			got = append(got, r.Get("eventName").Str+" "+r.Get("s3.bucket.name").Str+" "+r.Get("s3.object.key").Str)
		}
		return failing
	})
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
		got = nil
	}
	step := func() {
		t.Helper()
		if err := w.Look(t.Context()); !errors.Is(err, failing) {
			t.Fatal(err)
		}
	}
	write(t, dir, "b/deep/ä b+c.json", "{}")
	write(t, dir, "b/.hidden", "x")
	write(t, dir, "b/.git/x", "x")
	write(t, dir, "loose", "x")
	if err := os.Symlink(dir, filepath.Join(dir, "b", "link")); err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("what is there", "ObjectCreated:Put b deep/%C3%A4+b%2Bc.json")
	step()
	expect("nothing has changed")
	write(t, dir, "b/deep/ä b+c.json", `{"v":2}`)
	write(t, dir, "b/new", "{}")
	step()
	expect("it may still be written")
	step()
	expect("it is complete", "ObjectCreated:Put b deep/%C3%A4+b%2Bc.json", "ObjectCreated:Put b new")
	failing = errors.New("full")
	if err := os.Remove(filepath.Join(dir, "b", "new")); err != nil {
		t.Fatal(err)
	}
	step()
	expect("it could not be sent")
	failing = nil
	step()
	expect("it is tried again", "ObjectRemoved:Delete b new")
	step()
	expect("and not a third time")
}

// unreadable is a folder in which one name cannot be read.
type unreadable struct {
	fs.ReadDirFS
	name string
}

func (u *unreadable) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return u.ReadDirFS.ReadDir(name)
}

// If a folder cannot be read for a moment, for example because too many files are open, its files
// must not count as deleted.
func TestAFolderThatCannotBeReadNowHasNotBeenDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b/deep/a", "b/deep/c", "b/deeper"} {
		write(t, dir, name, "")
	}
	f := opened(t, dir)
	var got []string
	w := f.Watch(clock.System{}, func(_ context.Context, text string) error {
		got = append(got, gjson.Get(text, "Records.0.eventName").Str+" "+gjson.Get(text, "Records.0.s3.object.key").Str)
		return nil
	})
	broken := &unreadable{ReadDirFS: w.files.(fs.ReadDirFS)} //nolint:errcheck // os.Root has it
	w.files = broken
	if err := w.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, name := range []string{"b/deep", "b", ""} {
		broken.name = name
		for range 2 {
			if err := w.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) > 0 {
			t.Errorf("%q could not be read: notified %q", name, got)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "b", "deep")); err != nil {
		t.Fatal(err)
	}
	if err := w.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"ObjectRemoved:Delete deep/a", "ObjectRemoved:Delete deep/c"}; !slices.Equal(got, want) {
		t.Errorf("it was deleted then: got %q, want %q", got, want)
	}
}
