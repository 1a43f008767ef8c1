// SPDX-License-Identifier: Apache-2.0

package blevesink_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/sinktest"
)

func TestTheUsersOwnStays(t *testing.T) {
	t.Parallel()
	const one = "all collections are in one index, which lull makes in a folder of its own"
	sinktest.Own(t, "bleve", map[sinktest.Place]sinktest.Owned{
		sinktest.Empty: {Open: func(t *testing.T) (sink.Sink, func(*testing.T) string) {
			t.Helper()
			return open(t, t.TempDir()), func(*testing.T) string { return "" } // an empty folder
		}},
		sinktest.Unmapped:  {None: one},
		sinktest.Aliased:   {None: one},
		sinktest.Templated: {None: one},
		sinktest.Beside: {Open: func(t *testing.T) (sink.Sink, func(*testing.T) string) {
			t.Helper()
			dir := t.TempDir()
			file := filepath.Join(dir, "thesis.txt")
			if err := os.WriteFile(file, []byte("years of work"), 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, dir, "is not empty")
			return open(t, filepath.Join(dir, "lull")), func(t *testing.T) string { // another folder
				t.Helper()
				text, err := os.ReadFile(file)
				return fmt.Sprint(string(text), err)
			}
		}},
		sinktest.ReadOnly: {None: "a folder that cannot be written is refused when it is opened"},
	})
}
