// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
)

var topSettings = []setting.Setting{
	setting.Text("stack", namePattern, nameShape, "The prefix of every resource name."),
	setting.Count("parts.of", 1, shard.MaxParts,
		"The number of stacks that the documents are spread over (docs/scale.md)."),
	setting.Count("parts.this", 0, shard.MaxParts, "The part that this stack is, 1 to parts.of.").
		Otherwise("required if parts.of is more than 1"),
	setting.Text("table.name", tablePattern, "the name of a table, or nothing",
		"An existing DynamoDB table, if the stack should not create its own.").
		Otherwise("the stack creates STACK-shards"),
	setting.Choice("table.billing",
		"How AWS bills the table: for each request, or for capacity (docs/cost.md). With table.name, only lull "+
			"cost and lull simulate use it.", string(OnDemand), string(Provisioned)),
	setting.Count("table.writes.min", 1, maxCapacity, "The fewest write units a second that are kept ready, if provisioned."),
	setting.Count("table.writes.max", 1, maxCapacity, "The most write units a second that auto scaling keeps ready."),
	setting.Count("table.writes.target", minTarget, maxTarget,
		"The percentage of the write units that auto scaling aims to have used."),
	setting.Count("table.reads.min", 1, maxCapacity, "The fewest read units a second that are kept ready, if provisioned."),
	setting.Count("table.reads.max", 1, maxCapacity, "The most read units a second that auto scaling keeps ready."),
	setting.Count("table.reads.target", minTarget, maxTarget,
		"The percentage of the read units that auto scaling aims to have used."),
	setting.Count("table.waiting.writes.min", 1, maxCapacity,
		"Like table.writes.min, for the index waiting, which holds dead letters and scheduled events."),
	setting.Count("table.waiting.writes.max", 1, maxCapacity,
		"Like table.writes.max, for the index waiting: an index without capacity slows the table's own writes."),
	setting.Count("table.waiting.writes.target", minTarget, maxTarget, "Like table.writes.target, for the index waiting."),
	setting.Count("table.waiting.reads.min", 1, maxCapacity, "Like table.reads.min, for the index waiting."),
	setting.Count("table.waiting.reads.max", 1, maxCapacity, "Like table.reads.max, for the index waiting."),
	setting.Count("table.waiting.reads.target", minTarget, maxTarget, "Like table.reads.target, for the index waiting."),
}

var debounceSettings = []setting.Setting{
	setting.Duration("debounce.quiet", 0, maxQuiet, 0, "An event is due this long after it was sent."),
	setting.Duration("debounce.maxWait", 0, maxHold, 0,
		"The longest time that a document with constant events is postponed, from the first event of the burst.").
		Otherwise("30s, or four times quiet if that is longer"),
	setting.Duration("debounce.capGrace", 0, time.Minute,
		0, "How much later than the cap an earlier version may be written, so that the newest is written first."),
	setting.Duration("debounce.minInterval", 0, maxHold, 0,
		"The least time between two committed writes of one document; 0s for no limit."),
	setting.Flag("debounce.leading", "The first event of a burst is due at once."),
}

var functionSettings = []setting.Setting{
	setting.Duration("receive.timeout", time.Second, maxLambdaTimeout, time.Second, "Tr, the timeout of receive."),
	setting.Duration("index.timeout", time.Second, maxLambdaTimeout, time.Second, "Ti, the timeout of index."),
	setting.Duration("index.guard", minGuard, time.Minute, 0,
		"G, how late an invocation may be killed and how far clocks may differ; part of the lease."),
	setting.Duration("index.sinkDeadline", time.Second, maxLambdaTimeout, 0,
		"The longest time that one call to a sink may take. If an answer takes more than half of it, lull sends "+
			"fewer documents."),
	setting.Count("index.maxItemsPerTurn", 1, 10_000, "The most documents that one turn of a flight works on."),
	setting.Count("index.waitingTurns", 0, 100,
		"How often a superseded version wakes for the quiet window before it sleeps to the cap."),
}

var queueSettings = []setting.Setting{
	setting.Count("queues.live.batch", 1, maxBatch, "The most messages of one invocation of receive, live lane."),
	setting.Duration("queues.live.window", 0, maxWindow, time.Second, "W, how long a batch is gathered, live lane."),
	setting.Count("queues.live.maxConcurrency", 0, maxConcurrency,
		"The most invocations of receive at once, live lane; 0 for only the account's limit, never 1. With a "+
			"limit, AWS polls with at least five receivers, otherwise with two."),
	setting.Count("queues.bulk.batch", 1, maxBatch, "The most messages of one invocation of receive, bulk lane."),
	setting.Duration("queues.bulk.window", 0, maxWindow, time.Second, "W, how long a batch is gathered, bulk lane."),
	setting.Count("queues.bulk.maxConcurrency", minConcurrency, maxConcurrency,
		"The most invocations of receive at once, bulk lane."),
	setting.Duration("queues.visibility", time.Second, maxVisibility, time.Second,
		"V, how long a received message stays invisible."),
	setting.Duration("queues.retention", minQueueRetention, maxQueueRetention, time.Second,
		"How long a queue keeps a message."),
	setting.Duration("queues.deadLetterRetention", minQueueRetention, maxQueueRetention, time.Second,
		"How long the dead-letter queue keeps a message, from when it was first sent."),
	setting.Choice("queues.elsewhere",
		"What happens to an event in the queue of a sink that is not a sink of its collection. Use skip only if "+
			"the sender also sends the event to the queue of the right sink.",
		string(ElsewhereDeadLetter), string(ElsewhereSkip)).
		Otherwise("deadLetter, or skip if a collection has several sinks"),
	setting.Duration("queues.burstSpread", 0, time.Minute, 0, "How far apart the events of one burst are sent."),
	setting.Count("queues.expectedRate", 1, 1_000_000, "Messages a second of one queue.").
		Otherwise("500, or less with long windows or Standard executions"),
	setting.Count("queues.maxInFlight", 1_000, 100_000_000,
		"The most messages of one queue held at once: two thirds of the quota of 120,000; more if the quota was "+
			"raised."),
}

