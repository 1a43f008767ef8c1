// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"time"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
	"github.com/lullhq/lull/source/govuk"
	"github.com/lullhq/lull/source/json"
	"github.com/lullhq/lull/source/s3"
)

// liveQueue sets the existing queue that is the live queue of a sink. With an empty name, the stack
// creates the queue.
func liveQueue(c *Config, sink, queue string) {
	s, ok := c.Sinks[sink]
	if !ok {
		s = newSink("memory")
	}
	s.LiveQueue = queue
	c.Sinks[sink] = s
}

// fanned gives several sinks to the collection "news".
func fanned(c *Config, sinks ...string) {
	for _, name := range sinks {
		if _, ok := c.Sinks[name]; !ok {
			c.Sinks[name] = newSink("memory")
		}
	}
	c.DefaultSink = sinks[0]
	c.Collections["news"], c.Collections["content"] = Collection{Sinks: sinks}, Collection{}
}

// brokenNames breaks each rule about names.
var brokenNames = []broken{
	{
		rule: "names", name: "collection",
		holds:   func(c *Config) { news(c, Collection{}); c.Collections[strings.Repeat("a", 32)] = Collection{} },
		breaks:  func(c *Config) { c.Collections[strings.Repeat("a", 33)] = Collection{} },
		setting: "collections." + strings.Repeat("a", 33), fix: "up to 31",
	},
	{
		rule: "names", name: "strange collection",
		breaks:  func(c *Config) { news(c, Collection{}); c.Collections["a#b\n"] = Collection{} },
		setting: `collections."a#b\n"`, fix: "lower-case",
	},
	{
		rule: "names", name: "sink",
		breaks:  func(c *Config) { c.Sinks["Big"] = newSink("memory") },
		setting: "sinks.Big", fix: "lower-case",
	},
	{
		rule: "names", name: "source",
		breaks: func(c *Config) {
			c.Sources["9lives"] = Source{Kind: "native", Class: ClassInt, NoVersion: NoVersionRefuse, MaxAhead: minute, Match: named}
		},
		setting: "sources.9lives", fix: "a lower-case letter",
	},
	{
		rule: "sinks", name: "sink and sinks",
		holds: func(c *Config) { fanned(c, "search", "other") },
		breaks: func(c *Config) {
			c.Collections["news"] = Collection{Sink: "search", Sinks: []string{"search", "other"}}
		},
		setting: "collections.news.sinks", fix: "keep one of the two",
	},
	{
		rule: "sinks", name: "a list without sinks",
		breaks:  func(c *Config) { news(c, Collection{Sinks: []string{}}) },
		setting: "collections.news.sinks", fix: "remove sinks",
	},
	{
		rule: "sinks", name: "a sink twice",
		breaks:  func(c *Config) { fanned(c, "search", "other", "search") },
		setting: "collections.news.sinks[2]", fix: "name each sink once",
	},
	{
		rule: "sinks", name: "two sinks in one place",
		holds: func(c *Config) {
			fanned(c, "search", "other")
			for name, index := range map[string]string{"search": "lull-{collection}", "other": "lull-other"} {
				s := newSink("opensearch")
				s.URL, s.Index = "https://search.example.org", index
				c.Sinks[name] = completeSink(s)
			}
		},
		breaks: func(c *Config) {
			s := c.Sinks["other"]
			s.Index = "lull-news"
			c.Sinks["other"] = s
		},
		setting: "collections.news.sinks[1]", fix: "another index",
	},
	{
		rule: "sinks-match", name: "a source that is bound to one of two queues",
		holds: func(c *Config) {
			fanned(c, "search", "other")
			cms(c)
			s := c.Sources["cms"]
			s.Collection, s.Match = "news", []source.Match{{Sink: "search"}, {Sink: "other"}}
			c.Sources["cms"] = s
		},
		breaks: func(c *Config) {
			s := c.Sources["cms"]
			s.Match = s.Match[:1]
			c.Sources["cms"] = s
		},
		setting: "sources.cms.match", fix: "add {sink: other}",
	},
	{
		rule: "reference", name: "one of several sinks",
		breaks:  func(c *Config) { fanned(c, "search", "serch"); delete(c.Sinks, "serch") },
		setting: "collections.news.sinks[1]", fix: "did you mean search?",
	},
	{
		rule: "existing", name: "one live queue for two sinks",
		holds:   func(c *Config) { liveQueue(c, "search", "content"); liveQueue(c, "other", "news") },
		breaks:  func(c *Config) { liveQueue(c, "search", "content"); liveQueue(c, "other", "content") },
		setting: "sinks.search.liveQueue", fix: "its own queue",
	},
	{
		rule: "existing", name: "the live queue that the stack makes for another sink",
		breaks:  func(c *Config) { liveQueue(c, "search", ""); liveQueue(c, "other", c.Stack+"-search-live") },
		setting: "sinks.other.liveQueue", fix: "its own queue",
	},
	{
		rule: "existing", name: "a live queue with the name of another lane",
		breaks:  func(c *Config) { liveQueue(c, "search", "content-bulk") },
		setting: "sinks.search.liveQueue", fix: "does not end in -bulk",
	},
	{
		rule: "some", name: "source",
		breaks:  func(c *Config) { c.Sources = nil },
		setting: "sources", fix: "add one",
	},
	{
		rule: "some", name: "sink",
		breaks:  func(c *Config) { c.Sinks = nil },
		setting: "sinks", fix: "add one",
		also: []string{},
	},
	{
		rule: "default", name: "source",
		holds:   func(c *Config) { cms(c) },
		breaks:  func(c *Config) { c.DefaultSource = "" },
		setting: "defaultSource", fix: "cms, native",
	},
	{
		rule: "default", name: "unknown source",
		breaks:  func(c *Config) { c.DefaultSource = "nativ" },
		setting: "defaultSource", fix: "did you mean native?",
	},
	{
		rule: "default", name: "sink",
		holds:   func(c *Config) { c.Sinks["archive"] = newSink("memory") },
		breaks:  func(c *Config) { c.DefaultSink = "" },
		setting: "defaultSink", fix: "archive, search",
	},
	{
		rule: "default", name: "unknown sink",
		breaks:  func(c *Config) { c.DefaultSink = "zzz" },
		setting: "defaultSink", fix: "set it to one of search",
	},
	{
		rule: "reference", name: "collection's sink",
		holds:   func(c *Config) { news(c, Collection{Sink: "search"}) },
		breaks:  func(c *Config) { news(c, Collection{Sink: "serach"}) },
		setting: "collections.news.sink", fix: "did you mean search?",
	},
	{
		rule: "reference", name: "source of an allowed place",
		holds:   func(c *Config) { c.Payload.Allow = []BucketPrefix{{Bucket: "media", Sources: []string{"native"}}} },
		breaks:  func(c *Config) { c.Payload.Allow[0].Sources = []string{"native", "cms"} },
		setting: "payload.allow[0].sources[1]", fix: "set it to one of native",
	},
	{
		rule: "reference", name: "sink of a rule",
		holds:   func(c *Config) { matched(c, source.Match{Sink: "search"}) },
		breaks:  func(c *Config) { matched(c, source.Match{Sink: "serach"}) },
		setting: "sources.native.match[0].sink", fix: "did you mean search?",
	},
	{
		rule: "collection-reference", name: "default",
		holds:   func(c *Config) { c.DefaultCollection = "shop" },
		breaks:  func(c *Config) { news(c, Collection{}) },
		setting: "defaultCollection", fix: "content, news, or add it",
	},
	{
		rule: "collection-reference", name: "source's",
		holds:   func(c *Config) { news(c, Collection{}) },
		breaks:  ofSource(func(s *Source) { s.Collection = "newz" }),
		setting: "sources.native.collection", fix: "did you mean news?",
	},
	{
		rule: "collection-reference", name: "source's list",
		holds: func(c *Config) {
			news(c, Collection{})
			setSource(c, func(s *Source) { s.Collections = []string{"content", "news"} })
		},
		breaks:  func(c *Config) { delete(c.Collections, "news") },
		setting: "sources.native.collections[1]", fix: "set it to one of content",
	},
	{
		rule: "http-host", name: "address",
		holds:   func(c *Config) { c.Payload.HTTPHosts = []string{"assets.example.org"} },
		breaks:  func(c *Config) { c.Payload.HTTPHosts = []string{"assets.example.org", "169.254.169.254"} },
		setting: "payload.httpHosts[1]", fix: "public name",
	},
	{
		rule: "http-host", name: "this machine",
		breaks:  func(c *Config) { c.Payload.HTTPHosts = []string{"a.localhost"} },
		setting: "payload.httpHosts[0]", fix: "public name",
	},
	{
		rule: "tracing", name: "in the clear",
		holds:   func(c *Config) { c.Tracing.Endpoint = "http://localhost:4318" },
		breaks:  func(c *Config) { c.Tracing.Endpoint = "http://collector.example.org:4318" },
		setting: "tracing.endpoint", fix: "https",
	},
	{
		rule: "tracing", name: "a password",
		holds:   func(c *Config) { c.Tracing.Endpoint = "https://collector.example.org/otlp" },
		breaks:  func(c *Config) { c.Tracing.Endpoint = "https://a:b@collector.example.org" },
		setting: "tracing.endpoint", fix: "remove what follows the path",
	},
	{
		rule: "tracing", name: "an empty query",
		breaks:  func(c *Config) { c.Tracing.Endpoint = "https://collector.example.org/?" },
		setting: "tracing.endpoint", fix: "remove what follows the path",
	},
	{
		rule: "tracing", name: "an empty fragment",
		breaks:  func(c *Config) { c.Tracing.Endpoint = "https://collector.example.org/#" },
		setting: "tracing.endpoint", fix: "remove what follows the path",
	},
	{
		rule: "tracing", name: "without a host",
		breaks:  func(c *Config) { c.Tracing.Endpoint = "https://:4318" },
		setting: "tracing.endpoint", fix: "https address",
	},
	{
		rule:    "bulk-reference",
		holds:   ofSink(func(s *Sink) { s.BulkBytes = 256 * setting.KB }),
		breaks:  ofSink(func(s *Sink) { s.BulkBytes = 255 * setting.KB }),
		setting: "sinks.search.bulkBytes", fix: "raise it to at least 256KB",
	},
}

