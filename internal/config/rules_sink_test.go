// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

const secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:search/writer-AbCdEf"

// auth makes the default sink one of the kind opensearch, with this authentication.
func auth(a Auth) func(c *Config) {
	return func(c *Config) { openSearch(c); setSink(c, func(s *Sink) { s.Auth = a }) }
}

// signed makes the default sink one of the kind webhook, with this authentication.
func signed(a Auth) func(c *Config) {
	return ofSink(func(s *Sink) { s.Kind, s.URL, s.Versions, s.Auth = "webhook", "https://hooks.example.org", nil, a })
}

// vertex makes the default sink one of the kind vertex: a request has one document, and a document
// may be written once a second.
func vertex(change func(*Config)) func(c *Config) {
	return func(c *Config) {
		k, _ := sink.Lookup("vertex")
		setSink(c, func(s *Sink) {
			s.Kind, s.URL, s.Index, s.Versions, s.BulkDocuments = k.Name, k.Example(), "lull-{collection}", nil, 1
		})
		change(c)
	}
}

func at443(address string) func(c *Config) {
	return ofSink(func(s *Sink) { s.URL = address })
}

// brokenSinks breaks each rule about sinks.
var brokenSinks = []broken{
	{
		rule: "sink-url", name: "missing",
		holds: openSearch, breaks: at443(""),
		setting: "sinks.search.url", fix: "https://",
	},
	{
		rule: "sink-url", name: "no address",
		holds: openSearch, breaks: at443("search.example.org:9200"),
		setting: "sinks.search.url", fix: "https://",
	},
	{
		rule: "sink-url", name: "password",
		holds: openSearch, breaks: at443("https://me:hunter2@search.example.org"),
		setting: "sinks.search.url", fix: "sinks.search.auth",
	},
	{
		rule: "sink-url", name: "query",
		holds: openSearch, breaks: at443("https://search.example.org/?pretty"),
		setting: "sinks.search.url", fix: "remove what follows the path",
	},
	{
		rule: "sink-url", name: "in the process",
		breaks:  at443("https://search.example.org"),
		setting: "sinks.search.url", fix: ", opensearch,",
	},
	{
		rule: "sink-auth", name: "in the process",
		breaks:  ofSink(func(s *Sink) { s.Auth = Auth{Kind: AuthSigV4, Service: "es"} }),
		setting: "sinks.search.auth.kind", fix: "write none",
	},
	{
		rule: "sink-auth", name: "secret without basic",
		holds: auth(Auth{Kind: AuthBasic, SecretARN: secret}), breaks: auth(Auth{Kind: AuthNone, SecretARN: secret}),
		setting: "sinks.search.auth.secretARN", fix: "kind to basic",
	},
	{
		rule: "sink-auth", name: "region without sigv4",
		holds:   auth(Auth{Kind: AuthSigV4, Region: "eu-west-1", Service: "es"}),
		breaks:  auth(Auth{Kind: AuthBasic, SecretARN: secret, Region: "eu-west-1"}),
		setting: "sinks.search.auth.region", fix: "kind to sigv4",
	},
	{
		rule: "sink-auth", name: "a kind of authentication that the kind does not take",
		breaks:  auth(Auth{Kind: AuthKey, KeyEnv: "KEY"}),
		setting: "sinks.search.auth.kind", fix: "none, basic or sigv4",
	},
	{
		rule: "sink-auth", name: "key with nothing",
		holds: signed(Auth{Kind: AuthKey, SecretARN: secret}), breaks: signed(Auth{Kind: AuthKey}),
		setting: "sinks.search.auth.secretARN", fix: "keyEnv",
	},
	{
		rule: "sink-auth", name: "key with both",
		holds: signed(Auth{Kind: AuthKey, KeyEnv: "KEY"}), breaks: signed(Auth{Kind: AuthKey, KeyEnv: "KEY", SecretARN: secret}),
		setting: "sinks.search.auth.secretARN", fix: "keep",
	},
	{
		rule: "sink-interval", name: "for all collections",
		holds:   vertex(func(*Config) {}),
		breaks:  vertex(func(c *Config) { c.Debounce.MinInterval = 999 * time.Millisecond }),
		setting: "debounce.minInterval", fix: "at least 1s",
	},
	{
		rule: "sink-interval", name: "for one collection",
		holds: vertex(func(c *Config) {
			c.Debounce.MinInterval = 0
			c.Collections["content"] = Collection{MinInterval: ptr(time.Second)}
		}),
		breaks:  vertex(func(c *Config) { c.Collections["content"] = Collection{MinInterval: ptr(time.Duration(0))} }),
		setting: "collections.content.minInterval", fix: "at least 1s",
	},
	{
		rule: "sink-kind", name: "more documents in a request than the kind can send",
		holds:   vertex(ofSink(func(s *Sink) { s.BulkDocuments = 1 })),
		breaks:  vertex(ofSink(func(s *Sink) { s.BulkDocuments = 2 })),
		setting: "sinks.search.bulkDocuments", fix: "write 1",
	},
	{
		rule: "sink-auth", name: "basic with nothing",
		breaks:  auth(Auth{Kind: AuthBasic}),
		setting: "sinks.search.auth.secretARN", fix: "userEnv",
	},
	{
		rule: "sink-auth", name: "basic with both",
		breaks:  auth(Auth{Kind: AuthBasic, SecretARN: secret, UserEnv: "U", PasswordEnv: "P"}),
		setting: "sinks.search.auth.secretARN", fix: "keep",
	},
	{
		rule: "sink-auth", name: "basic without password",
		holds:   auth(Auth{Kind: AuthBasic, UserEnv: "U", PasswordEnv: "P"}),
		breaks:  auth(Auth{Kind: AuthBasic, UserEnv: "U"}),
		setting: "sinks.search.auth.passwordEnv", fix: "variable",
	},
	{
		rule: "sink-auth", name: "basic without user",
		breaks:  auth(Auth{Kind: AuthBasic, PasswordEnv: "P"}),
		setting: "sinks.search.auth.userEnv", fix: "variable",
	},
	{
		rule: "sink-auth", name: "password in the clear",
		holds: func(c *Config) {
			auth(Auth{Kind: AuthBasic, UserEnv: "U", PasswordEnv: "P"})(c)
			at443("http://127.0.0.1:9200")(c)
		},
		breaks:  at443("http://search.example.org:9200"),
		setting: "sinks.search.auth.kind", fix: "https",
	},
	{
		rule: "sink-kind", name: "service of a serverless collection",
		holds: func(c *Config) {
			auth(Auth{Kind: AuthSigV4, Service: "aoss"})(c)
			setSink(c, func(s *Sink) { s.Options = opensearch.Settings{Serverless: true} })
		},
		breaks:  ofSink(func(s *Sink) { s.Auth.Service = "es" }),
		setting: "sinks.search.auth.service", fix: "aoss for a serverless",
	},
	{
		rule:    "sink-versions",
		holds:   withoutVersions,
		breaks:  ofSink(func(s *Sink) { s.Versions = ptr(true) }),
		setting: "sinks.search.versions", fix: "remove it",
	},
	{
		rule: "sink-kind", name: "options of another kind",
		breaks:  ofSink(func(s *Sink) { s.Options = opensearch.Settings{} }),
		setting: "sinks.search", fix: "kind's package",
	},
	{
		rule:    "sink-apply-delay",
		holds:   func(c *Config) { withoutVersions(c); setSink(c, func(s *Sink) { s.ApplyDelay = ptr(second) }) },
		breaks:  ofSink(func(s *Sink) { s.ApplyDelay = ptr(second - time.Millisecond) }),
		setting: "sinks.search.applyDelay", fix: "remove it for 30s, or raise it to at least 1s",
	},
	{
		rule:    "sink-index",
		holds:   ofSink(func(s *Sink) { s.Index = "documents" }),
		breaks:  func(c *Config) { news(c, Collection{}) },
		setting: "sinks.search.index", fix: "documents-{collection}",
	},
	{
		rule: "sink-index", name: "missing",
		holds:   openSearch,
		breaks:  ofSink(func(s *Sink) { s.Index = "" }),
		setting: "sinks.search.index", fix: "write lull-{collection}; or {collection}",
	},
	{
		rule: "sink-concurrency",
		holds: func(c *Config) {
			setSink(c, func(s *Sink) { s.MaxConcurrency = ptr(500) })
			other := c.Sinks["search"]
			other.MaxConcurrency, other.Index = ptr(400), "other-{collection}"
			c.Sinks["vectors"] = other
		},
		breaks:  ofSink(func(s *Sink) { s.MaxConcurrency = ptr(501) }),
		setting: "sinks.vectors.maxConcurrency", fix: "lower one of them",
	},
	{
		rule:    "sink-ceiling",
		holds:   ofSink(func(s *Sink) { s.MaxDocumentsPerSecond = ptr(setting.OncePerSecond / 2) }),
		breaks:  func(c *Config) { c.TableOutage = TableOutageOpen },
		setting: "sinks.search.maxDocumentsPerSecond", fix: "set tableOutage to closed",
	},
	{
		rule:    "sink-unchanged",
		holds:   ofSink(func(s *Sink) { s.Unchanged = sink.Keep }),
		breaks:  func(c *Config) { c.TableOutage = TableOutageOpen },
		setting: "sinks.search.unchanged", fix: "write write, or set tableOutage to closed",
	},
	{
		rule: "sink-unchanged", name: "a sink whose index has no generation",
		holds:   withoutVersions, // serverless
		breaks:  ofSink(func(s *Sink) { s.Unchanged = sink.Keep }),
		setting: "sinks.search.unchanged", fix: "write write",
	},
	{
		rule: "sink-unchanged", name: "a sink whose index nobody names",
		holds: func(c *Config) {
			withoutVersions(c)
			setSink(c, func(s *Sink) { s.Unchanged, s.Generation = sink.Keep, "november" })
		},
		breaks:  ofSink(func(s *Sink) { s.Generation = "" }),
		setting: "sinks.search.unchanged", fix: "set sinks.search.generation to a text",
	},
	{
		rule: "sink-unchanged", name: "a collection's",
		holds:   func(c *Config) { news(c, Collection{Unchanged: ptr(sink.Keep)}) },
		breaks:  func(c *Config) { c.TableOutage = TableOutageOpen },
		setting: "collections.news.unchanged", fix: "write write",
	},
}
