// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// enriched adds a valid enricher to the default collection, and then changes the enricher.
func enriched(change func(e *Enrich)) func(c *Config) {
	return func(c *Config) {
		e := newEnrich()
		e.Kind, e.URL, e.Inputs = EnrichHTTP, "https://enrich.example.org/v1", []string{"/title"}
		if change != nil {
			change(e)
		}
		c.Collections = map[string]Collection{"content": {Enrich: e}}
	}
}

func enrichURL(address string) func(c *Config) {
	return enriched(func(e *Enrich) { e.URL = address })
}

const (
	enrichPath  = "collections.content.enrich"
	functionARN = "arn:aws:lambda:eu-west-1:123456789012:function:embed:live"
)

// brokenEnrich breaks each rule about enrichers.
var brokenEnrich = []broken{
	{
		rule: "enrich-where", name: "no url", holds: enriched(nil), breaks: enrichURL(""),
		setting: enrichPath + ".url", fix: "https://",
	},
	{
		rule: "enrich-where", name: "no scheme", breaks: enrichURL("enrich.example.org"),
		setting: enrichPath + ".url", fix: "https://",
	},
	{
		rule: "enrich-where", name: "a key in the address", breaks: enrichURL("https://enrich.example.org/?key=hunter2"),
		setting: enrichPath + ".url", fix: "headers.secretARN",
	},
	{
		rule: "enrich-where", name: "not encrypted", breaks: enrichURL("http://enrich.example.org/"),
		setting: enrichPath + ".url", fix: "https",
	},
	{
		rule: "enrich-where", name: "this machine",
		holds:  enriched(func(e *Enrich) { e.URL, e.AllowPrivate = "http://127.0.0.1:8080/", []string{"127.0.0.1"} }),
		breaks: enrichURL("https://127.0.0.1:8080/"), setting: enrichPath + ".url", fix: "allowPrivate",
	},
	{
		rule: "enrich-where", name: "no function",
		holds:   enriched(func(e *Enrich) { e.Kind, e.URL, e.FunctionARN = EnrichLambda, "", functionARN }),
		breaks:  enriched(func(e *Enrich) { e.Kind, e.URL = EnrichLambda, "" }),
		setting: enrichPath + ".functionARN", fix: "ARN",
	},
	{
		rule: "enrich-where", name: "a function over http", breaks: enriched(func(e *Enrich) { e.FunctionARN = functionARN }),
		setting: enrichPath + ".functionARN", fix: "kind to lambda",
	},
	{
		rule: "enrich-where", name: "headers twice",
		breaks:  enriched(func(e *Enrich) { e.Headers = Headers{SecretARN: secret, Env: "HEADERS"} }),
		setting: enrichPath + ".headers.env", fix: "remove one",
	},
	{
		rule: "enrich-inputs", name: "none", breaks: enriched(func(e *Enrich) { e.Inputs = nil }),
		setting: enrichPath + ".inputs", fix: "/title",
	},
	{
		rule: "enrich-inputs", name: "too many",
		breaks: enriched(
			func(e *Enrich) { e.Inputs = strings.Split(strings.Repeat("/a ", maxInputs+1), " ")[:maxInputs+1] },
		),
		setting: enrichPath + ".inputs", fix: "at most 20",
	},
	{
		rule:    "enrich-time",
		holds:   enriched(func(e *Enrich) { e.Timeout = 2*time.Second - time.Millisecond }),
		breaks:  enriched(func(e *Enrich) { e.Timeout = 2 * time.Second }),
		setting: enrichPath + ".timeout", fix: "raise index.timeout to at least 11s",
	},
	{
		rule:    "enrich-outage",
		breaks:  func(c *Config) { enriched(nil)(c); c.TableOutage = TableOutageOpen },
		setting: enrichPath, fix: "closed",
	},
}

// Settings of an enricher that a file lacks have a default. The settings of the enricher are part
// of the generation.
func TestAnEnricherHasDefaults(t *testing.T) {
	t.Parallel()
	read := func(version string) Config {
		c, err := ParseJSON([]byte(`{"collections":{"a":{"enrich":{"kind":"http","url":"https://x.example.org/",
			"inputs":["/title"],"version":"` + version + `"}},"b":{}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := read("one")
	if e := c.Collections["a"].Enrich; e.Batch != 32 || e.MaxConcurrency != 4 || e.Timeout != 1500*time.Millisecond {
		t.Errorf("got %+v, want the defaults", e)
	}
	if got := c.Enriched("search"); len(got) != 1 || got[0] != "a" || c.Collections["b"].Enrich != nil ||
		c.Collections["c"].Enrich != nil {
		t.Errorf("got the collections %v, want only a", got)
	}
	d := read("two")
	one, two := c.Generation("a", "search"), d.Generation("a", "search")
	if one == two || c.Generation("b", "search") == one || c.Generation("b", "search") != d.Generation("b", "search") {
		t.Errorf("got %q and %q, want a generation for each version of the enricher", one, two)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseJSON(text)
	if err != nil || back.Generation("a", "search") != one {
		t.Errorf("got generation %q, %v: want the deployed settings to have that of the file", back.Generation("a", "search"), err)
	}
}