// brokenSources breaks each rule about sources.
var brokenSources = []broken{
	{
		rule:    "source-max-version",
		holds:   ofSource(func(s *Source) { s.MaxVersion = "1000000" }),
		breaks:  ofSource(func(s *Source) { s.MaxVersion = "1e6" }),
		setting: "sources.native.maxVersion", fix: "in quotes",
	},
	{
		rule:    "source-collections",
		holds:   ofSource(func(s *Source) { s.Collections, s.Collection = []string{"news"}, "news" }),
		breaks:  ofSource(func(s *Source) { s.Collection = "" }),
		setting: "sources.native.collections", fix: "or add content",
	},
	{
		rule: "source-match", name: "empty",
		holds:   func(c *Config) { matched(c, source.Match{Named: true}) },
		breaks:  func(c *Config) { matched(c, source.Match{}) },
		setting: "sources.native.match[0]", fix: "remove it",
	},
	{
		rule: "source-match", name: "the same twice",
		holds:   func(c *Config) { cms(c); matched(c, named[0], source.Match{Sink: "search"}) },
		breaks:  func(c *Config) { cms(c, source.Match{Sink: "search"}) },
		setting: "sources.native.match[1]", fix: "keep one",
	},
	{
		rule:    "source-reach",
		holds:   func(c *Config) { cms(c) },
		breaks:  func(c *Config) { c.Sources["cms"] = c.Sources["native"] },
		setting: "sources.cms.match", fix: "[{named: true}]",
	},
	{
		rule: "source-kind", name: "options of another kind",
		holds:   jsonSource,
		breaks:  ofSource(func(s *Source) { s.Options = govuk.Options{} }),
		setting: "sources.native", fix: "set Options",
	},
	{
		rule: "source-kind", name: "what the kind checks",
		holds:   jsonSource,
		breaks:  ofSource(func(s *Source) { s.Options = json.Options{JSON: json.Pointers{Version: "/v"}} }),
		setting: "sources.native.json.id", fix: "/id",
	},
	{
		rule: "source-lines", name: "a source that is not there",
		holds:   func(c *Config) { exports(c, "native") },
		breaks:  func(c *Config) { exports(c, "cms") },
		setting: "sources.exports.s3.lines", fix: "under sources",
	},
	{
		rule: "source-lines", name: "a source of objects",
		holds:   func(c *Config) { exports(c, "native") },
		breaks:  func(c *Config) { exports(c, "exports") },
		setting: "sources.exports.s3.lines", fix: "one line",
	},
	{
		rule:    "source-class",
		holds:   ofSource(func(s *Source) { s.Kind, s.Class, s.Options = "s3", ClassSeq, nil }),
		breaks:  ofSource(func(s *Source) { s.Class = ClassInt }),
		setting: "sources.native.class", fix: "write seq",
	},
	{
		rule: "source-arrival",
		holds: ofSource(func(s *Source) {
			s.NoVersion, s.Class = NoVersionArrival,
				ClassTime
		}),
		breaks:  ofSource(func(s *Source) { s.Class = ClassInt }),
		setting: "sources.native.class", fix: "class: time",
	},
	{
		rule: "source-arrival", name: "a kind that always has versions",
		holds: ofSource(func(s *Source) {
			*s = Source{Kind: "govuk"}.Complete()
		}),
		breaks:  ofSource(func(s *Source) { s.NoVersion = NoVersionArrival }),
		setting: "sources.native.noVersion", fix: "write refuse",
	},
	{
		rule: "source-arrival", name: "places in a stream",
		holds:   ofSource(func(s *Source) { s.NoVersion, s.Class = NoVersionPosition, ClassLex }),
		breaks:  ofSource(func(s *Source) { s.Class = ClassTime }),
		setting: "sources.native.class", fix: "class: int",
	},
	{
		rule: "source-arrival", name: "places of a kind that always has versions",
		holds:   ofSource(func(s *Source) { *s = Source{Kind: "dynamodb-stream"}.Complete() }),
		breaks:  ofSource(func(s *Source) { s.NoVersion = NoVersionPosition }),
		setting: "sources.native.noVersion", fix: "write refuse",
	},
	{
		rule: "source-kind", name: "a version beside its place in a stream", holds: keyed(nil),
		breaks:  keyed(func(p *json.Pointers) { p.Version = "/v" }),
		setting: "sources.native.json.version", fix: "remove one of them",
	},
	{
		rule: "source-kind", name: "two ids", holds: keyed(nil),
		breaks:  keyed(func(p *json.Pointers) { p.ID = "/id" }),
		setting: "sources.native.json.key", fix: "remove one of them",
	},
	{
		rule: "source-kind", name: "no id at all", holds: keyed(nil),
		breaks:  keyed(func(p *json.Pointers) { p.Key = false }),
		setting: "sources.native.json.id", fix: "set json.key",
	},
	{
		rule: "fetch", name: "a version beside a place in a stream",
		holds: func(c *Config) {
			fetched(func(f *source.Fetch) { f.Version = "" })(c)
			setSource(c, func(s *Source) { s.NoVersion = NoVersionPosition })
		},
		breaks:  ofSource(func(s *Source) { s.Fetch.Version = "/updated_at" }),
		setting: "sources.native.fetch.version", fix: "remove it",
	},
	{
		rule:    "source-projection",
		holds:   ofSource(func(s *Source) { s.Projection = []string{"/title", "/a~1b/0"} }),
		breaks:  ofSource(func(s *Source) { s.Kind, s.Class, s.Options = "s3", ClassSeq, nil }),
		setting: "sources.native.projection", fix: "remove it",
	},
	{
		rule: "fetch", name: "no address", holds: fetched(nil),
		breaks:  fetched(func(f *source.Fetch) { f.URL = "" }),
		setting: "sources.native.fetch.url", fix: "https://cms.example.org/content/{id}",
	},
	{
		rule: "fetch", name: "one address for all",
		breaks:  fetched(func(f *source.Fetch) { f.URL = "https://cms.example.org/content" }),
		setting: "sources.native.fetch.url", fix: "{id}",
	},
	{
		rule: "fetch", name: "a host of the sender's choice",
		breaks:  fetched(func(f *source.Fetch) { f.URL = "https://{id}.example.org/{id}" }),
		setting: "sources.native.fetch.url", fix: "such as",
	},
	{
		rule: "fetch", name: "a port of the sender's choice",
		breaks:  fetched(func(f *source.Fetch) { f.URL = "https://cms.example.org:{version}/{id}" }),
		setting: "sources.native.fetch.url", fix: "such as",
	},
	{
		rule: "fetch", name: "an unknown word",
		breaks:  fetched(func(f *source.Fetch) { f.URL = "https://cms.example.org/{locale}/{id}" }),
		setting: "sources.native.fetch.url", fix: "remove them",
	},
	{
		rule: "fetch", name: "a password",
		breaks:  fetched(func(f *source.Fetch) { f.URL = "https://me:secret@cms.example.org/{id}" }),
		setting: "sources.native.fetch.url", fix: "sources.native.fetch.headers", not: "secret@",
	},
	{
		rule: "fetch", name: "another scheme",
		breaks:  fetched(func(f *source.Fetch) { f.URL = "file:///content/{id}" }),
		setting: "sources.native.fetch.url", fix: "such as",
	},
	{
		rule: "fetch", name: "a way out", holds: fetched(func(f *source.Fetch) { f.URL = "https://cms.example.org/a..b/{id}.json" }),
		breaks:  fetched(func(f *source.Fetch) { f.URL = "https://cms.example.org/a/../{id}" }),
		setting: "sources.native.fetch.url", fix: "from the path",
	},
	{
		rule: "fetch", name: "in the clear",
		holds: fetched(func(f *source.Fetch) {
			f.URL, f.AllowPrivate = "http://cms.internal:8080/{id}", []string{"cms.internal"}
		}),
		breaks:  fetched(func(f *source.Fetch) { f.URL = "http://cms.internal:8080/{id}" }),
		setting: "sources.native.fetch.url", fix: "sources.native.fetch.allowPrivate",
	},
	{
		rule: "fetch", name: "no version to compare", holds: fetched(nil),
		breaks:  fetched(func(f *source.Fetch) { f.Version = "" }),
		setting: "sources.native.fetch.version", fix: "/version",
	},
	{
		rule: "fetch", name: "a version beside times of arrival",
		holds: func(c *Config) {
			fetched(func(f *source.Fetch) { f.Version = "" })(c)
			setSource(c, func(s *Source) { s.NoVersion, s.Class = NoVersionArrival, ClassTime })
		},
		breaks:  ofSource(func(s *Source) { s.Fetch.Version = "/updated_at" }),
		setting: "sources.native.fetch.version", fix: "remove it",
	},
	{
		rule: "fetch", name: "headers for S3",
		holds:   fetched(func(f *source.Fetch) { f.URL, f.Version = "s3://content-bucket/{collection}/{id}.json", "" }),
		breaks:  ofSource(func(s *Source) { s.Fetch.Headers.Env = "CMS" }),
		setting: "sources.native.fetch.headers.env", fix: "remove it",
	},
	{
		rule: "fetch", name: "a folder that stands for any text",
		breaks:  fetched(func(f *source.Fetch) { f.URL = "s3://content-bucket/a*/{id}.json" }),
		setting: "sources.native.fetch.url", fix: "without these characters",
	},
	{
		rule: "fetch", name: "headers twice",
		holds: fetched(func(f *source.Fetch) { f.Headers.Env = "CMS" }),
		breaks: ofSource(func(s *Source) {
			s.Fetch.Headers.SecretARN = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:cms-AbCdEf"
		}),
		setting: "sources.native.fetch.headers.env", fix: "remove one",
	},
	{
		rule: "fetch-time", name: "beside an enricher",
		holds: func(c *Config) {
			e := newEnrich()
			e.Kind, e.URL, e.Inputs, e.Timeout = EnrichHTTP, "https://enrich.example.org/v1", []string{"/title"}, time.Second
			c.Collections["content"] = Collection{Enrich: e}
			fetched(func(f *source.Fetch) { f.Timeout = 999 * time.Millisecond })(c)
		},
		breaks:  ofSource(func(s *Source) { s.Fetch.Timeout = time.Second }),
		setting: "sources.native.fetch.timeout", fix: "lower it below 1s, lower index.sinkDeadline, or raise index.timeout to at least 11s",
	},
	{
		rule:    "fetch-time",
		holds:   fetched(func(f *source.Fetch) { f.Timeout = 1999 * time.Millisecond }),
		breaks:  fetched(func(f *source.Fetch) { f.Timeout = 2 * time.Second }),
		setting: "sources.native.fetch.timeout", fix: "lower it below 2s, lower index.sinkDeadline, or raise index.timeout to at least 11s",
	},
}

