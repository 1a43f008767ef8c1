// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config/yamlfile"
	_ "github.com/lullhq/lull/sink/builtin"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

var rewrite = flag.Bool("rewrite", false, "write event.txt and document.json again")

// The pages about sources show the files of this test. They are in each folder with a lull.yaml
// below the testdata of a kind. The settings in lull.yaml can be deployed. With these settings,
// message.json becomes the event in event.txt and the document in document.json. If the message
// refers to an object, object.json is the content of that object.
func TestExamplesBecomeTheirDocuments(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob(filepath.Join("..", "*", "testdata", "*", "lull.yaml"))
	if err != nil || len(found) < len(source.Kinds()) {
		t.Fatalf("found %q and %v, want an example of each kind", found, err)
	}
	for _, path := range found {
		dir := filepath.Dir(path)
		t.Run(filepath.ToSlash(dir), func(t *testing.T) {
			t.Parallel()
			c, err := yamlfile.Parse(golden(t, dir, "lull.yaml"))
			if err == nil {
				err = c.Validate()
			}
			if err != nil {
				t.Fatalf("read the settings: %v", err)
			}
			set, err := source.New(&c)
			if err != nil {
				t.Fatalf("build the sources: %v", err)
			}
			m := event.Message{ID: "m-1", Body: string(golden(t, dir, "message.json")), Sent: time.UnixMilli(1795190400123)}
			got := set.Decode(m)
			if len(got) != 1 || got[0].Invalid != nil || got[0].Skip != "" {
				t.Fatalf("decode the message: got %+v, want one event", got)
			}
			e := got[0].Event
			if e.DataRef != "" {
				e.Data = string(golden(t, dir, "object.json"))
			}
			document, err := set.Document(m, e)
			if err != nil {
				t.Fatalf("make the document: %v", err)
			}
			compare(t, dir, "event.txt", fmt.Appendf(nil, "%s %s, version %s of class %s\n", e.Op, e.Doc, e.Version, e.Class))
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, document, "", "  "); err != nil {
				t.Fatalf("the document is not JSON: %v", err)
			}
			compare(t, dir, "document.json", append(pretty.Bytes(), '\n'))
		})
	}
}

func golden(t *testing.T, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// compare checks the content of a file. With the flag rewrite, it first writes the file.
func compare(t *testing.T, dir, name string, got []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(got, want) {
		t.Errorf("%s is %s, want %s", path, want, got)
	} else if err != nil {
		t.Fatal(err)
	}
}
