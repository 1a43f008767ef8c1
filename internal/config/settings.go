// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// The bounds of the platform, from the vendors' documentation.
const (
	maxLambdaTimeout  = 900 * time.Second
	maxVerifyEvery    = 90 * 24 * time.Hour
	maxVisibility     = 12 * time.Hour
	minQueueRetention = time.Minute
	maxQueueRetention = 14 * day
	maxBatch          = 10_000
	maxWindow         = 300 * time.Second
	minConcurrency    = 2
	maxConcurrency    = 1_000
	maxMessage        = setting.MB
	expressLimit      = 5 * time.Minute
	delayLimit        = 15 * time.Minute // the longest DelaySeconds: prune enqueues what is due sooner
	minGuard          = 2 * time.Second  // AWS kills an invocation less than this after its time-out
	minApplyDelay     = time.Second      // a sink without versions always applies a little late
	maxApplyDelay     = 5 * time.Minute
	maxQuiet          = 15 * time.Minute
	maxHold           = time.Hour // the longest maxWait or minInterval, far below the 12 hours of SQS
	maxCapacity       = 1_000_000 // units a second; an account's default quota is 40,000 a table
	minTarget         = 20        // percent: auto scaling's bounds
	maxTarget         = 90
	forever           = 3650 * day
)

// Patterns of names. Names become part of resource names, keys and indices, and the services allow
// no other characters there.
var (
	namePattern       = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	collectionPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	optCollection     = regexp.MustCompile(`^([a-z0-9][a-z0-9-]{0,31})?$`)
	optName           = regexp.MustCompile(`^([a-z][a-z0-9-]{0,31})?$`)
	indexPattern      = regexp.MustCompile(`^((\{collection\}|[a-z0-9])([a-z0-9_.-]|\{collection\})*)?$`)
	generationPattern = regexp.MustCompile(`^[A-Za-z0-9 ._:-]{0,64}$`)
	envPattern        = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)?$`)
	functionPattern   = regexp.MustCompile(
		`^(arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9$_-]{1,128})?)?$`)
	privatePattern = regexp.MustCompile(`^[A-Za-z0-9:]([A-Za-z0-9.:-]*[A-Za-z0-9:])?$`)
	enrichVersion  = regexp.MustCompile(`^[ -~]{0,64}$`)
	regionPattern  = regexp.MustCompile(`^([a-z]{2}(-[a-z]+)+-[0-9])?$`)
	arnPattern     = regexp.MustCompile(
		`^(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+)?$`)
	tablePattern   = regexp.MustCompile(`^([A-Za-z0-9_.-]{3,255})?$`)
	queuePattern   = regexp.MustCompile(`^([A-Za-z0-9_-]{1,80})?$`)
	topicPattern   = regexp.MustCompile(`^(arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_.-]+|[A-Za-z0-9._-]{1,249})?$`)
	streamPattern  = regexp.MustCompile(`^(arn:[a-z-]+:(dynamodb|kinesis|kafka|mq):[a-z0-9-]+:[0-9]{12}:[^\s"]+)?$`)
	optBucket      = regexp.MustCompile(`^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$`)
	servicePattern = regexp.MustCompile(`^(es|aoss|rds-db)?$`)
	bucketPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	// A folder also becomes a prefix in the policies of roles. So folderPattern refuses * and ?,
	// which match any text in a policy, and $, which starts a variable.
	folderPattern = regexp.MustCompile(`^([^*?$]*/)?$`)
	anyHost       = regexp.MustCompile(`^[a-z0-9:]([a-z0-9.:-]*[a-z0-9])?$`)
	hostPattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)
)

const (
	nameShape       = "a lower-case letter, then up to 31 lower-case letters, digits or hyphens"
	collectionShape = "a lower-case letter or digit, then up to 31 lower-case letters, digits or hyphens"
)

// described is a setting and the name by which the decoder finds it.
type described struct {
	setting.Setting

	// generic is the same as Name, except for an option of a kind: then it is "group:kind.option".
	generic string
}

// settings describes every setting, in the order of lull.yaml. It may be called only after the
// kinds of sinks and sources have registered.
var settings = sync.OnceValue(func() []described {
	return slices.Concat(
		plain(topSettings), plain(sourceSettings()), registries[sourceType].settings(),
		plain(defaultSourceSettings), plain(collectionSettings),
		plain(sinkSettings()), registries[sinkType].settings(), plain(defaultSinkSettings),
		plain(debounceSettings), plain(functionSettings), plain(queueSettings), plain(retrySettings),
		plain(lifecycleSettings), plain(flightSettings), plain(payloadSettings), plain(lastSettings),
	)
})

// plain returns settings whose generic name is their name in lull.yaml.
func plain(list []setting.Setting) []described {
	all := make([]described, len(list))
	for i, s := range list {
		all[i] = described{s, s.Name}
	}
	return all
}