// fetched adds a fetch to the default source, and then changes the fetch.
func fetched(change func(*source.Fetch)) func(*Config) {
	return func(c *Config) {
		f := source.Fetch{URL: "https://cms.example.org/content/{id}", Version: "/version"}
		if change != nil {
			change(&f)
		}
		setSource(c, func(s *Source) {
			s.Fetch = &f
			*s = s.Complete()
		})
	}
}

func jsonSource(c *Config) {
	setSource(c, func(s *Source) {
		s.Kind, s.Options = "json", json.Options{JSON: json.Pointers{ID: "/id", Version: "/v"}}
	})
}

// matched sets the rules by which messages go to the default source.
func matched(c *Config, rules ...source.Match) { setSource(c, func(s *Source) { s.Match = rules }) }

// cms adds the source "cms" with rules. Without rules, messages may name the source.
func cms(c *Config, rules ...source.Match) {
	if len(rules) == 0 {
		rules = named
	}
	c.Sources["cms"] = Source{Kind: "native", Class: ClassInt, NoVersion: NoVersionRefuse, MaxAhead: minute, Match: rules}
}

// keyed sets up a source of records: the key of a record is the document's id, and the position in
// the stream is the version.
func keyed(change func(*json.Pointers)) func(*Config) {
	return func(c *Config) {
		p := json.Pointers{Key: true}
		if change != nil {
			change(&p)
		}
		setSource(c, func(s *Source) {
			*s = Source{Kind: "json", NoVersion: NoVersionPosition, Options: json.Options{JSON: p}}.Complete()
		})
	}
}

// exports adds a source of objects in S3. Another source decodes the lines of the objects.
func exports(c *Config, lines string) {
	s := Source{Kind: "s3", Match: []source.Match{{Bucket: "exports"}}}.Complete()
	s.Options = s3.Options{S3: s3.Key{Lines: lines, LinesPerSecond: 1, MaxText: 1 << 10}}
	c.Sources["exports"] = s
}
