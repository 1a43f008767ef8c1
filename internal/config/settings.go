package config

import (
	"math"
	"regexp"
	"slices"
	"time"
)

// The bounds of the platform, from the vendors' documentation.
const (
	maxLambdaTimeout  = 900 * time.Second
	maxVisibility     = 12 * time.Hour
	minQueueRetention = time.Minute
	maxQueueRetention = 14 * day
	maxBatch          = 10_000
	maxWindow         = 300 * time.Second
	minConcurrency    = 2
	maxConcurrency    = 1_000
	maxMessage        = MB
	expressLimit      = 5 * time.Minute
	delayLimit        = 15 * time.Minute // the longest DelaySeconds: prune enqueues what is due sooner
	minGuard          = 2 * time.Second  // the platform kills late, by less than this
	minSettle         = time.Second      // a sink without versions always applies a little late
	maxSettle         = 5 * time.Minute
	forever           = 3650 * day
)

// Shapes of names. They are part of resource names, keys and indices, whose services allow no more.
var (
	namePattern       = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	collectionPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	optCollection     = regexp.MustCompile(`^([a-z0-9][a-z0-9-]{0,31})?$`)
	optName           = regexp.MustCompile(`^([a-z][a-z0-9-]{0,31})?$`)
	pointerPattern    = regexp.MustCompile(`^(/([^~/]|~[01])*)*$`)
	indexPattern      = regexp.MustCompile(`^(\{collection\}|[a-z0-9])([a-z0-9_.-]|\{collection\})*$`)
	pathPattern       = regexp.MustCompile(`^/\S*$`)
	wordPattern       = regexp.MustCompile(`^\S+$`)
	localePattern     = regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
	envPattern        = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)?$`)
	regionPattern     = regexp.MustCompile(`^([a-z]{2}(-[a-z]+)+-[0-9])?$`)
	arnPattern        = regexp.MustCompile(
		`^(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+)?$`)
	servicePattern = regexp.MustCompile(`^(es|aoss)?$`)
	bucketPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	hostPattern    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)
)

const (
	nameShape       = "a lower-case letter, then up to 31 lower-case letters, digits or hyphens"
	collectionShape = "a lower-case letter or digit, then up to 31 lower-case letters, digits or hyphens"
	pointerShape    = "a JSON pointer such as /details/title"
)

// Settings returns the description of every setting, in the order of lull.yaml.
func Settings() []Setting { return slices.Clone(settings) }

var settings = slices.Concat(
	topSettings, sourceSettings, collectionSettings, sinkSettings, debounceSettings, functionSettings,
	queueSettings, retrySettings, lifecycleSettings, flightSettings, payloadSettings, lastSettings,
)

// byName finds a setting by its generic name.
var byName = func() map[string]Setting {
	m := make(map[string]Setting, len(settings))
	for _, s := range settings {
		m[s.Name] = s
	}
	return m
}()

func duration(name string, from, to, step time.Duration, doc string) Setting {
	return Setting{Name: name, Unit: UnitDuration, Min: int64(from), Max: int64(to), Step: step, Doc: doc}
}

func count(name string, from, to int64, doc string) Setting {
	return Setting{Name: name, Unit: UnitCount, Min: from, Max: to, Doc: doc}
}

func size(name string, from, to Size, doc string) Setting {
	return Setting{Name: name, Unit: UnitSize, Min: int64(from), Max: int64(to), Doc: doc}
}

func onOff(name, doc string) Setting { return Setting{Name: name, Unit: UnitFlag, Doc: doc} }

func choice(name, doc string, choices ...string) Setting {
	return Setting{Name: name, Unit: UnitChoice, Choices: choices, Doc: doc}
}

func text(name string, pattern *regexp.Regexp, shape, doc string) Setting {
	return Setting{Name: name, Unit: UnitText, Pattern: pattern, Shape: shape, Doc: doc}
}

func list(name string, pattern *regexp.Regexp, shape, doc string) Setting {
	return Setting{Name: name, Unit: UnitList, Pattern: pattern, Shape: shape, Doc: doc}
}

// otherwise says what the default is where it follows from something else.
func (s Setting) otherwise(words string) Setting {
	s.Default = words
	return s
}

var topSettings = []Setting{
	text("stack", namePattern, nameShape, "The prefix of every resource name."),
}

var sourceSettings = []Setting{
	choice("sources.<name>.kind", "The upstream format.", "native", "govuk", "s3", "dynamodb-stream", "debezium",
		"json").otherwise("required"),
	choice("sources.<name>.class", "How versions compare; fixed for a source's lifetime.", "int", "seq", "time", "lsn",
		"lex").
		otherwise("int; seq for s3; lsn for debezium; time with noVersion: arrival"),
	count("sources.<name>.epoch", 0, math.MaxUint32, "Raised by an operator after the upstream's counter went back."),
	choice("sources.<name>.noVersion", "What happens to an event without a version: refused, or the last arrival wins.",
		"refuse", "arrival").
		otherwise("refuse"),
	text("sources.<name>.collection", optCollection, collectionShape+", or nothing",
		"Where events go that name no collection.").
		otherwise("defaultCollection"),
	list("sources.<name>.projection", pointerPattern, pointerShape,
		"The parts of the payload that become the document.").
		otherwise("the payload as it is"),
	list("sources.<name>.govuk.ignoreTypes", wordPattern, "a document type",
		"Document types that are deleted.").otherwise("GOV.UK's own"),
	list("sources.<name>.govuk.ignorePrefixes", wordPattern, "the beginning of a document type",
		"Document types that are deleted, by prefix.").
		otherwise("content_block, placeholder"),
	list("sources.<name>.govuk.overridePaths", pathPattern, "a path such as /help or /world/*",
		"Paths that are indexed whatever their type; * stands for one segment.").otherwise("GOV.UK's own"),
	list("sources.<name>.govuk.locales", localePattern, "a locale such as en",
		"The locales that are indexed; others are skipped.").otherwise("en"),
	text("sources.<name>.json.id", pointerPattern, pointerShape,
		"Where the document's id is.").otherwise("required for json"),
	text("sources.<name>.json.version", pointerPattern, pointerShape, "Where the version is.").
		otherwise("required for json unless noVersion is arrival"),
	text("sources.<name>.json.time", pointerPattern, pointerShape, "Where the event time is.").otherwise("none"),
	text("sources.<name>.json.operation", pointerPattern, pointerShape,
		"Where the operation is.").otherwise("none: every event is a put"),
	list("sources.<name>.json.deleteValues", nil, "",
		"The values of the operation that mean delete.").otherwise("none"),
	text("sources.<name>.json.collection", pointerPattern, pointerShape,
		"Where the collection's name is.").otherwise("none"),
	text("sources.<name>.debezium.key", pointerPattern, pointerShape,
		"Where the document's id is.").otherwise("the key payload"),
	text("sources.<name>.debezium.version", pointerPattern, pointerShape,
		"Where the version is.").otherwise("/source/lsn"),
	text("sources.<name>.s3.stripPrefix", nil, "", "Removed from the beginning of a key.").otherwise("none"),
	text("sources.<name>.s3.stripSuffix", nil, "", "Removed from the end of a key.").otherwise("none"),
	text("defaultSource", optName, nameShape,
		"Decodes a message without the attribute lull-source.").otherwise("the only source"),
}

var collectionSettings = []Setting{
	text("collections.<name>.sink", optName, nameShape+", or nothing",
		"Where its documents are written.").otherwise("defaultSink"),
	duration("collections.<name>.quiet", 0, time.Minute, 0, "Overrides debounce.quiet.").otherwise("debounce.quiet"),
	duration("collections.<name>.maxWait", 0, 4*time.Minute, 0,
		"Overrides debounce.maxWait.").otherwise("debounce.maxWait"),
	duration("collections.<name>.capGrace", 0, time.Minute, 0,
		"Overrides debounce.capGrace.").otherwise("debounce.capGrace"),
	duration("collections.<name>.minInterval", 0, time.Hour, 0,
		"Overrides debounce.minInterval.").otherwise("debounce.minInterval"),
	onOff("collections.<name>.leading", "Overrides debounce.leading.").otherwise("debounce.leading"),
	text("defaultCollection", optCollection, collectionShape+", or nothing",
		"Where an event goes that names no collection, unless its source says otherwise.").
		otherwise("the only collection"),
}

var sinkSettings = []Setting{
	choice("sinks.<name>.kind", "The search engine. Only opensearch can be deployed.", "bleve", "memory",
		"opensearch").otherwise("required"),
	text("sinks.<name>.url", nil, "", "The engine's address.").otherwise("required for opensearch"),
	text("sinks.<name>.index", indexPattern,
		"an index name of lower-case letters, digits, _, . and -, with {collection} for the collection's name",
		"The index that documents go to."),
	onOff("sinks.<name>.versions",
		"Whether the sink itself refuses a write that is older than what it holds.").otherwise(
		"true; false where serverless"),
	duration("sinks.<name>.applyDelay", 0, maxSettle,
		0, "How long the sink may still apply a request after we hung up; part of the lease.").
		otherwise("0s with versions, 30s without"),
	choice("sinks.<name>.auth.kind", "How requests are authenticated.", "none", "basic", "sigv4"),
	text("sinks.<name>.auth.secretARN", arnPattern, "the ARN of a secret, or nothing",
		"A secret with the fields username and password, for basic.").otherwise("none"),
	text("sinks.<name>.auth.userEnv", envPattern, "the name of an environment variable, or nothing",
		"The variable that holds the user, for basic without a secret.").
		otherwise("none"),
	text("sinks.<name>.auth.passwordEnv", envPattern, "the name of an environment variable, or nothing",
		"The variable that holds the password, for basic without a secret.").
		otherwise("none"),
	text("sinks.<name>.auth.region", regionPattern, "a region such as eu-west-1, or nothing",
		"The region to sign for, for sigv4.").otherwise("the function's own"),
	text("sinks.<name>.auth.service", servicePattern, "es or aoss, or nothing",
		"The service to sign for, for sigv4.").otherwise("es; aoss where serverless"),
	count("sinks.<name>.bulkDocuments", 1, 10_000, "The most documents of one bulk request."),
	size("sinks.<name>.bulkBytes", 64*KB, 100*MB, "The most bytes of one bulk request; a larger document goes alone."),
	onOff("sinks.<name>.serverless", "A serverless collection, which counts as a sink without versions."),
	text("defaultSink", optName, nameShape, "Takes the collections that name no sink.").otherwise("the only sink"),
}

var debounceSettings = []Setting{
	duration("debounce.quiet", 0, time.Minute, 0, "An event is due this long after it was sent."),
	duration("debounce.maxWait", 0, 4*time.Minute, 0,
		"The longest a never-quiet document is postponed, from the first event of the burst."),
	duration("debounce.capGrace", 0, time.Minute,
		0, "How much later than the cap a version admitted before it may be written, so that the newest goes first."),
	duration("debounce.minInterval", 0, time.Hour, 0,
		"The least time between two committed writes of one document; 0s for no limit."),
	onOff("debounce.leading", "The first event of a burst is due at once."),
}

var functionSettings = []Setting{
	duration("receive.timeout", time.Second, maxLambdaTimeout, time.Second, "Tr, the time-out of receive."),
	duration("index.timeout", time.Second, maxLambdaTimeout, time.Second, "Ti, the time-out of index."),
	duration("index.guard", minGuard, time.Minute, 0,
		"G, how late an invocation may be killed and how far clocks may differ; part of the lease."),
	duration("index.sinkDeadline", time.Second, maxLambdaTimeout, 0, "The longest one call to a sink may take."),
	count("index.maxItemsPerTurn", 1, 10_000, "The most documents that one turn of a flight works on."),
	count("index.waitingTurns", 0, 100,
		"How often a superseded version wakes for the quiet window before it sleeps to the cap."),
}

var queueSettings = []Setting{
	count("queues.live.batch", 1, maxBatch, "The most messages of one invocation of receive, live lane."),
	duration("queues.live.window", 0, maxWindow, time.Second, "W, how long a batch is gathered, live lane."),
	count("queues.live.maxConcurrency", minConcurrency, maxConcurrency,
		"The most invocations of receive at once, live lane."),
	count("queues.bulk.batch", 1, maxBatch, "The most messages of one invocation of receive, bulk lane."),
	duration("queues.bulk.window", 0, maxWindow, time.Second, "W, how long a batch is gathered, bulk lane."),
	count("queues.bulk.maxConcurrency", minConcurrency, maxConcurrency,
		"The most invocations of receive at once, bulk lane."),
	duration("queues.visibility", time.Second, maxVisibility, time.Second,
		"V, how long a received message stays invisible."),
	duration("queues.retention", minQueueRetention, maxQueueRetention, time.Second,
		"How long a queue keeps a message."),
	duration("queues.deadLetterRetention", minQueueRetention, maxQueueRetention, time.Second,
		"How long the dead-letter queue keeps a message, from when it was first sent."),
	duration("queues.burstSpread", 0, time.Minute, 0, "How far apart the events of one burst are sent."),
	count("queues.expectedRate", 1, 1_000_000, "Messages a second of one queue."),
	count("queues.maxInFlight", 1_000, 100_000_000,
		"The most messages of one queue held at once: two thirds of the quota of 120,000; higher where the quota was "+
			"raised."),
}

var retrySettings = []Setting{
	count("retry.maxRefusals", 1, 100,
		"How often a sink may refuse a document for no known reason before it is a dead letter."),
	duration("retry.deadDeadline", time.Minute, maxQueueRetention, 0,
		"The age at which a message becomes a dead letter."),
	duration("retry.backoffMin", 100*time.Millisecond, time.Minute, 0, "The shortest back-off, before jitter."),
	duration("retry.backoffMax", time.Second, 4*time.Minute, 0, "The longest back-off, before jitter."),
	count("retry.autoRedrives", 0, 100, "How often a dead letter with a transient reason is redriven by itself."),
}

var lifecycleSettings = []Setting{
	duration("lifecycle.rowRetention", 2*day, forever, time.Second, "How long a settled row is kept."),
	duration("lifecycle.ttlExtra", day, forever, time.Second,
		"How much later the table's own expiry comes: more than the day that prune takes for a pass."),
	duration("lifecycle.producerLateness", 0, forever, time.Second,
		"How long after a change its message may still be sent."),
	duration("lifecycle.redriveSpan", 0, forever, time.Second, "How long a redriven message may stay in a queue."),
	duration("lifecycle.pruneEvery", time.Minute, delayLimit-5*time.Minute, time.Minute,
		"The interval of prune, which enqueues what falls due within 15 minutes."),
}

var flightSettings = []Setting{
	choice("flight.kind", "The kind of state machine.", "express", "standard"),
	duration("flight.continueAfter", 10*time.Second, expressLimit, time.Second,
		"The age at which an Express flight goes on as a new execution."),
	duration("flight.ambiguousRetry", 0, maxLambdaTimeout, time.Second,
		"The first retry after an invocation whose outcome is unknown.").
		otherwise("0s: the sink's lease, rounded up to whole seconds"),
}

var payloadSettings = []Setting{
	size("payload.referenceAbove", KB, maxMessage, "The size above which a payload travels by reference."),
	count("payload.envelopeDepth", 1, 16, "How many envelopes are unwrapped."),
	text("payload.allow[].bucket", bucketPattern, "a bucket's name",
		"A bucket that a reference may point to.").otherwise("required"),
	text("payload.allow[].prefix", nil, "", "What a key in it must begin with.").otherwise("the whole bucket"),
	list("payload.allow[].sources", namePattern, nameShape,
		"The sources whose events may refer to it.").otherwise("every source"),
	list("payload.httpHosts", hostPattern, "a lower-case host name with a domain, such as assets.example.org",
		"The hosts that an http reference may point to.").
		otherwise("none"),
}

var lastSettings = []Setting{
	choice("deadLetters", "What becomes of dead letters: kept, or (none) logged, counted and deleted.", "queue",
		"none"),
	choice("tableOutage",
		"What receive does while the table is unreachable: everything waits, or (open) it writes at once and the "+
			"sink may go back.", "closed", "open"),
}
