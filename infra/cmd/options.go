// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/infra"
	"github.com/lullhq/lull/internal/deploy/release"
	"github.com/lullhq/lull/internal/seam/flight"
)

// option is one setting of the app, as an environment variable or as CDK context (`cdk deploy
// -c config=lull.yaml`).
type option struct{ env, context, otherwise, doc string }

// The options.
var (
	optConfig = option{"LULL_CONFIG", "config", "lull.yaml", "the settings"}
	optDist   = option{
		"LULL_DIST", "dist", "",
		"the folder with the functions' programs; without it, this program's release, or dist in a clone",
	}
	optRelease = option{
		"LULL_RELEASE", "release", "",
		"the release that the functions come from, such as v0.1.0, instead of LULL_DIST",
	}
	optReleaseSum = option{
		"LULL_RELEASE_SUM", "releaseSum", "", "the SHA-256 of its SHA256SUMS, unless this program is of that release",
	}
	optReleaseURL = option{
		"LULL_RELEASE_URL", "releaseURL", "", "the folder of releases: https://HOST/PATH or file:///FOLDER",
	}
	optTemplate = option{
		"LULL_TEMPLATE", "template", "",
		"for a release: writes its template with parameters into this file, and nothing else",
	}
	optArchitecture = option{"LULL_ARCHITECTURE", "architecture", "arm64", "arm64 or x86_64"}
	optTopics       = option{
		"LULL_TOPICS", "topics", "",
		"ARNs of SNS topics to subscribe to; each may begin with SINK/LANE=",
	}
	optBus = option{
		"LULL_EVENT_BUS", "eventBus", "",
		"the name or ARN of an EventBridge bus to take events from",
	}
	optSources = option{
		"LULL_EVENT_SOURCES", "eventSources", "",
		"the sources of events to take from it; required with it",
	}
	optSenders = option{
		"LULL_SENDERS", "senders", "",
		"ARNs of roles or ids of accounts that may send directly; each may begin with SINK/LANE=",
	}
	optBuckets = option{
		"LULL_BUCKETS", "buckets", "",
		"ARNs of S3 buckets that may notify directly; each may begin with SINK/LANE=",
	}
	optStreams = option{
		"LULL_STREAMS", "streams", "",
		"ARNs of DynamoDB or Kinesis streams that EventBridge Pipes reads; each may begin with SINK/LANE=",
	}
	optSinkARNs = option{
		"LULL_SINK_ARNS", "sinkARNs", "",
		"SINK=ARN of sinks with sigv4 whose url does not contain the ARN's parts",
	}
	optSubnets  = option{"LULL_VPC_SUBNETS", "vpcSubnets", "", "subnet ids for index"}
	optGroups   = option{"LULL_VPC_SECURITY_GROUPS", "vpcSecurityGroups", "", "security group ids for index"}
	optKey      = option{"LULL_KMS_KEY", "kmsKey", "", "the ARN of a KMS key that encrypts queues, table and bucket"}
	optReadKeys = option{
		"LULL_READ_KMS_KEYS", "readKMSKeys", "",
		"ARNs of KMS keys of the secrets and payload buckets that are read",
	}
	optOperators = option{
		"LULL_OPERATORS", "operators", "",
		"the ARN of the principal that may assume the command line's roles; otherwise the account decides",
	}
	optAlarmTopic  = option{"LULL_ALARM_TOPIC", "alarmTopic", "", "the ARN of an SNS topic that alarms are sent to"}
	optTicketTopic = option{
		"LULL_TICKET_TOPIC", "ticketTopic", "",
		"the ARN of an SNS topic for alarms that can wait for the next working day; otherwise LULL_ALARM_TOPIC",
	}
	optThresholds = option{
		"LULL_ALARM_THRESHOLDS", "alarmThresholds", "",
		"thresholds of alarms, such as freshness=120000,live-age=1200, in the units of docs/runbook",
	}
	optConcurrency = option{
		"LULL_INDEX_CONCURRENCY", "indexConcurrency", "0",
		"the most invocations of index at once, for each sink; 0 for no limit",
	}
	optWarm = option{
		"LULL_WARM_THROUGHPUT", "warmThroughput", "",
		"READS,WRITES a second that the table accepts from the start, if a new table's limits are too low",
	}
	optFeedParallel = option{
		"LULL_FEED_PARALLEL", "feedParallel", "0",
		"how many batches of one shard the commit feed reads at once, 1 to 10; 0 for one",
	}
	optRollout = option{
		"LULL_ROLLOUT", "rollout", "at-once",
		"how functions get new code: at-once, or step by step with a way back, such as canary-5m or linear-1m",
	}
	optLogLevel = option{"LULL_LOG_LEVEL", "logLevel", "INFO", "DEBUG, INFO, WARN or ERROR"}
	optProtect  = option{
		"LULL_PROTECT", "protect", "false",
		"once a first deploy has succeeded: protects the stack and the table from deletion",
	}
	optStateOnly = option{
		"LULL_STATE_ONLY", "stateOnly", "false",
		"for cdk import: only the resources that an earlier stack left, and import.json next to the template",
	}
	optEphemeral = option{"LULL_EPHEMERAL", "ephemeral", "false", "for tests: everything is deleted with the stack"}
	optPlainHTTP = option{"LULL_PLAIN_HTTP", "plainHTTP", "false", "for emulators: no policies that demand TLS"}
)

