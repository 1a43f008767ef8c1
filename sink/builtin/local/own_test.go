// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/sink"
	_ "github.com/lullhq/lull/sink/builtin"
	_ "github.com/lullhq/lull/sink/builtin/local"
)

// Every kind of sink must have a test that calls sinktest.Own, which checks that the kind does not
// change the user's data.
func TestEveryKindLeavesTheUsersOwnAlone(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	named := regexp.MustCompile(`sinktest\.Own\(t, "([a-z]+)", `)
	var tested []string
	for _, folder := range []string{"sink", "internal/local/memory"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range named.FindAllStringSubmatch(string(text), -1) {
				tested = append(tested, m[1])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range sink.Kinds() {
		if !slices.Contains(tested, kind) {
			t.Errorf("no test of the kind %s calls sinktest.Own", kind)
		}
	}
}

// The settings refuse what needs a sink that can be read, such as verify, by what the kind says.
func TestEachKindSaysWhetherItsSinkCanBeRead(t *testing.T) {
	t.Parallel()
	for _, name := range sink.Kinds() {
		kind, _ := sink.Lookup(name)
		s := sink.Settings{Kind: name, URL: kind.Example(), Index: "news-{collection}", BulkDocuments: 1, Options: kind.Options}
		key := func(context.Context) (string, error) { return "", nil }
		env := sink.Environment{Stack: "lull", Name: name, Folder: t.TempDir(), Key: key}
		opened, err := kind.Open(t.Context(), s, env)
		if err != nil {
			t.Errorf("open %s: %v", name, err)
			continue
		}
		if c, ok := opened.(io.Closer); ok {
			t.Cleanup(func() { _ = c.Close() })
		}
		if _, reads := opened.(sink.Reader); reads == s.Capabilities().WriteOnly {
			t.Errorf("%s: is a sink.Reader: %t, and WriteOnly is %t", name, reads, s.Capabilities().WriteOnly)
		}
	}
}
