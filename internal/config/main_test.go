// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	_ "github.com/lullhq/lull/sink/builtin"
	_ "github.com/lullhq/lull/sink/builtin/local"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}

func ptr[T any](v T) *T { return &v }

// setSink changes the default sink of c.
func setSink(c *Config, change func(s *Sink)) {
	s := c.Sinks["search"]
	change(&s)
	c.Sinks["search"] = s
}

// openSearch turns the default sink into a sink that can be deployed.
func openSearch(c *Config) {
	setSink(c, func(s *Sink) { s.Kind, s.URL, s.Versions = "opensearch", "https://search.example.org", nil })
}

// withoutVersions turns the default sink into a sink without versions.
func withoutVersions(c *Config) {
	openSearch(c)
	setSink(c, func(s *Sink) { s.Options = opensearch.Settings{Serverless: true} })
}

func setSource(c *Config, change func(s *Source)) {
	s := c.Sources["native"]
	change(&s)
	c.Sources["native"] = s
}

// ofSink returns a change of settings that changes the default sink. ofSource does the same for the
// default source.
func ofSink(change func(s *Sink)) func(*Config) { return func(c *Config) { setSink(c, change) } }

func ofSource(change func(s *Source)) func(*Config) { return func(c *Config) { setSource(c, change) } }

// news adds the collection "news" next to the default collection.
func news(c *Config, o Collection) { c.Collections["content"], c.Collections["news"] = Collection{}, o }

// named lists one rule: every message that names the source goes to the source.
var named = []source.Match{{Named: true}}

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
)