var allOptions = []option{
	optConfig, optDist, optRelease, optReleaseSum, optReleaseURL, optTemplate, optArchitecture,
	optTopics, optBus, optSources, optSenders, optBuckets, optStreams, optSinkARNs, optSubnets, optGroups,
	optKey, optReadKeys, optOperators, optAlarmTopic, optTicketTopic, optThresholds, optConcurrency,
	optWarm, optFeedParallel, optRollout, optLogLevel, optProtect, optStateOnly, optEphemeral, optPlainHTTP,
}

// Variables that the CDK command line sets.
const (
	envContext = "CDK_CONTEXT_JSON"
	envAccount = "CDK_DEFAULT_ACCOUNT"
	envRegion  = "CDK_DEFAULT_REGION"
	envOutDir  = "CDK_OUTDIR"
	envNode    = "JSII_NODE" // a variable of jsii
)

// options are the settings of the app, before they become CDK constructs.
type options struct {
	props *infra.Props
	env   *awscdk.Environment

	upstreams                []target
	bus                      string
	sources, subnets, groups []string
	key, operators           string
	topic, ticketTopic       string // of alarms
}

// target is an upstream, and the sink and lane to which it sends.
type target struct {
	option
	sink string
	lane flight.Lane
	arn  string
}

// read takes the options from the environment and from CDK's context; the environment wins. It
// returns the options together with their faults, so that the caller can also look for faults in
// the settings. Without settings there are no options.
func read(lookup func(string) (string, bool)) (*options, error) {
	context, err := contextOf(lookup)
	if err != nil {
		return nil, err
	}
	r := reader{get: func(o option) string {
		said, _ := lookup(o.env)
		inContext, _ := context[o.context].(string)
		return cmp.Or(said, inContext, o.otherwise)
	}}
	c, err := infra.LoadSettings(r.get(optConfig))
	if err != nil {
		return nil, fmt.Errorf("%w (LULL_CONFIG says where the settings are)", err)
	}
	o := &options{
		props: &infra.Props{
			Config: c, AssetDir: r.get(optDist), Architecture: infra.Architecture(r.get(optArchitecture)),
			Release: infra.Release{Version: r.get(optRelease), Sum: r.get(optReleaseSum), URL: r.get(optReleaseURL)},
			SinkARNs: pairs[string](&r, optSinkARNs, "SINK=ARN", func(arn string) (string, error) {
				if !strings.HasPrefix(arn, "arn:") {
					return "", errNotARN
				}
				return arn, nil
			}),
			Thresholds: pairs[string](&r, optThresholds, "ALARM=NUMBER", func(number string) (float64, error) {
				return strconv.ParseFloat(number, 64)
			}),
			IndexConcurrency: r.count(optConcurrency, r.get(optConcurrency)),
			FeedParallel:     r.count(optFeedParallel, r.get(optFeedParallel)),
			Warm:             r.warm(), LogLevel: strings.ToUpper(r.get(optLogLevel)),
			ReadKeyARNs: r.list(optReadKeys), Rollout: infra.Rollout(r.get(optRollout)),
			Protect: r.flag(optProtect), StateOnly: r.flag(optStateOnly),
			Ephemeral: r.flag(optEphemeral), PlainHTTP: r.flag(optPlainHTTP),
		},
		upstreams: slices.Concat(r.targets(optTopics), r.targets(optSenders), r.targets(optBuckets),
			r.targets(optStreams)),
		bus: r.get(optBus), sources: r.list(optSources), key: r.get(optKey), operators: r.get(optOperators),
		topic: r.get(optAlarmTopic), ticketTopic: r.get(optTicketTopic),
		subnets: r.list(optSubnets), groups: r.list(optGroups),
	}
	if o.props.AssetDir == "" && o.props.Release.Version == "" && release.Own() == "" {
		o.props.AssetDir = "dist"
	}
	if len(o.subnets)+len(o.groups) > 0 {
		o.props.Vpc = &infra.Vpc{SubnetIDs: o.subnets, SecurityGroupIDs: o.groups}
	}
	account, _ := lookup(envAccount)
	region, _ := lookup(envRegion)
	if account != "" && region != "" {
		o.env = &awscdk.Environment{Account: &account, Region: &region}
	}
	o.check(&r)
	return o, errors.Join(r.errs...)
}

