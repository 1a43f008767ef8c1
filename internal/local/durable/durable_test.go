// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/seam/datafolder"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(filepath.Dir(path), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func room(t *testing.T, s *Store, name string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := s.Each(name, func(k string, v []byte) error {
		got[k] = string(v)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAFileThatIsALinkIsNotOpened(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{
		"out of the folder": filepath.Join(t.TempDir(), "precious"), "within the folder": "precious", "to nothing": "missing",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "state.db")
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		if target != "missing" {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(target)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(dir, path)
		if err == nil {
			t.Errorf("%s: it was opened", name)
			_ = s.Close()
		}
		for _, file := range []string{target, filepath.Join(dir, filepath.Base(target))} {
			if info, err := os.Stat(file); err == nil && info.Size() > 0 {
				t.Errorf("%s: %d bytes were written to %s", name, info.Size(), file)
			}
		}
	}
}

func TestWhatIsFlushedIsThereInTheNextProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	s.Put("a", "1", map[string]int{"v": 1})
	s.Put("a", "2", "two\xff")
	s.Put("a", "1", 3)
	s.Put("b", "1", nil)
	s.Delete("a", "2")
	s.Delete("none", "1")
	if got := room(t, s, "a"); len(got) > 0 {
		t.Errorf("%v before it was flushed", got)
	}
	s.Flush()
	var used *datafolder.InUseError
	if _, err := Open("dir", path); !errors.As(err, &used) {
		t.Errorf("got %v, want that it is in use", err)
	}
	s.Put("a", "9", 9)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	defer s.Close()
	if got, want := room(t, s, "a"), map[string]string{"1": "3", "9": "9"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Each writer increases a number in the first room and then in the second room. In the file, the
// number in the second room must never be greater.
func TestTheFileIsAlwaysAsAllWasAtOneMoment(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	defer s.Close()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := range 100 {
				s.Put("first", strconv.Itoa(w), n)
				s.Put("second", strconv.Itoa(w), n)
				s.Flush()
				if got := room(t, s, "second")[strconv.Itoa(w)]; got != strconv.Itoa(n) {
					t.Errorf("%s is in the file, want %d: it was flushed", got, n)
				}
			}
		})
	}
	wg.Wait()
}

func TestWhatCannotBeWrittenIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "state.db"))
	defer s.Close()
	s.Put("a", "1", func() {}) // a value that is not JSON simulates a full disk
	s.Put("a", "2", 2)
	if s.Flush(); s.Fault() == nil {
		t.Error("no fault although a value could not be written")
	}
	if got := room(t, s, "a"); len(got) > 0 {
		t.Errorf("%v is in the file without the rest", got)
	}
	s.Put("a", "1", 1)
	s.Flush()
	if got, want := room(t, s, "a"), map[string]string{"1": "1", "2": "2"}; s.Fault() != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, fault %v, want %v", got, s.Fault(), want)
	}
}

func BenchmarkFlush(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprint("writers ", writers), func(b *testing.B) {
			s, err := Open(b.TempDir(), filepath.Join(b.TempDir(), "state.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.SetParallelism(writers)
			b.RunParallel(func(pb *testing.PB) {
				for n := 0; pb.Next(); n++ {
					s.Put("row", strconv.Itoa(n%10_000), map[string]string{"a": "some text as long as a row has it, or so"})
					s.Flush()
				}
			})
		})
	}
}
