// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/lullhq/lull/setting"
)

// bothWindows names both windows. A fix names both if they are equal, as they are by default,
// because lowering only one does not help.
const bothWindows = "queues.live.window and queues.bulk.window"

// brokenTimes breaks each rule about time, age and load.
var brokenTimes = []broken{
	{
		rule: "batch-window", name: "live",
		holds:   func(c *Config) { c.Queues.Live.Batch, c.Queues.Live.Window = 10, 0 },
		breaks:  func(c *Config) { c.Queues.Live.Batch = 11 },
		setting: "queues.live.window", fix: "raise it to at least 1s, or lower queues.live.batch to at most 10",
	},
	{
		rule: "batch-window", name: "bulk",
		holds:   func(c *Config) { c.Queues.Bulk.Window = second },
		breaks:  func(c *Config) { c.Queues.Bulk.Window = 0 },
		setting: "queues.bulk.window", fix: "queues.bulk.batch",
	},
	{
		rule: "visibility-receive",
		holds: func(c *Config) {
			c.Queues.Visibility = 39 * second
			c.Index.Timeout, c.Index.SinkDeadline = 9*second, 6*second
		},
		breaks:  func(c *Config) { c.Queues.Visibility = 38 * second },
		setting: "queues.visibility",
		fix:     "raise queues.visibility to at least 39s, or lower receive.timeout to at most 5s",
	},
	{
		rule: "visibility-timeout", name: "receive",
		holds:   func(c *Config) {},
		breaks:  func(c *Config) { c.Receive.Timeout = 41 * second },
		setting: "receive.timeout", fix: "lower it to at most 40s",
		also: []string{"visibility-receive:queues.visibility"},
	},
	{
		rule: "visibility-timeout", name: "index",
		breaks:  func(c *Config) { c.Index.Timeout = 41 * second },
		setting: "index.timeout", fix: "lower it to at most 40s",
		also: []string{"recovery-flight:index.timeout", "express-limit:flight.continueAfter"},
	},
	{
		rule:    "sink-deadline",
		holds:   func(c *Config) { c.Index.SinkDeadline = 7999 * time.Millisecond },
		breaks:  func(c *Config) { c.Index.SinkDeadline = 8 * second },
		setting: "index.sinkDeadline", fix: "lower it below 8s, or raise index.timeout to more than 10s",
	},
	{
		rule:    "ambiguous-retry",
		holds:   func(c *Config) { c.Flight.AmbiguousRetry = 13 * second },
		breaks:  func(c *Config) { c.Flight.AmbiguousRetry = 12 * second },
		setting: "flight.ambiguousRetry", fix: "raise it to at least 13s",
	},
	{
		rule:    "ambiguous-retry",
		name:    "of a sink without versions",
		holds:   func(c *Config) { withoutVersions(c); c.Flight.AmbiguousRetry = 43 * second },
		breaks:  func(c *Config) { c.Flight.AmbiguousRetry = 42 * second },
		setting: "flight.ambiguousRetry", fix: "raise it to at least 43s",
	},
	{
		rule: "quiet-max-wait",
		holds: func(c *Config) {
			c.Debounce.Quiet, c.Debounce.MaxWait = 6*second, 6*second
		},
		breaks:  func(c *Config) { c.Debounce.MaxWait = 5999 * time.Millisecond },
		setting: "debounce.quiet", fix: "lower it to at most 5.999s, or raise debounce.maxWait to at least 6s",
	},
	{
		rule:    "burst-spread",
		holds:   func(c *Config) { c.Debounce.Quiet = 5 * second },
		breaks:  func(c *Config) { c.Debounce.Quiet = 4999 * time.Millisecond },
		setting: "debounce.quiet", fix: "raise it to at least 5s, or lower " + bothWindows + " or queues.burstSpread",
	},
	{
		rule: "burst-spread", name: "quiet 0 asks for no window and no spread",
		holds: func(c *Config) {
			c.Debounce.Quiet, c.Queues.BurstSpread = 0, 0
			c.Queues.Live.Batch, c.Queues.Live.Window = 10, 0
			c.Queues.Bulk.Batch, c.Queues.Bulk.Window = 10, 0
		},
		breaks:  func(c *Config) { c.Queues.BurstSpread = time.Millisecond },
		setting: "debounce.quiet", fix: "raise it to at least 1ms",
	},
	{
		rule:    "backoff",
		holds:   func(c *Config) { c.Retry.BackoffMin, c.Retry.BackoffMax = 20*second, 20*second },
		breaks:  func(c *Config) { c.Retry.BackoffMin++ },
		setting: "retry.backoffMin", fix: "lower it to at most 20s",
	},
	{
		rule:    "recovery-flight",
		holds:   func(c *Config) { c.Queues.Visibility = 55 * second },
		breaks:  func(c *Config) { c.Queues.Visibility = 56 * second },
		setting: "queues.visibility", fix: "lower it or " + bothWindows + " by 1s together, or raise recovery to at least 1m1s",
	},
	{
		rule: "recovery-flight", name: "a sink without versions adds its applyDelay",
		holds:   func(c *Config) { withoutVersions(c); c.Queues.Visibility = 85 * second },
		breaks:  func(c *Config) { c.Queues.Visibility = 86 * second },
		setting: "queues.visibility", fix: "by 1s together, or raise recovery to at least 1m1s",
	},
	{
		rule: "recovery-flight", name: "a longer recovery",
		holds:   func(c *Config) { c.Recovery, c.Queues.Visibility = 2*minute, 115*second },
		breaks:  func(c *Config) { c.Recovery -= second },
		setting: "queues.visibility", fix: "raise recovery to at least 2m",
	},
	{
		rule: "recovery-flight", name: "what was extended",
		holds:   func(c *Config) { c.Index.Timeout = 23 * second },
		breaks:  func(c *Config) { c.Index.Timeout = 24 * second },
		setting: "index.timeout", fix: "by 1s, or raise recovery to at least 1m2s",
	},
	{
		rule: "recovery-invocation", name: "a lease that is longer by its guard",
		holds:   func(c *Config) { c.Index.Guard = 44 * second },
		breaks:  func(c *Config) { c.Index.Guard = 45 * second },
		setting: "index.timeout", fix: "the lease (index.timeout, index.guard) or " + bothWindows + " by 1s together",
	},
	{
		rule: "recovery-invocation", name: "a sink without versions adds its applyDelay",
		holds:   func(c *Config) { withoutVersions(c); c.Index.Guard = 44 * second },
		breaks:  func(c *Config) { c.Index.Guard = 45 * second },
		setting: "index.timeout", fix: "by 1s together",
	},
	{
		rule: "recovery-invocation", name: "a retry later than the lease counts",
		holds:   func(c *Config) { c.Flight.AmbiguousRetry = 54 * second },
		breaks:  func(c *Config) { c.Flight.AmbiguousRetry = 55 * second },
		setting: "flight.ambiguousRetry", fix: "flight.ambiguousRetry or " + bothWindows + " by 1s together",
	},
	{
		rule: "flight-span",
		holds: func(c *Config) {
			withoutVersions(c)
			setSink(c, func(s *Sink) { s.ApplyDelay = ptr(107*second - time.Millisecond) })
		},
		breaks:  ofSink(func(s *Sink) { s.ApplyDelay = ptr(107 * second) }),
		setting: "flight.continueAfter", fix: "sinks.search.applyDelay",
	},
	{
		rule: "flight-span", name: "before the flight continues",
		holds:   func(c *Config) { c.Flight.ContinueAfter = 27 * second },
		breaks:  func(c *Config) { c.Flight.ContinueAfter = 26 * second },
		setting: "flight.continueAfter", fix: "raise it",
	},
	{
		rule: "flight-span", name: "Express alone ends",
		holds: func(c *Config) {
			withoutVersions(c)
			setSink(c, func(s *Sink) { s.ApplyDelay = ptr(2 * minute) })
			c.Flight.Kind, c.Queues.ExpectedRate = FlightStandard, 100
		},
		breaks:  func(c *Config) { c.Flight.Kind = FlightAuto },
		setting: "flight.continueAfter", fix: "set flight.kind to standard",
	},
	{
		rule: "dead-deadline-hold",
		holds: func(c *Config) {
			c.Debounce.MaxWait, c.Retry.DeadDeadline, c.Queues.ExpectedRate = 20*minute, 20*minute+10*second+1, 65
		},
		breaks:  func(c *Config) { c.Retry.DeadDeadline-- },
		setting: "retry.deadDeadline", fix: "raise it to at least 20m11s",
	},
	{
		rule: "dead-deadline-hold",
		name: "the pace",
		holds: func(c *Config) {
			news(c, Collection{MinInterval: ptr(hour), ExpectedRate: 1})
			c.Retry.DeadDeadline = 2 * hour
		},
		breaks:  func(c *Config) { c.Retry.DeadDeadline = hour },
		setting: "retry.deadDeadline", fix: "raise it to at least 1h0m11s",
	},
	{
		rule:    "in-flight",
		holds:   func(c *Config) { c.Queues.ExpectedRate = 80_000 / 11 },
		breaks:  func(c *Config) { c.Queues.ExpectedRate++ },
		setting: "queues.expectedRate", fix: "lower it to at most 7272 per queue",
	},
	{
		rule: "in-flight", name: "a raised quota",
		holds:   func(c *Config) { c.Queues.ExpectedRate, c.Queues.MaxInFlight = 10_000, 110_000 },
		breaks:  func(c *Config) { c.Queues.MaxInFlight-- },
		setting: "queues.expectedRate", fix: "let AWS raise the quota",
	},
	{
		rule: "bounds", name: "a limit below 0, and a sink that no collection names",
		breaks: func(c *Config) {
			c.Sinks["idle"], c.Queues.MaxInFlight = c.Sinks["search"], -1
			news(c, Collection{})
		},
		setting: "queues.maxInFlight", fix: "at least", also: []string{"in-flight:debounce.quiet"},
	},
	{
		rule: "in-flight", name: "a long window holds until the cap and its grace",
		holds: func(c *Config) {
			c.Debounce.Quiet, c.Debounce.MaxWait, c.Queues.ExpectedRate = 5*minute, 20*minute, 65 // 80,000 / 1,216
		},
		breaks:  func(c *Config) { c.Queues.ExpectedRate++ },
		setting: "queues.expectedRate", fix: "lower it to at most 65 per queue",
	},
	{
		rule: "in-flight", name: "a long pace",
		holds: func(c *Config) {
			c.Debounce.MinInterval, c.Queues.ExpectedRate = hour, 22 // 80,000 / 3,616
		},
		breaks:  func(c *Config) { c.Queues.ExpectedRate++ },
		setting: "queues.expectedRate", fix: "shorten debounce.minInterval",
	},
	{
		rule: "in-flight", name: "a collection with a rate of its own",
		holds: func(c *Config) {
			c.Collections["shop"] = Collection{}
			// The queue holds 40 x 1,216 messages of news and 2,850 x 11 messages of shop.
			c.Collections["news"] = Collection{Quiet: ptr(5 * minute), ExpectedRate: 40}
			c.DefaultCollection, c.Queues.ExpectedRate = "news", 2_890
		},
		breaks:  func(c *Config) { c.Queues.ExpectedRate++ },
		setting: "queues.expectedRate", fix: "lower it to at most 2890 per queue",
	},
	{
		rule: "in-flight", name: "the collection is too much alone",
		holds: func(c *Config) {
			c.Collections["shop"], c.DefaultCollection = Collection{}, "shop"
			c.Collections["news"] = Collection{Quiet: ptr(5 * minute), ExpectedRate: 65}
			c.Queues.ExpectedRate = 65
		},
		breaks: func(c *Config) {
			c.Collections["news"] = Collection{Quiet: ptr(5 * minute), ExpectedRate: 66}
			c.Queues.ExpectedRate = 66
		},
		setting: "collections.news.quiet", fix: "lower collections.news.expectedRate",
	},
	{
		rule:    "expected-rates",
		holds:   func(c *Config) { news(c, Collection{ExpectedRate: 500}) },
		breaks:  func(c *Config) { c.Queues.ExpectedRate = 499 },
		setting: "queues.expectedRate", fix: "raise it to at least 500",
	},
	{
		rule:    "express-limit",
		holds:   func(c *Config) { c.Flight.ContinueAfter = 280 * second },
		breaks:  func(c *Config) { c.Flight.ContinueAfter = 281 * second },
		setting: "flight.continueAfter", fix: "lower it to at most 4m40s",
	},
	{
		rule:    "dead-letter-retention",
		holds:   func(c *Config) { c.Queues.DeadLetterRetention = 7*day + second },
		breaks:  func(c *Config) { c.Queues.DeadLetterRetention = 7 * day },
		setting: "queues.deadLetterRetention", fix: "raise it (14d at most), or lower queues.retention",
	},
	{
		rule:    "dead-deadline",
		holds:   func(c *Config) { c.Queues.Retention = 3*day + 12*time.Hour },
		breaks:  func(c *Config) { c.Queues.Retention = 3*day + 12*time.Hour - second },
		setting: "queues.retention", fix: "raise it to at least 84h, or lower retry.deadDeadline",
	},
	{
		rule:    "row-retention",
		holds:   func(c *Config) { c.Lifecycle.RowRetention = 23 * day },
		breaks:  func(c *Config) { c.Lifecycle.RowRetention = 23*day - second },
		setting: "lifecycle.rowRetention", fix: "raise it to at least 23d",
	},
	{
		rule: "row-retention", name: "later producers",
		holds:   func(c *Config) { c.Lifecycle.ProducerLateness = 8 * day },
		breaks:  func(c *Config) { c.Lifecycle.ProducerLateness = 8*day + second },
		setting: "lifecycle.rowRetention", fix: "raise it to at least",
	},
	{
		rule: "row-retention", name: "longer redrives",
		holds:   func(c *Config) { c.Lifecycle.RedriveSpan = 8 * day },
		breaks:  func(c *Config) { c.Lifecycle.RedriveSpan = 8*day + second },
		setting: "lifecycle.rowRetention", fix: "raise it to at least",
	},
	{
		rule:    "archive",
		holds:   func(c *Config) { c.Archive.Keep = 29 * day },
		breaks:  func(c *Config) { c.Archive.Keep = 30 * day },
		setting: "archive.keep", fix: "lower it to at most 29d, or raise lifecycle.rowRetention",
	},
	{
		rule:    "canary",
		holds:   func(c *Config) { c.Canary.Every = 5 * time.Minute },
		breaks:  func(c *Config) { c.Canary.Every = 4 * time.Minute },
		setting: "canary.every", fix: "raise it to at least 5m",
	},
	{
		rule: "canary", name: "its collections",
		holds: func(c *Config) {
			c.Canary.Collections, c.Collections = []string{"content"}, map[string]Collection{"content": {}}
		},
		breaks:  func(c *Config) { c.Canary.Collections = []string{"content", "none"} },
		setting: "canary.collections", fix: "write the name of a collection",
	},
	{
		rule:    "commit-feed",
		holds:   func(c *Config) { c.CommitFeed = true },
		breaks:  func(c *Config) { c.CommitFeed, c.Table.Name = true, "content-rows" },
		setting: "commitFeed", fix: "or remove table",
	},
	{
		rule:    "parts",
		holds:   func(c *Config) { c.Stack, c.Parts = "content-4", Parts{Of: 4, This: 4} },
		breaks:  func(c *Config) { c.Stack, c.Parts.This = "content-5", 5 },
		setting: "parts.this", fix: "a number from 1 to 4",
	},
	{
		rule: "parts", name: "missing",
		holds:   func(c *Config) { c.Stack, c.Parts = "content-1", Parts{Of: 2, This: 1} },
		breaks:  func(c *Config) { c.Stack, c.Parts.This = "content-0", 0 },
		setting: "parts.this", fix: "a number from 1 to 2",
	},
	{
		rule: "parts", name: "without of",
		holds:   func(c *Config) { c.Parts.This = 1 },
		breaks:  func(c *Config) { c.Parts.This = 2 },
		setting: "parts.this", fix: "write the number of all parts into parts.of",
	},
	{
		rule:    "parts-stack",
		holds:   func(c *Config) { c.Stack, c.Parts = "content-2", Parts{Of: 12, This: 2} },
		breaks:  func(c *Config) { c.Stack = "content-12" },
		setting: "stack", fix: "write a name such as content-2",
	},
	{
		rule: "parts-own", name: "table",
		holds:   func(c *Config) { c.Stack, c.Parts = "content-2", Parts{Of: 2, This: 2} },
		breaks:  func(c *Config) { c.Table.Name = "content-rows" },
		setting: "table.name", fix: "remove it",
	},
	{
		rule: "parts-own", name: "queue",
		holds:   func(c *Config) { c.Stack, c.Parts = "content-2", Parts{Of: 2, This: 2} },
		breaks:  func(c *Config) { liveQueue(c, "search", "theirs") },
		setting: "sinks.search.liveQueue", fix: "remove it",
	},
	{
		rule:    "parts-lines",
		holds:   func(c *Config) { exports(c, "native"); c.DefaultSource, c.Stack = "native", "content-2" },
		breaks:  func(c *Config) { c.Parts = Parts{Of: 2, This: 2} },
		setting: "sources.exports.s3.lines", fix: "lull resync",
	},
	{
		rule:    "memory",
		holds:   func(c *Config) { c.Memory.Index = 128 * setting.MB },
		breaks:  func(c *Config) { c.Memory.Index = 127 * setting.MB },
		setting: "memory.index", fix: "raise it to at least 128MB",
	},
	{
		rule: "memory", name: "steps",
		holds:   func(c *Config) { c.Memory.Receive = 129 * setting.MB },
		breaks:  func(c *Config) { c.Memory.Receive++ },
		setting: "memory.receive", fix: "write a number of MB, such as 512MB",
	},
	{
		rule: "capacity-order", name: "writes",
		holds:   func(c *Config) { c.Table.Billing, c.Table.Writes.Min = Provisioned, 4_000 },
		breaks:  func(c *Config) { c.Table.Writes.Min = 4_001 },
		setting: "table.writes.min", fix: "lower it to at most 4000, or raise table.writes.max",
	},
	{
		rule: "capacity-order", name: "the index",
		holds:   func(c *Config) { c.Table.Billing, c.Table.Waiting.Reads.Max = Provisioned, 1 },
		breaks:  func(c *Config) { c.Table.Waiting.Reads.Min = 2 },
		setting: "table.waiting.reads.min", fix: "lower it to at most 1",
	},
	{
		rule:    "capacity-rate",
		holds:   func(c *Config) { c.Table.Billing, c.Table.Writes.Max = Provisioned, 500 },
		breaks:  func(c *Config) { c.Table.Writes.Max = 499 },
		setting: "table.writes.max", fix: "raise it to at least 500, or lower queues.expectedRate",
	},
	{
		rule: "receive-count",
		holds: func(c *Config) {
			c.Queues.Retention, c.Retry.DeadDeadline = 11*day, 90*192*second+880*12*minute
		},
		breaks:  func(c *Config) { c.Retry.DeadDeadline++ },
		setting: "retry.deadDeadline", fix: "lower it to at most 180h48m",
	},
	{
		rule: "flight-starts", name: "express",
		holds: func(c *Config) {
			c.Queues.Live.Batch, c.Queues.Live.Window, c.Queues.ExpectedRate = 1, 0, 5_994
		},
		breaks:  func(c *Config) { c.Queues.ExpectedRate = 6_000 },
		setting: "flight.kind", fix: "raise queues.live.batch",
	},
	{
		rule: "flight-starts", name: "standard",
		holds: func(c *Config) {
			c.Flight.Kind, c.Queues.Live.MaxConcurrency = FlightStandard, 446
		},
		breaks:  func(c *Config) { c.Queues.Live.MaxConcurrency = 447 },
		setting: "flight.kind", fix: "set flight.kind to express",
	},
	{
		rule: "flight-starts", name: "standard, without a limit",
		holds:   func(c *Config) { c.Flight.Kind, c.Queues.ExpectedRate = FlightStandard, 148 },
		breaks:  func(c *Config) { c.Queues.ExpectedRate = 150 },
		setting: "flight.kind", fix: "set queues.live.maxConcurrency",
	},
	{
		rule: "flight-starts", name: "auto, where all executions wait long",
		holds: func(c *Config) {
			c.Debounce.Quiet, c.Debounce.MaxWait, c.Queues.MaxInFlight = 2*minute, 8*minute, 1_000_000
			c.Queues.ExpectedRate = 148
		},
		breaks:  func(c *Config) { c.Queues.ExpectedRate = 150 },
		setting: "flight.kind", fix: "set queues.live.maxConcurrency",
	},
	{
		rule: "flight-starts", name: "without a limit the sinks share what the account has",
		holds: func(c *Config) {
			c.Queues.Live.Batch, c.Queues.Live.Window, c.Queues.MaxInFlight = 10, second, 1_000_000
			c.Sinks["other"], c.DefaultSink, c.Queues.ExpectedRate = c.Sinks["search"], "search", 29_700
		},
		breaks:  func(c *Config) { c.Queues.ExpectedRate = 29_705 },
		setting: "flight.kind", fix: "raise queues.live.batch",
	},
	{
		rule:    "live-concurrency",
		holds:   func(c *Config) { c.Queues.Live.MaxConcurrency = 2 },
		breaks:  func(c *Config) { c.Queues.Live.MaxConcurrency = 1 },
		setting: "queues.live.maxConcurrency", fix: "write at least 2, or 0 for no limit",
	},
	{
		rule:    "live-pollers",
		holds:   func(c *Config) { c.Queues.Live.MaxConcurrency, c.Queues.ExpectedRate = 17, 5_000 },
		breaks:  func(c *Config) { c.Queues.Live.MaxConcurrency = 16 },
		setting: "queues.live.maxConcurrency", fix: "raise it to at least 17, write 0 for no limit",
	},
}

// brokenOverrides breaks the same rules with a collection's own timing. The fault then names the
// setting of the collection.
var brokenOverrides = []broken{
	{
		rule: "burst-spread", name: "collection",
		holds:   func(c *Config) { news(c, Collection{Quiet: ptr(5 * second)}) },
		breaks:  func(c *Config) { news(c, Collection{Quiet: ptr(3 * second)}) },
		setting: "collections.news.quiet", fix: "raise it to at least 5s",
	},
	{
		rule: "quiet-max-wait", name: "collection's max wait",
		holds:   func(c *Config) { news(c, Collection{MaxWait: ptr(5 * second)}) },
		breaks:  func(c *Config) { news(c, Collection{MaxWait: ptr(4 * second)}) },
		setting: "collections.news.maxWait",
		fix:     "raise it to at least 5s, or set collections.news.quiet to at most 4s",
	},
}