// Settings returns the description of every setting, in the order of lull.yaml.
func Settings() []setting.Setting {
	var all []setting.Setting
	for _, s := range settings() {
		all = append(all, s.Setting)
	}
	return all
}

// byName finds a setting by its generic name.
var byName = sync.OnceValue(func() map[string]setting.Setting {
	m := make(map[string]setting.Setting)
	for _, s := range settings() {
		m[s.generic] = s.Setting
	}
	return m
})

func sourceSettings() []setting.Setting {
	kind := setting.Choice("sources.<name>.kind", "The upstream format.", source.Kinds()...).Otherwise("required")
	classes := string(ClassInt)
	for _, name := range source.Kinds() {
		if k, _ := source.Lookup(name); k.Class != ClassInt {
			classes += "; " + string(k.Class) + " for " + name
		}
	}
	class := setting.Choice("sources.<name>.class", "How versions compare; fixed for a source's lifetime.",
		"int", "seq", "time", "lsn", "lex").
		Otherwise(classes + "; time with noVersion: arrival; int with noVersion: position")
	return append([]setting.Setting{kind, class}, commonSourceSettings...)
}

var commonSourceSettings = []setting.Setting{
	setting.Count("sources.<name>.epoch", 0, shard.LastEpoch-1,
		"A number that an operator raises after the upstream's counter went back."),
	setting.Choice("sources.<name>.noVersion", "What happens to an event without a version: refused; or the last "+
		"arrival wins; or its position in Kafka or Kinesis is its version.",
		"refuse", "arrival", "position").
		Otherwise("refuse"),
	setting.Text("sources.<name>.maxVersion", nil, "", "The greatest version that events of the source may have.").
		Otherwise("any"),
	setting.Duration("sources.<name>.maxAhead", time.Minute, forever, 0,
		"How much later than its message was sent a version of the class time may be.").
		Otherwise("1d"),
	setting.Text("sources.<name>.collection", optCollection, collectionShape+", or nothing",
		"The collection of the source's events that name no collection.").
		Otherwise("defaultCollection"),
	setting.List("sources.<name>.collections", collectionPattern, collectionShape,
		"The collections that events of the source may name.").
		Otherwise("each of collections; any if collections is empty"),
	setting.Flag("sources.<name>.match[].named",
		"The message names the source by the attribute lull-source. Every sender can set it."),
	setting.Text("sources.<name>.match[].sink", optName, nameShape+", or nothing",
		"The sink in whose queues the message is: the only rule that a sender cannot meet by the content of a message.").
		Otherwise("any"),
	setting.Text("sources.<name>.match[].topic", topicPattern,
		"the ARN of an SNS topic, the name of a Kafka topic, or nothing",
		"The SNS topic that delivered the message, with raw delivery off, or the Kafka topic that a pipe read.").
		Otherwise("any"),
	setting.Text("sources.<name>.match[].bus", nil, "", "The source of an EventBridge event, such as aws.s3.").
		Otherwise("any"),
	setting.Text("sources.<name>.match[].detailType", nil, "", "The detail-type of an EventBridge event.").
		Otherwise("any"),
	setting.Text("sources.<name>.match[].bucket", optBucket, "a bucket's name, or nothing",
		"The bucket of a change in S3.").Otherwise("any"),
	setting.Text("sources.<name>.match[].stream", streamPattern,
		"the ARN of a DynamoDB table, DynamoDB or Kinesis stream, Kafka cluster or message broker, or nothing",
		"The stream or broker from which a pipe read the message.").Otherwise("any"),
	setting.Text("sources.<name>.match[].queue", nil, "", "The queue of a message broker that a pipe read.").
		Otherwise("any"),
	setting.Pointers("sources.<name>.projection", "The parts of the payload that become the document.").
		Otherwise("the whole payload, unchanged"),
	setting.Text("sources.<name>.fetch.url", nil, "",
		"The address of a document's newest state, such as https://cms.example.org/content/{id} or "+
			"s3://bucket/{collection}/{id}.json; {version} is the event's.").Otherwise("required"),
	setting.Text("sources.<name>.fetch.headers.secretARN", arnPattern, "the ARN of a secret, or nothing",
		"A secret with the headers of requests: a JSON object of names and values.").Otherwise("none"),
	setting.Text("sources.<name>.fetch.headers.env", envPattern, "the name of an environment variable, or nothing",
		"The variable with that JSON object, if there is no secret.").Otherwise("none"),
	setting.Duration("sources.<name>.fetch.timeout", 100*time.Millisecond, time.Minute, 0,
		"The longest time that one request may take.").Otherwise("1500ms"),
	setting.Pointer("sources.<name>.fetch.version",
		"The path of the version in the answer: an answer that is older than the event is not written.").
		Otherwise("required, unless the url is in S3, or versions are positions in a log or times of arrival"),
	setting.Choice("sources.<name>.fetch.missing",
		"What happens to an event whose document does not exist after payload.missingWait; wait continues until "+
			"retry.deadDeadline.", string(source.MissingDelete), string(source.MissingWait),
		string(source.MissingDeadLetter)).Otherwise("deadLetter"),
	setting.List("sources.<name>.fetch.allowPrivate", anyHost, "a host name or an address, in lower case",
		"Hosts that may have private addresses, and that lull may call without encryption.").Otherwise("none"),
	setting.Bytes("sources.<name>.fetch.maxBytes", setting.KB, source.MaxFetch,
		"The most bytes of one answer, unpacked.").Otherwise("5MB"),
}

