// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// The command that README.md names runs what `lull new` writes, and its events become documents.
func TestNewStacksRunWithEveryKindOfSource(t *testing.T) {
	t.Parallel()
	for _, kind := range source.Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "My_shop")
			lull(t, "", "new", dir, "--source", kind).want(t, "new", exitOK, "cd "+dir, "lull dev --local --config lull.yaml")
			lull(t, "", "config", "check", filepath.Join(dir, "lull.yaml")).want(t, "check", exitOK, kind)
			a := lull(t, "", "config", "check", "--deploy", filepath.Join(dir, "lull.yaml"))
			if a.want(t, "its address", exitUsage, "1 fault"); !strings.Contains(a.out, "sinks.search.url") {
				t.Errorf("got %s, want the address to be written", a.out)
			}
			readme := contents(t, filepath.Join(dir, "README.md"))
			_, command, found := strings.Cut(readme, "    lull dev ")
			if !found || !strings.HasPrefix(readme, "# my-shop\n") {
				t.Fatalf("got %s", readme)
			}
			command, _, _ = strings.Cut(command, "\n")
			for _, file := range []string{"lull.yaml", "events.ndjson", "buckets"} {
				command = strings.Replace(command, " "+file, " "+filepath.Join(dir, file), 1)
			}
			dump := filepath.Join(t.TempDir(), "dump.ndjson")
			run := append([]string{"dev"}, strings.Fields(command)...)
			lull(t, "", append(run, "--exit-when-idle", "--speed", "10", "--dump", dump)...).want(t, "dev", exitOK,
				"2 written, 1 deleted in 3 bursts; 3 superseded", ", 0 dead")
			versions := map[string]bool{}
			for line := range strings.Lines(contents(t, dump)) {
				versions[gjson.Get(line, "version").Str] = true
			}
			k, _ := source.Lookup(kind)
			class := k.ExampleSettings().Complete().Class
			for _, n := range []uint32{1, 3} {
				if want := source.NumberedVersion(class, n); !versions[want] || len(versions) != 2 {
					t.Errorf("got documents of the versions %v, want %s among two", versions, want)
				}
			}
		})
	}
}

// Without their comment marks, the lines about fetch are valid settings.
func TestNewStacksOfferFetch(t *testing.T) {
	t.Parallel()
	for _, kind := range source.Kinds() {
		dir := filepath.Join(t.TempDir(), "shop")
		lull(t, "", "new", dir, "--source", kind).want(t, "new", exitOK)
		before, after, found := strings.Cut(contents(t, filepath.Join(dir, "lull.yaml")), "    # fetch:\n")
		if !found {
			t.Fatalf("%s: there is no fetch", kind)
		}
		text := before + "    fetch:\n" + strings.ReplaceAll(after, "    #   ", "      ")
		save(t, filepath.Join(dir, "lull.yaml"), text)
		lull(t, "", "config", "check", filepath.Join(dir, "lull.yaml")).want(t, kind, exitOK, "valid")
	}
}

func TestNewStacksAreRefused(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), write(t, "text")
	lull(t, "", "new", filepath.Dir(file)).want(t, "not empty", exitUsage, "is not empty", filepath.Base(file))
	lull(t, "", "new", file).want(t, "a file", exitUsage, "cannot be read as a folder")
	lull(t, "", "new", dir, "--source", "kafka").want(t, "no source", exitUsage, "--source kafka: want one of", "govuk",
		"kafka only transports messages: write the kind of their content (docs/sources/README.md)")
	lull(t, "", "new", dir, "--sink", "solr").want(t, "no sink", exitUsage, "--sink solr: want one of", "opensearch")
	lull(t, "", "new", dir, "--stack", "My shop").want(t, "a bad name", exitUsage, "--stack My shop", "stack (My shop)")
	lull(t, "", "new", "").want(t, "an empty name", exitUsage, "argument 1 is empty")
	if _, err := os.Stat("lull.yaml"); err == nil {
		t.Error("an empty name overwrote what is in this folder")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("got %v in the folder: %v", entries, err)
	}
	for _, kind := range sink.Kinds() {
		at := filepath.Join(t.TempDir(), "12")
		lull(t, "", "new", at, "--sink", kind).want(t, kind, exitOK)
		lull(t, "", "config", "check", filepath.Join(at, "lull.yaml")).want(t, kind, exitOK, "valid")
		if text := contents(t, filepath.Join(at, "lull.yaml")); !strings.Contains(text, "stack: lull ") {
			t.Errorf("the name of the folder cannot name a stack: got %s, want stack: lull", text)
		}
	}
}

// A stack cannot change the class of its rows later. So a new stack begins with the class that
// docs/sources/debezium.md recommends.
func TestANewStackOfDebeziumOrdersBySequence(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shop")
	lull(t, "", "new", dir, "--source", "debezium").want(t, "new", exitOK)
	if text := contents(t, filepath.Join(dir, "lull.yaml")); !strings.Contains(text, "class: int #") ||
		!strings.Contains(text, "sequence: true #") {
		t.Errorf("got %s", text)
	}
}
