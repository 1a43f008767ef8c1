// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/config/tree"
)

// unlinkedSettings has a sink and a source of kinds that are not linked. The settings are valid if
// the sink has versions and the source names other sources. The retry is too early for a sink
// without versions.
const unlinkedSettings = `{
	"sources": {"wiki": {"kind": "wiki", "spaces": ["handbook"], "maxVersion": "2030-01-01T00:00:00Z"}, "lines": {"kind": "native"}},
	"defaultSource": "wiki", "collections": {"pages": {}, "news": {}}, "defaultCollection": "pages",
	"sinks": {"lake": {"kind": "ndjson", "suffix": ".x", "url": "s3://a/b"%s}},
	"flight": {"ambiguousRetry": "20s"}
}`

// parseAs reads and validates settings that may name these kinds.
func parseAs(t *testing.T, text string, kinds Kinds) (Config, error) {
	t.Helper()
	root, err := tree.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := DecodeAs(root, kinds)
	if err == nil {
		err = c.ValidateAs(kinds)
	}
	return c, err
}

// A kind that is not linked may have any capability. So only a fault that holds for every kind is
// reported.
func TestSettingsOfUnlinkedKindsAreJudgedAsFarAsTheyAreKnown(t *testing.T) {
	t.Parallel()
	for _, kinds := range []Kinds{KindsAlsoOthers, KindsAny} {
		if _, err := parseAs(t, fmt.Sprintf(unlinkedSettings, ""), kinds); err != nil {
			t.Errorf("%d: got %v, want no fault", kinds, err)
		}
		_, err := parseAs(t, fmt.Sprintf(unlinkedSettings, `, "versions": false`), kinds)
		if err == nil || !strings.Contains(err.Error(), "flight.ambiguousRetry") {
			t.Errorf("%d: got %v, want the retry refused: the settings say that the sink has no versions", kinds, err)
		}
	}
	_, err := parseAs(t, fmt.Sprintf(unlinkedSettings, ""), KindsLinked)
	if err == nil || !strings.Contains(err.Error(), "sinks.lake.kind (ndjson)") ||
		!strings.Contains(err.Error(), "sources.wiki.kind (wiki)") {
		t.Errorf("with only the linked kinds: got %v, want an error about both kinds", err)
	}
}

// A name that looks like a misspelt linked kind is refused, unless the settings were deployed.
func TestATypingErrorIsNotAnUnlinkedKind(t *testing.T) {
	t.Parallel()
	for kind, says := range map[string]string{
		`"opensaerch"`: `did you mean "opensearch"?`, `""`: "write one of", `"postgis"`: `did you mean "postgres"?`,
	} {
		text := `{"sinks": {"a": {"kind": ` + kind + `, "url": "https://a.example.org"}}}`
		if _, err := parseAs(t, text, KindsAlsoOthers); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", kind, err, says)
		}
		if _, err := parseAs(t, text, KindsAny); err != nil {
			t.Errorf("%s, deployed: got %v", kind, err)
		}
	}
	text := `{"sources": {"a": {"kind": "kafka"}}}`
	if _, err := parseAs(t, text, KindsAlsoOthers); err == nil || !strings.Contains(err.Error(),
		"only transports messages") {
		t.Errorf("got %v, want an explanation of kafka", err)
	}
}

func TestUnlinkedKindsAreNamed(t *testing.T) {
	t.Parallel()
	c, err := parseAs(t, fmt.Sprintf(unlinkedSettings, ""), KindsAlsoOthers)
	if got, want := fmt.Sprint(c.Unlinked(), err), "[{sinks.lake ndjson} {sources.wiki wiki}] <nil>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if c := Default(); len(c.Unlinked()) > 0 {
		t.Errorf("the defaults: got %v", c.Unlinked())
	}
}
