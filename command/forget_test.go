package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operate"
)

const personal = "xk-4711-secret"

// person is an event whose content nobody shall find afterwards.
func person(id, version string) string { return put(id, version, `{"name":"`+personal+`"}`) }

// broken is an event that becomes a dead letter of the document.
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
	s.ask("get", "content#p").want(t, "the document", exitMissing)
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
		code      int
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
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "index") {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(personal)) {
			t.Errorf("%s holds it", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