var defaultSourceSettings = []setting.Setting{
	setting.Text("defaultSource", optName, nameShape,
		"Decodes a message that no rule in sources.<name>.match matches.").Otherwise("the only source"),
}

var collectionSettings = []setting.Setting{
	setting.Text("collections.<name>.sink", optName, nameShape+", or nothing",
		"The sink to which the collection's documents are written.").Otherwise("defaultSink"),
	setting.List("collections.<name>.sinks", namePattern, nameShape,
		"Several sinks in place of one (docs/fan-out.md). The first one stays the first; add others after it.").
		Otherwise("collections.<name>.sink"),
	setting.Duration("collections.<name>.quiet", 0, maxQuiet, 0, "Overrides debounce.quiet.").Otherwise("debounce.quiet"),
	setting.Duration("collections.<name>.maxWait", 0, maxHold, 0,
		"Overrides debounce.maxWait.").Otherwise("debounce.maxWait; four times its own quiet, at least 30s"),
	setting.Duration("collections.<name>.capGrace", 0, time.Minute, 0,
		"Overrides debounce.capGrace.").Otherwise("debounce.capGrace"),
	setting.Duration("collections.<name>.minInterval", 0, maxHold, 0,
		"Overrides debounce.minInterval.").Otherwise("debounce.minInterval"),
	setting.Flag("collections.<name>.leading", "Overrides debounce.leading.").Otherwise("debounce.leading"),
	setting.Choice("collections.<name>.unchanged", "Overrides sinks.<name>.unchanged.", "write", "keep").
		Otherwise("sinks.<name>.unchanged"),
	setting.Count("collections.<name>.expectedRate", 0, 1_000_000,
		"The collection's part of queues.expectedRate, if its window is much longer or shorter than other windows.").
		Otherwise("0: the rest"),
	setting.Choice("collections.<name>.enrich.kind",
		"A service that adds fields to documents before they are written (docs/enrich.md), and how lull calls it.", "http",
		"lambda").Otherwise("required"),
	setting.Text("collections.<name>.enrich.url", nil, "", "The address that requests are posted to.").
		Otherwise("required for http"),
	setting.Text("collections.<name>.enrich.functionARN", functionPattern, "the ARN of a Lambda function, or nothing",
		"The function that is invoked, with its alias or version if it has one.").Otherwise("required for lambda"),
	setting.Pointers("collections.<name>.enrich.inputs", "The parts of the document that the service gets.").
		Otherwise("required"),
	setting.Count("collections.<name>.enrich.batch", 1, 1000, "The most documents of one request."),
	setting.Count("collections.<name>.enrich.maxConcurrency", 1, 32,
		"The most requests that one invocation of index sends at once."),
	setting.Duration("collections.<name>.enrich.timeout", 50*time.Millisecond, maxLambdaTimeout, 0,
		"The longest time that one request may take."),
	setting.Text("collections.<name>.enrich.headers.secretARN", arnPattern, "the ARN of a secret, or nothing",
		"A secret with the headers of requests: a JSON object of names and values.").Otherwise("none"),
	setting.Text("collections.<name>.enrich.headers.env", envPattern, "the name of an environment variable, or nothing",
		"The variable that holds such an object, for lull dev.").Otherwise("none"),
	setting.List("collections.<name>.enrich.allowPrivate", privatePattern, "a host name or an IP address, without a port",
		"Hosts that may have addresses outside the public internet, and that lull may call without "+
			"encryption.").Otherwise("none"),
	setting.Text("collections.<name>.enrich.version", enrichVersion, "up to 64 printable characters",
		"Your name for the service's function, such as a model's name. A change makes lull write every document again.").
		Otherwise("none"),
	setting.Duration("collections.<name>.verify.every", time.Hour, maxVerifyEvery, time.Minute,
		"How often lull compares the collection with its source, and repairs the differences (docs/verify.md)."),
	setting.Count("collections.<name>.verify.requests", 1, 1000,
		"The most requests that a verification sends to the source, a second."),
	setting.Count("collections.<name>.verify.maxRemovals", 1, 250,
		"The most documents that one verification removes because the source lacks them. More need an operator."),
	setting.Text("defaultCollection", optCollection, collectionShape+", or nothing",
		"The collection of an event that names no collection, unless its source has another default.").
		Otherwise("the only collection; content if there is none"),
}

