package config

import "time"

// bothWindows are named where they are equal, as by default: lowering one does not help.
const bothWindows = "queues.live.window and queues.bulk.window"

// brokenTimes break each sentence about time, age and load.
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
		also: []string{"visibility-receive:queues.visibility", "visibility-flight:queues.visibility"},
	},
	{
		rule: "visibility-timeout", name: "index",
		breaks:  func(c *Config) { c.Index.Timeout = 41 * second },
		setting: "index.timeout", fix: "lower it to at most 40s",
		also: []string{
			"visibility-flight:queues.visibility", "recovery-invocation:debounce.maxWait",
			"express-limit:flight.continueAfter",
		},
	},
	{
		rule: "visibility-flight", name: "index timeout",
		holds:   func(c *Config) { c.Index.Timeout = 12 * second },
		breaks:  func(c *Config) { c.Index.Timeout = 13 * second },
		setting: "queues.visibility",
		fix:     "raise queues.visibility to at least 41s, or lower debounce.quiet, index.timeout (which counts twice)",
	},
	{
		rule: "visibility-flight", name: "a short receive is not a help against the poll",
		holds: func(c *Config) {
			c.Receive.Timeout, c.Queues.Bulk.Window, c.Queues.Visibility = 3*second, 2*second, 33*second
			c.Queues.Live.Window = 2 * second
		},
		breaks:  func(c *Config) { c.Queues.Visibility = 32 * second },
		setting: "queues.visibility", fix: "raise queues.visibility to at least 33s",
	},
	{
		rule: "visibility-flight", name: "raising the visibility is not a way out where a lost flight would take too long",
		holds: func(c *Config) {
			c.Index.Timeout, c.Queues.Visibility = 17*second, 50*second
			c.Debounce.MaxWait = 34 * second
		},
		breaks:  func(c *Config) { c.Index.Timeout = 18 * second; c.Debounce.MaxWait = 30 * second },
		setting: "queues.visibility",
		fix:     "lower debounce.quiet, index.timeout (which counts twice) or " + bothWindows + " by 1s together",
		not:     "raise",
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
		rule:    "min-interval",
		holds:   func(c *Config) { c.Debounce.MinInterval = 13 * second },
		breaks:  func(c *Config) { c.Debounce.MinInterval = 13*second + 1 },
		setting: "debounce.minInterval", fix: "lower it to at most 13s",
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
		holds:   func(c *Config) { c.Queues.Visibility = 50 * second },
		breaks:  func(c *Config) { c.Queues.Visibility = 51 * second },
		setting: "queues.visibility", fix: "lower it, debounce.quiet or " + bothWindows + " by 1s together",
	},
	{
		rule: "recovery-flight", name: "a sink without versions adds its applyDelay",
		holds:   func(c *Config) { withoutVersions(c); c.Queues.Visibility = 80 * second },
		breaks:  func(c *Config) { c.Queues.Visibility = 81 * second },
		setting: "queues.visibility", fix: "by 1s together",
	},
	{
		rule:    "recovery-invocation",
		holds:   func(c *Config) { c.Debounce.MaxWait = 41 * second },
		breaks:  func(c *Config) { c.Debounce.MaxWait = 42 * second },
		setting: "debounce.maxWait", fix: "the lease (index.timeout, index.guard) by 1s together",
	},
	{
		rule: "recovery-invocation", name: "a sink without versions adds its applyDelay",
		holds:   func(c *Config) { withoutVersions(c); c.Debounce.MaxWait = 41 * second },
		breaks:  func(c *Config) { c.Debounce.MaxWait = 42 * second },
		setting: "debounce.maxWait", fix: "by 1s together",
	},
	{
		rule: "recovery-invocation", name: "a retry later than the lease counts",
		holds:   func(c *Config) { c.Flight.AmbiguousRetry = 24 * second },
		breaks:  func(c *Config) { c.Flight.AmbiguousRetry = 25 * second },
		setting: "debounce.maxWait", fix: "flight.ambiguousRetry by 1s together",
	},
	{
		rule: "flight-span",
		holds: func(c *Config) {
			withoutVersions(c)
			setSink(c, func(s *Sink) { s.ApplyDelay = ptr(92*second - time.Millisecond) })
		},
		breaks:  func(c *Config) { setSink(c, func(s *Sink) { s.ApplyDelay = ptr(92 * second) }) },
		setting: "debounce.maxWait", fix: "sinks.search.applyDelay",
	},
	{
		rule: "flight-span", name: "before the flight continues",
		holds:   func(c *Config) { c.Flight.ContinueAfter = 57 * second },
		breaks:  func(c *Config) { c.Flight.ContinueAfter = 56 * second },
		setting: "debounce.maxWait", fix: "flight.continueAfter",
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
		rule: "receive-count",
		holds: func(c *Config) {
			c.Queues.Retention, c.Retry.DeadDeadline = 11*day, 90*192*second+900*12*minute
		},
		breaks:  func(c *Config) { c.Retry.DeadDeadline++ },
		setting: "retry.deadDeadline", fix: "lower it to at most 184h48m",
	},
	{
		rule:    "in-flight",
		holds:   func(c *Config) { c.Queues.ExpectedRate = 80_000 / 11 },
		breaks:  func(c *Config) { c.Queues.ExpectedRate++ },
		setting: "queues.expectedRate", fix: "at most 7272 per queue",
	},
	{
		rule: "in-flight", name: "a raised quota",
		holds:   func(c *Config) { c.Queues.ExpectedRate, c.Queues.MaxInFlight = 10_000, 110_000 },
		breaks:  func(c *Config) { c.Queues.MaxInFlight-- },
		setting: "queues.expectedRate", fix: "have the quota raised",
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
}

