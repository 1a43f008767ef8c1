// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/blevesink"
)

const personal = "xk-4711-secret"

// person returns an event whose content must not be found after the forget.
func person(id, version string) string { return put(id, version, `{"name":"`+personal+`"}`) }

// broken returns an event that becomes a dead letter of the document.
func broken(id, version string) string {
	return `{"type":"doc.changed","subject":"` + id + `","sequence":"` + version + `","data":["` + personal + `"]}`
}

func TestForgetLeavesNothingButATombstone(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	settings := write(t, "debounce: {minInterval: 0s}")
	s := settled(t, "--events", write(t, person("p", "1"), broken("p", "2"), put("q", "1", `{"name":"other"}`)),
		"--speed", "10", "--data", data, "--config", settings)
	s.ask("get", "content#p").want(t, "the document", exitOK, personal)

	s.ask("forget", "content#p").want(t, "without --yes", exitOK, "tombstone", "sink search", "dead letters",
		"nothing was changed")
	s.ask("get", "content#p").want(t, "nothing was changed", exitOK, personal)
	f := parsed[operate.Forgotten](t, s.ask("forget", "content#p", "--yes", "-o", "json"))
	if f.Remaining != 0 || f.Until.IsZero() {
		t.Errorf("forgotten: %+v", f)
	}
	s.ask("get", "content#p").want(t, "the document", exitMissing, "it was forgotten")
	s.ask("dead", "list").want(t, "its dead letter", exitOK)
	if a := s.ask("dead", "list"); strings.Contains(a.out, "content#p") {
		t.Errorf("dead letters remain: %s", a.out)
	}
	s.publish(person("p", "5"), person("p", strings.Repeat("9", 30)), put("q", "2", "{}"))
	s.ask("wait", "content#q", "--version", "2").want(t, "another document", exitOK)
	s.ask("explain", "content#p").want(t, "explain", exitOK, "It was forgotten at")
	s.ask("forget", "content#p", "--yes").want(t, "again", exitOK, "every version of content#p is refused until")
	for name, tt := range map[string]struct {
		key, says string
		code      exitCode
	}{
		"not a key":        {"p", "<collection>#<id>", exitUsage},
		"unknown":          {"content#nobody", "is the key right?", exitMissing},
		"a pattern":        {"content#*", "pattern", exitUsage},
		"a space behind":   {"content#p ", "space", exitUsage},
		"of no collection": {"contents#p", "is the key right?", exitMissing},
	} {
		s.ask("forget", tt.key, "--yes").want(t, name, tt.code, tt.says)
	}
	s.stopped()
	index := filepath.Join(data, "index")
	// Bleve keeps the bytes of a deleted document until it merges the file (docs/forget.md). A program
	// that opens the index does not find the document.
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, index) {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(personal)) {
			t.Errorf("the file %s still has the personal content", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	x := usecasetest.Must(blevesink.Open(data))(t)
	defer x.Close()
	var others []string
	usecasetest.OK(t, x.All(t.Context(), func(d sink.Stored) error {
		others = append(others, string(d.Doc))
		if usecasetest.Contains(d.Document, personal) {
			t.Errorf("the index has it in %s", d.Doc)
		}
		return nil
	}))
	found, err := x.Search(t.Context(), sink.Query{Text: personal, Limit: 10})
	if err != nil || len(found) > 0 || !slices.Equal(others, []string{"content#q"}) {
		t.Errorf("the index has %q, and finds %+v, %v", others, found, err)
	}
}

// A tenant is a message group: its documents are listed, cancelled and forgotten together.
func TestAMessageGroupIsListedCancelledAndForgotten(t *testing.T) {
	t.Parallel()
	settings := write(t, "debounce: {minInterval: 0s}")
	s := start(t, nil, "--speed", "10", "--config", settings)
	for group, events := range map[string][]string{
		"one": {person("a", "1"), person("b", "1")}, "two": {person("c", "1")},
	} {
		s.ask("publish", write(t, events...), "--group", group).want(t, "publish", exitOK)
	}
	for _, key := range []string{"content#a", "content#b", "content#c"} {
		s.ask("wait", key, "--version", "1").want(t, key, exitOK)
	}
	listed := s.ask("list", "--group", "one")
	if !strings.Contains(listed.out, "content#b") || strings.Contains(listed.out, "content#c") {
		t.Errorf("listed: %s%s", listed.out, listed.errors)
	}
	s.ask("cancel", "--group", "one").want(t, "cancel", exitMissing, "nothing to cancel")
	for _, args := range [][]string{{"forget"}, {"forget", "content#a", "--group", "one"}, {"cancel"}} {
		s.ask(args...).want(t, strings.Join(args, " "), exitUsage, "--group NAME")
	}
	s.ask("forget", "--group", "none").want(t, "no such group", exitMissing, "none")
	s.ask("forget", "--group", "one").want(t, "without --yes", exitOK, "content#a", "content#b")
	s.ask("get", "content#a").want(t, "nothing was changed", exitOK, personal)
	a := s.ask("forget", "--group", "one", "--yes")
	a.want(t, "forget", exitOK, "content#a", "content#b")
	if !strings.Contains(a.errors, "lifecycle.rowRetention") {
		t.Errorf("the command does not say which documents it cannot find: %s", a.errors)
	}
	s.ask("get", "content#a").want(t, "a document of the group", exitMissing)
	s.ask("get", "content#b").want(t, "a document of the group", exitMissing)
	s.ask("get", "content#c").want(t, "a document of another group", exitOK, personal)
}