func sinkSettings() []setting.Setting {
	kind := setting.Choice("sinks.<name>.kind", "The search engine. Only "+deployable()+" can be deployed.", sink.Kinds()...)
	url := setting.Text("sinks.<name>.url", nil, "", "The engine's address.").Otherwise("required for " + deployable())
	return slices.Concat([]setting.Setting{kind.Otherwise("required"), url}, commonSinkSettings())
}

// indexed lists the kinds of sinks whose index the settings must name.
func indexed() []string {
	return slices.DeleteFunc(sink.Kinds(), func(name string) bool { k, _ := sink.Lookup(name); return !k.NeedsIndex })
}

func commonSinkSettings() []setting.Setting {
	return []setting.Setting{
		setting.Text("sinks.<name>.index", indexPattern,
			"an index name of lower-case letters, digits, _, . and -, with {collection} for the collection's name",
			"The index that documents go to.").Otherwise("required for " + strings.Join(indexed(), ", ") + "; lull-{collection} for the others"),
		setting.Text("sinks.<name>.liveQueue", queuePattern, "the name of a standard queue, or nothing",
			"An existing SQS queue that becomes the sink's live queue.").
			Otherwise("the stack creates STACK-SINK-live"),
		setting.Flag("sinks.<name>.versions",
			"Whether the sink itself refuses a write that is older than its document.").Otherwise(
			"the capability of the kind"),
		setting.Duration("sinks.<name>.applyDelay", 0, maxApplyDelay,
			0, "How long the sink may still apply a request after lull closed the connection; part of the lease.").
			Otherwise("0s with versions, 30s without"),
		setting.Choice("sinks.<name>.unchanged",
			"What lull does if the sink already has the same bytes: write the document, or commit without a write.",
			"write", "keep"),
		setting.Text("sinks.<name>.generation", generationPattern, "up to 64 letters, digits, spaces and . _ : -, or nothing",
			"Change it to have every document written again: lull does not reuse a commit under another text.").
			Otherwise("none"),
		setting.Duration("sinks.<name>.refresh", 0, time.Hour, 0,
			"The refresh interval of the index: a search finds a write this time after it, at the latest.").
			Otherwise("0s if the kind shows a write at once, otherwise not known"),
		setting.Choice("sinks.<name>.auth.kind", "How requests are authenticated.", "none", "basic", "key", "sigv4"),
		setting.Text("sinks.<name>.auth.secretARN", arnPattern, "the ARN of a secret, or nothing",
			"A secret: with the fields username and password for basic; with the field key, or only the key itself, for key.").
			Otherwise("none"),
		setting.Text("sinks.<name>.auth.userEnv", envPattern, "the name of an environment variable, or nothing",
			"The variable that holds the user, for basic without a secret.").
			Otherwise("none"),
		setting.Text("sinks.<name>.auth.passwordEnv", envPattern, "the name of an environment variable, or nothing",
			"The variable that holds the password, for basic without a secret.").
			Otherwise("none"),
		setting.Text("sinks.<name>.auth.keyEnv", envPattern, "the name of an environment variable, or nothing",
			"The variable that holds the key, for key without a secret.").
			Otherwise("none"),
		setting.Text("sinks.<name>.auth.region", regionPattern, "a region such as eu-west-1, or nothing",
			"The region to sign for, for sigv4.").Otherwise("the function's own"),
		setting.Text("sinks.<name>.auth.service", servicePattern, "es, aoss or rds-db, or nothing",
			"The service to sign for, for sigv4.").Otherwise("es; aoss if serverless; rds-db for a database"),
		setting.Count("sinks.<name>.bulkDocuments", 1, 10_000, "The most documents of one bulk request."),
		setting.Bytes("sinks.<name>.bulkBytes", 64*setting.KB, 100*setting.MB,
			"The most bytes of one bulk request; a larger document is sent alone."),
		setting.PerSecond("sinks.<name>.maxDocumentsPerSecond", setting.OncePerSecond/2, 10_000*setting.OncePerSecond,
			"The most documents that are sent to the sink, by all flights of both lanes together.").Otherwise("no ceiling"),
		setting.Count("sinks.<name>.maxConcurrency", 1, accountConcurrency-unreserved,
			"The most invocations of the sink's index function at once: on AWS its reserved concurrency.").
			Otherwise("the account's limit"),
	}
}

var defaultSinkSettings = []setting.Setting{
	setting.Text("defaultSink", optName, nameShape,
		"The sink of the collections that name no sink.").Otherwise("the only sink"),
}
