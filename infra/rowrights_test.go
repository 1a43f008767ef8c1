// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/shard"
)

// allowedBy reports whether a condition allows a request with these keys, as IAM would decide.
// ForAllValues requires that each key of the request passes. With StringLike, a key passes if it
// matches a pattern, and with StringNotLike if it matches no pattern. A star matches any text.
func allowedBy(only map[string]map[string][]string, keys ...string) bool {
	for operator, on := range only {
		patterns := on["dynamodb:LeadingKeys"]
		for _, key := range keys {
			like := slices.ContainsFunc(patterns, func(p string) bool {
				p = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(p))
				return regexp.MustCompile(`(?s)^` + p + `$`).MatchString(key)
			})
			if like == (operator == "ForAllValues:StringNotLike") {
				return false
			}
		}
	}
	return true
}

// N5: a function may write the rows of its own sink, and no row of another sink. The ids of
// documents may contain any character, even characters of a pattern or the key of another sink.
func TestAFunctionWritesTheRowsOfItsOwnSink(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Sinks = map[string]config.Sink{}
	for _, name := range []string{"search", "archive", "vectors"} {
		c.Sinks[name] = config.Sink{Kind: "opensearch", Index: "lull-{collection}", URL: "https://" + name + ".example.org"}
	}
	c.DefaultSink = "search"
	c.Collections = map[string]config.Collection{
		"content":  {Sinks: []string{"search", "vectors"}},
		"old-news": {Sink: "archive", Enrich: &config.Enrich{Kind: config.EnrichHTTP, URL: "https://e.example.org/"}},
		"payroll":  {Sinks: []string{"vectors", "search"}},
	}
	c.Complete()
	l := &Lull{props: &Props{Config: &c}}
	functions := []names.Function{names.Receive, names.Index, names.DLQ}
	owner := func(doc string) string { // returns the sink whose row has this key
		row := shard.DocID(doc)
		for name := range c.Sinks {
			if own, ok := c.RowAt(row.Plain(), name); ok && own == row {
				return name
			}
		}
		t.Fatalf("%s is not the row of a sink", doc)
		return ""
	}
	for _, doc := range []string{
		"content#vienna", "content@vectors#vienna", "old-news#1", "payroll#1", "payroll@search#1", "unnamed#1",
		"content#a@vectors#b", "unnamed#x@archive#old-news#*", "content#!dead#1", "old-news#search\n", "payroll#*?",
		"unnamed#" + strings.Repeat("é", 256),
	} {
		for name := range c.Sinks {
			for _, f := range functions {
				s := &Sink{Name: name, lull: l}
				if got, want := allowedBy(s.rowKeys(f), doc), name == owner(doc); got != want {
					t.Errorf("%s of %s may write %q: %t, want %t", f, name, doc, got, want)
				}
			}
		}
	}
	for key, want := range map[string]map[names.Function][]string{ // the functions and sinks that may write a key
		string(shard.HealthRow("search")):                   {names.Index: {"search"}},
		string(shard.HealthRow("archive")):                  {names.Index: {"archive"}},
		string(shard.ObjectRow("search", "exports", "k#1")): {names.Receive: {"search"}},
		string(shard.ObjectRow("vectors", "exports", "k")):  {names.Receive: {"vectors"}},
		"!sched#01HX":                        {names.Receive: {"archive", "search", "vectors"}},
		"!dead#01HX":                         {names.DLQ: {"archive", "search", "vectors"}},
		"!message#5f70bf.1":                  {names.DLQ: {"archive", "search", "vectors"}},
		string(shard.RunRow("prune-search")): nil,
		string(shard.RunRow("rebuild-x")):    nil,
	} {
		for _, f := range functions {
			for name := range c.Sinks {
				s := &Sink{Name: name, lull: l}
				if got := allowedBy(s.rowKeys(f), key); got != slices.Contains(want[f], name) {
					t.Errorf("%s of %s may write %q: %t", f, name, key, got)
				}
			}
		}
	}
	enricher := "!health#enrich/old-news"
	for _, name := range []string{"archive", "search", "vectors"} {
		if got := allowedBy((&Sink{Name: name, lull: l}).rowKeys(names.Index), enricher); got != (name == "archive") {
			t.Errorf("index of %s may write %q: %t", name, enricher, got)
		}
	}
	if allowedBy((&Sink{Name: "archive", lull: l}).rowKeys(names.Index), "old-news#1", "payroll#1") {
		t.Error("a request with one key of another sink is not denied")
	}
}

// A job of the role reader stores its progress, and may change no other row.
func TestAReaderWritesTheRowsOfJobsOnly(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		string(shard.RunRow("job-verify-content@search")): true,
		string(shard.RunRow("jobs")):                      true,
		string(shard.RunRow("rows")):                      false,
		string(shard.RunRow("jobs-x")):                    false,
		string(shard.RunRow("prune-search")):              false,
		string(shard.HealthRow("search")):                 false,
		"content#a":                                       false,
		"content#!run#jobs":                               false,
	} {
		if got := allowedBy(jobKeys(), key); got != want {
			t.Errorf("reader may write %q: %t", key, got)
		}
	}
}