// brokenOverrides break the same rules through a collection's own timing, which is then what the
// fault names.
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
	{
		rule: "quiet-max-wait", name: "collection's quiet",
		holds: func(c *Config) {
			c.Debounce.MaxWait = 6 * second
			news(c, Collection{Quiet: ptr(6 * second)})
		},
		breaks:  func(c *Config) { news(c, Collection{Quiet: ptr(7 * second)}) },
		setting: "collections.news.quiet", fix: "lower it to at most 6s, or raise debounce.maxWait to at least 7s",
	},
	{
		rule: "min-interval", name: "collection",
		holds:   func(c *Config) { news(c, Collection{MinInterval: ptr(13 * second)}) },
		breaks:  func(c *Config) { news(c, Collection{MinInterval: ptr(14 * second)}) },
		setting: "collections.news.minInterval", fix: "lower it to at most 13s",
	},
	{
		rule: "visibility-flight", name: "collection",
		holds:   func(c *Config) { news(c, Collection{Quiet: ptr(10 * second)}) },
		breaks:  func(c *Config) { news(c, Collection{Quiet: ptr(11 * second)}) },
		setting: "collections.news.quiet",
		fix:     "lower collections.news.quiet, index.timeout (which counts twice) or " + bothWindows + " by 1s together",
	},
	{
		rule: "recovery-flight", name: "collection",
		holds:   func(c *Config) { c.Queues.Visibility = 48 * second; news(c, Collection{Quiet: ptr(7 * second)}) },
		breaks:  func(c *Config) { news(c, Collection{Quiet: ptr(8 * second)}) },
		setting: "collections.news.quiet", fix: "queues.visibility",
	},
	{
		rule: "recovery-invocation", name: "collection",
		holds:   func(c *Config) { news(c, Collection{MaxWait: ptr(41 * second)}) },
		breaks:  func(c *Config) { news(c, Collection{MaxWait: ptr(42 * second)}) },
		setting: "collections.news.maxWait", fix: "lower it",
	},
	{
		rule: "flight-span", name: "collection on a slow sink",
		holds: func(c *Config) {
			slow := newSink("memory")
			slow.Versions, slow.ApplyDelay = ptr(false), ptr(100*second)
			c.Sinks["slow"] = slow
			news(c, Collection{Sink: "slow", MaxWait: ptr(13 * second)})
		},
		breaks:  func(c *Config) { news(c, Collection{Sink: "slow", MaxWait: ptr(14 * second)}) },
		setting: "collections.news.maxWait", fix: "sinks.slow.applyDelay",
	},
	{
		rule: "in-flight", name: "collection",
		holds: func(c *Config) {
			c.Queues.ExpectedRate = 5_000
			news(c, Collection{Quiet: ptr(10 * second)})
		},
		breaks:  func(c *Config) { c.Queues.ExpectedRate = 5_001 },
		setting: "queues.expectedRate", fix: "lower collections.news.quiet",
	},
}