var retrySettings = []setting.Setting{
	setting.Count("retry.maxRefusals", 1, 100,
		"How often a sink may refuse a document without a known reason before it becomes a dead letter."),
	setting.Duration("retry.deadDeadline", time.Minute, maxQueueRetention, 0,
		"The age at which a message becomes a dead letter."),
	setting.Duration("retry.backoffMin", 100*time.Millisecond, time.Minute, 0, "The shortest back-off, before jitter."),
	setting.Duration("retry.backoffMax", time.Second, 4*time.Minute, 0, "The longest back-off, before jitter."),
	setting.Count("retry.autoRedrives", 0, 100,
		"How often lull redrives a dead letter with a transient reason automatically."),
}

var lifecycleSettings = []setting.Setting{
	setting.Duration("lifecycle.rowRetention", 2*day, forever, time.Second, "How long a row is kept after its last commit."),
	setting.Duration("lifecycle.ttlExtra", day, forever, time.Second,
		"How much later the table's own expiry is: more than the day that prune takes for a pass."),
	setting.Duration("lifecycle.producerLateness", 0, forever, time.Second,
		"How long after a change its message may still be sent."),
	setting.Duration("lifecycle.redriveSpan", 0, forever, time.Second, "How long a redriven message may stay in a queue."),
	setting.Duration("lifecycle.pruneEvery", time.Minute, delayLimit-5*time.Minute, time.Minute,
		"The interval of prune, which enqueues what falls due within 15 minutes."),
	setting.Count("lifecycle.driftSample", 0, 100,
		"How many rows of each run of prune are compared with the sink; 0 for none."),
}

var flightSettings = []setting.Setting{
	setting.Choice("flight.kind", "The kind of state machine; auto is the cheaper one for each execution, by how long it waits.",
		"auto", "express", "standard"),
	setting.Duration("flight.continueAfter", 10*time.Second, expressLimit, time.Second,
		"The age at which an Express flight continues as a new execution."),
	setting.Duration("flight.ambiguousRetry", 0, maxLambdaTimeout, time.Second,
		"The first retry after an invocation whose outcome is unknown.").
		Otherwise("0s: the sink's lease, rounded up to whole seconds"),
}

var payloadSettings = []setting.Setting{
	setting.Bytes("payload.referenceAbove", setting.KB, maxMessage,
		"The size above which a payload is sent by reference."),
	setting.Count("payload.envelopeDepth", 1, 16, "How many envelopes are unwrapped."),
	setting.Duration("payload.missingWait", 0, 11*time.Hour, 0,
		"How long an event whose referenced object is missing waits for its delete before it becomes a dead letter."),
	setting.Text("payload.allow[].bucket", bucketPattern, "a bucket's name",
		"A bucket that a reference may point to.").Otherwise("required"),
	setting.Text("payload.allow[].prefix", folderPattern, "a folder that ends in /, without *, ? and $",
		"The folder of the bucket that a reference may point to.").Otherwise("the whole bucket"),
	setting.List("payload.allow[].sources", namePattern, nameShape,
		"The sources whose events may refer to this place.").Otherwise("every source"),
	setting.List("payload.httpHosts", hostPattern, "a lower-case host name with a domain, such as assets.example.org",
		"The hosts that an http reference may point to.").
		Otherwise("none"),
}

var lastSettings = []setting.Setting{
	setting.Bytes("memory.receive", 0, maxMemory,
		"The memory of receive. Processor time follows it: 1,769 MB are one processor (docs/cost.md).").
		Otherwise("0B: 512MB"),
	setting.Bytes("memory.index", 0, maxMemory, "The memory of index.").Otherwise("0B: 1GB"),
	setting.Bytes("memory.prune", 0, maxMemory, "The memory of prune.").Otherwise("0B: 512MB"),
	setting.Bytes("memory.dlq", 0, maxMemory, "The memory of dlq.").Otherwise("0B: 256MB"),
	setting.Duration("archive.keep", 0, forever, day,
		"How long receive keeps its messages, for lull replay; 0s to keep none."),
	setting.Duration("canary.every", 0, day, time.Minute,
		"How often the function job sends a synthetic document through each sink (docs/canary.md); 0s for never."),
	setting.List("canary.collections", collectionPattern, collectionShape, "The collections that the document goes to; only "+
		"their sinks have a canary.").
		Otherwise("all sinks, by the first collection of each"),
	setting.Text("tracing.endpoint", nil, "",
		"An OpenTelemetry collector that accepts OTLP over HTTP, such as http://localhost:4318.").
		Otherwise("no tracing"),
	setting.Duration("recovery", 10*time.Second, 15*time.Minute, 0,
		"The longest additional delay of a document after one lost invocation or flight. A sink without versions "+
			"adds its applyDelay."),
	setting.Choice("deadLetters", "What happens to dead letters: queue keeps them, none logs, counts and deletes them.", "queue",
		"none"),
	setting.Flag("commitFeed", "Each commit is published as an event: by the table's stream, in lull dev by GET /feed."),
	setting.Count("searchableCalls", 1, accountConcurrency-unreserved,
		"Adds a URL that says whether a version is searchable (docs/searchable.md), for this many requests at once.").
		Otherwise("no URL"),
	setting.Choice("tableOutage",
		"While the table is unreachable, all messages wait, or (open) are written at once: the sink may show "+
			"older versions.", "closed", "open"),
}
