// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/source"
	"github.com/lullhq/lull/source/govuk"
)

func TestDefaultsHaveNoFault(t *testing.T) {
	t.Parallel()
	c := Default()
	if err := c.Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
	openSearch(&c)
	if err := c.ValidateDeployed(); err != nil {
		t.Errorf("deployed: got %v, want no fault", err)
	}
	withoutVersions(&c)
	if err := c.ValidateDeployed(); err != nil {
		t.Errorf("without versions: got %v, want no fault", err)
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	t.Parallel()
	a := Default()
	a.Collections["other"] = Collection{}
	delete(a.Sinks, "search")
	if b := Default(); len(b.Collections) != 0 || len(b.Sinks) != 1 {
		t.Errorf("got %v and %v, want no collection and one sink", b.Collections, b.Sinks)
	}
}

func TestCompleteFillsWhatFollows(t *testing.T) {
	t.Parallel()
	c := Default()
	c.DefaultSource, c.DefaultSink, c.DefaultCollection = "", "", ""
	c.Sources = map[string]Source{"publishing": {Kind: "govuk"}}
	c.Collections = map[string]Collection{"news": {}}
	c.Sinks = map[string]Sink{"os": {Kind: "opensearch", URL: "http://127.0.0.1:9200", Index: "x", Auth: Auth{Kind: AuthSigV4}}}
	c.Complete()
	if got := [3]string{c.DefaultSource, c.DefaultCollection, c.DefaultSink}; got != [3]string{
		"publishing", "news",
		"os",
	} {
		t.Errorf("defaults: got %v, want the only names", got)
	}
	publishing, sink := c.Sources["publishing"], c.Sinks["os"]
	if lists, err := source.OptionsOf[govuk.Options](publishing); err != nil || len(lists.Govuk.IgnoreTypes) != 23 ||
		publishing.Class != ClassInt || publishing.NoVersion != NoVersionRefuse {
		t.Errorf("source: got %+v, want GOV.UK's lists", publishing)
	}
	if sink.BulkDocuments != 500 || sink.Index != "x" || sink.Auth.Service != "es" {
		t.Errorf("sink: got %+v, want the defaults", sink)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
}

func TestCompleteChangesNothingThatIsSet(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Sources["govuk"] = Source{
		Kind: "govuk", Class: ClassTime, NoVersion: NoVersionArrival,
		Options: govuk.Options{Govuk: govuk.Lists{Locales: []string{"cy"}}},
	}
	c.Sinks["other"] = Sink{Kind: "memory", Index: "one", BulkDocuments: 7, BulkBytes: setting.MB}
	c.Complete()
	g := c.Sources["govuk"]
	if g.Class != ClassTime || g.NoVersion != NoVersionArrival ||
		!reflect.DeepEqual(g.Options, govuk.Options{Govuk: govuk.Lists{Locales: []string{"cy"}}}) {
		t.Errorf("source: got %+v, want what was set", g)
	}
	if s := c.Sinks["other"]; s.Index != "one" || s.BulkDocuments != 7 || s.BulkBytes != setting.MB {
		t.Errorf("sink: got %+v, want what was set", s)
	}
	if c.DefaultSink != "search" {
		t.Errorf("default sink: got %q, want it kept", c.DefaultSink)
	}
}

func TestArrivalIsOfTheClassTime(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Sources["cms"] = Source{Kind: "native", NoVersion: NoVersionArrival, Match: named}
	c.Complete()
	if got := c.Sources["cms"].Class; got != ClassTime {
		t.Errorf("got %s, want %s", got, ClassTime)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
}

// A function that does not link the kind of its sink must use the same lease as the synthesis of
// the stack.
func TestDeployedSettingsNeedNoKind(t *testing.T) {
	t.Parallel()
	c := Default()
	withoutVersions(&c)
	c.Complete()
	for _, versions := range []bool{false, true} {
		if versions {
			openSearch(&c)
			setSink(&c, func(s *Sink) { s.Options = opensearch.Settings{} })
		}
		text, err := json.Marshal(c.Resolve())
		if err != nil {
			t.Fatal(err)
		}
		unlinked := strings.ReplaceAll(string(text), `"kind":"opensearch"`, `"kind":"elsewhere"`)
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(unlinked), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := LoadDeployed(path)
		if err != nil || got.Lease("search") != c.Lease("search") ||
			got.Sinks["search"].Capabilities().Versions != versions {
			t.Errorf("versions %t: got a lease of %s and %v, want %s", versions, got.Lease("search"), err, c.Lease("search"))
		}
		_, err = ParseJSON([]byte(unlinked))
		if err == nil || !strings.Contains(err.Error(), "write one of bleve, elasticsearch, memory, opensearch") {
			t.Errorf("with only the linked kinds: got %v, want an error that lists the kinds", err)
		}
	}
}

func TestAnOptionOfAnotherKindIsNamed(t *testing.T) {
	t.Parallel()
	_, err := ParseJSON([]byte(`{"sinks": {"a": {"kind": "memory", "serverless": true, "colour": 1}}}`))
	for _, want := range []string{
		"line 1: sinks.a.serverless: is an option of the kind opensearch, but the sink's kind is memory: " +
			"remove it, or set sinks.a.kind to opensearch",
		"sinks.a.colour: is not a setting: remove it",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
