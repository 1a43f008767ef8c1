// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"time"

	"github.com/lullhq/lull/source"
)

// verified gives the collection content the setting verify. Its source has fetch.
func verified(change func(c *Config, s *Source)) func(*Config) {
	return func(c *Config) {
		s := c.Sources["native"]
		s.Fetch = &source.Fetch{URL: "https://cms.example.org/{id}", Version: "/v"}
		c.Collections = map[string]Collection{"content": {Verify: newVerify()}, "news": {}}
		c.DefaultCollection, s.Collections = "content", []string{"content"}
		if change != nil {
			change(c, &s)
		}
		c.Sources["native"] = s
		c.Complete()
	}
}

var brokenVerify = []broken{
	{
		rule: "verify", name: "a source that cannot be asked", holds: verified(nil),
		breaks:  verified(func(_ *Config, s *Source) { s.Fetch = nil }),
		setting: "collections.content.verify", fix: "add fetch to its source",
	},
	{
		rule: "verify", name: "several sources",
		holds: verified(func(c *Config, _ *Source) {
			other := c.Sources["native"]
			other.Collection, other.Collections = "news", []string{"news"}
			other.Match = []source.Match{{Named: true}}
			c.Sources["other"], c.DefaultSource = other, "native"
		}),
		breaks: verified(func(c *Config, _ *Source) {
			other := c.Sources["native"]
			other.Match = []source.Match{{Named: true}}
			c.Sources["other"], c.DefaultSource = other, "native"
		}),
		setting: "collections.content.verify", fix: "let only one source name it",
	},
	{
		rule: "verify", name: "a sink that cannot be read", holds: verified(sendTo(newSink("memory"))),
		breaks: verified(sendTo(Sink{
			Kind: "webhook", URL: "https://hooks.example.org", Auth: Auth{Kind: AuthKey, KeyEnv: "KEY"},
		})),
		setting: "collections.content.verify", fix: "let collections.content.sinks name only sinks that lull can read",
	},
}

// sendTo lets the verified collection go to a second sink, too.
func sendTo(second Sink) func(*Config, *Source) {
	return func(c *Config, _ *Source) {
		c.Sinks["second"], c.DefaultSink = second, "search"
		both := c.Collections["content"]
		both.Sinks = []string{"search", "second"}
		c.Collections["content"] = both
	}
}

func TestAVerificationHasDefaults(t *testing.T) {
	t.Parallel()
	c, err := ParseJSON([]byte(`{"collections":{"a":{"verify":{"requests":3}},"b":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *c.Collections["a"].Verify, (Verify{24 * time.Hour, 3, 100}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := c.Verified(); len(got) != 1 || got[0] != "a" {
		t.Errorf("verified: %v, want only a", got)
	}
}
