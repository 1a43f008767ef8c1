// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
)

func TestDocumentsAreListed(t *testing.T) {
	t.Parallel()
	s := settled(t, "--events", write(t, put("vienna", "1", "{}"), put("graz", "2", "{}"), put("linz", "x", "{}"),
		`{"type":"doc.changed","subject":"other","collection":"news","sequence":"7","data":{}}`,
		`{"type":"doc.deleted","subject":"gone","collection":"news","sequence":"8"}`), "--speed", "100")
	keys := func(args ...string) string {
		t.Helper()
		page := parsed[operate.DocumentPage](t, s.ask(append([]string{"list", "-o", "json"}, args...)...))
		var all []string
		for _, d := range page.Documents {
			all = append(all, string(d.Key)+" "+string(d.State))
		}
		return strings.Join(all, ", ")
	}
	for want, args := range map[string][]string{
		"content#graz fresh, content#linz dead, content#vienna fresh, news#gone fresh, news#other fresh": nil,
		"content#graz fresh, content#vienna fresh":                                                       {"--state", "fresh", "--contains", "content#"},
		"content#linz dead":                 {"--state", "dead"},
		"":                                  {"--state", "waiting"},
		"news#gone fresh, news#other fresh": {"--collection", "news"},
		"content#vienna fresh":              {"--contains", "VIEN"},
		"content#graz fresh":                {"--limit", "1"},
	} {
		if got := keys(args...); got != want {
			t.Errorf("%v: got %s, want %s", args, got, want)
		}
	}
	a := s.ask("list", "--limit", "3")
	a.want(t, "a part", exitOK, "KEY ", "content#vienna  fresh  1")
	_, cursor, more := strings.Cut(a.errors, "there are more: --cursor ")
	if !more || keys("--cursor", strings.TrimSpace(cursor)) != "news#gone fresh, news#other fresh" {
		t.Errorf("got %q, want the cursor of the rest", a.errors)
	}
	s.ask("list", "--collection", "news").want(t, "a delete", exitOK, "news#gone   fresh  8 (deleted)")
	s.ask("list", "--state", "tired").want(t, "no state", exitUsage, "tired", "waiting")
	s.ask("list", "--collection", "A B").want(t, "no collection", exitUsage, "A B")
}