// check validates those options that Props can only check when they have become CDK constructs.
func (o *options) check(r *reader) {
	if (o.bus == "") != (len(o.sources) == 0) {
		r.fault(optBus, "and "+optSources.env+" belong together: set both")
	}
	for need, is := range map[*option]bool{&optKey: o.key != "", &optStateOnly: o.props.StateOnly} {
		if is && o.env == nil {
			r.fault(*need, "needs an environment: set "+envAccount+" and "+envRegion)
		}
	}
	seen := make(map[target]bool)
	for _, t := range o.upstreams {
		r.refer(t.option, o.env, t.arn)
		t.sink = cmp.Or(t.sink, o.props.Config.DefaultSink)
		if seen[t] {
			r.errs = append(r.errs, fmt.Errorf("%s: is named twice for one queue: name it once", t.arn))
		}
		seen[t] = true
		if _, ok := o.props.Config.Sinks[t.sink]; t.sink != "" && !ok {
			r.errs = append(r.errs, fmt.Errorf("%s: sink %s is not the name of a sink", t.arn, t.sink))
		}
		if t.lane != flight.Live && t.lane != flight.Bulk {
			r.errs = append(r.errs, fmt.Errorf("%s: lane %s is neither live nor bulk", t.arn, t.lane))
		}
	}
	r.refer(optBus, o.env, o.bus)
	r.refer(optKey, o.env, o.key)
	r.refer(optOperators, o.env, o.operators)
	r.refer(optAlarmTopic, o.env, o.topic)
	r.refer(optTicketTopic, o.env, o.ticketTopic)
}

// complete turns the options into CDK constructs.
func (o *options) complete(stack constructs.Construct) {
	p := o.props
	topics := make(map[string]awssns.ITopic)
	for _, t := range o.upstreams {
		u := infra.Upstream{Sink: t.sink, Lane: t.lane}
		switch t.option {
		case optTopics:
			if topics[t.arn] == nil {
				topics[t.arn] = awssns.Topic_FromTopicArn(stack, jsii.String(topicID(t.arn)), jsii.String(t.arn))
			}
			u.Topic = topics[t.arn]
		case optSenders:
			u.Sender = principal(t.arn)
		case optBuckets:
			u.Sender, u.SenderARN = awsiam.NewServicePrincipal(jsii.String("s3.amazonaws.com"), nil), t.arn
		case optStreams:
			u.Pipe = &infra.Pipe{Name: streamID(t.arn), DynamoDB: t.arn}
			if strings.Contains(t.arn, ":kinesis:") {
				u.Pipe.Kinesis, u.Pipe.DynamoDB = t.arn, ""
			}
		}
		p.Upstreams = append(p.Upstreams, u)
	}
	if o.bus != "" {
		p.Upstreams = append(p.Upstreams, infra.Upstream{
			Bus:     busOf(stack, o.bus),
			Pattern: &awsevents.EventPattern{Source: jsii.Strings(o.sources...)},
		})
	}
	if o.key != "" {
		p.Key = awskms.Key_FromKeyArn(stack, jsii.String("Key"), jsii.String(o.key))
	}
	if o.operators != "" {
		p.Operators = awsiam.NewArnPrincipal(jsii.String(o.operators))
	}
	if o.topic != "" {
		p.AlarmTopic = awssns.Topic_FromTopicArn(stack, jsii.String("AlarmTopic"), jsii.String(o.topic))
	}
	if o.ticketTopic != "" {
		p.TicketTopic = awssns.Topic_FromTopicArn(stack, jsii.String("TicketTopic"), jsii.String(o.ticketTopic))
	}
}

// topicID returns a topic's id in the stack, which is also a part of the ids of its subscriptions.
// The id depends on the ARN, and not on the position in the list. If another topic got the same id,
// the old subscription would be lost.
func topicID(arn string) string {
	sum := sha256.Sum256([]byte(arn))
	return "Topic" + hex.EncodeToString(sum[:6])
}

// streamID returns the name of a stream's pipe, which alarms of the pipe show. It is the beginning
// of the table's or stream's name, and a hash of the whole ARN.
func streamID(arn string) string {
	_, name, _ := strings.Cut(arn, "/")
	name, _, _ = strings.Cut(name, "/")
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '.' {
			return '-'
		}
		return r
	}, strings.ToLower(name))
	return cmp.Or(strings.TrimLeft(name[:min(len(name), 13)], "-"), "stream") + "-" + topicID(arn)[len("Topic"):][:6]
}

func busOf(stack constructs.Construct, bus string) awsevents.IEventBus {
	if strings.HasPrefix(bus, "arn:") {
		return awsevents.EventBus_FromEventBusArn(stack, jsii.String("Bus"), jsii.String(bus))
	}
	return awsevents.EventBus_FromEventBusName(stack, jsii.String("Bus"), jsii.String(bus))
}

func principal(who string) awsiam.IPrincipal {
	if strings.HasPrefix(who, "arn:") {
		return awsiam.NewArnPrincipal(jsii.String(who))
	}
	return awsiam.NewAccountPrincipal(who)
}

func usage(w io.Writer) {
	_, _ = fmt.Fprintln(w,
		"Synthesises the CloudFormation template of a lull stack into CDK_OUTDIR (otherwise cdk.out).\n\nIt takes no "+
			"arguments, but these variables, or the same as CDK context:")
	for _, o := range allOptions {
		otherwise := ""
		if o.otherwise != "" {
			otherwise = " (" + o.otherwise + ")"
		}
		_, _ = fmt.Fprintf(w, "  %-26s %-20s %s%s\n", o.env, o.context, o.doc, otherwise)
	}
}
