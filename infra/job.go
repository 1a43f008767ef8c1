// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
)

// works are the works of the function job, each with the description of its rule and its rights.
var works = map[config.Work]struct {
	says   string
	rights func(*Lull) []right
}{
	config.WorkCanary: {"lull: sends the canary's document through the sinks", (*Lull).canaryRights},
	config.WorkVerify: {"lull: compares collections with their sources", (*Lull).verifyRights},
}

// works returns the works that the settings ask for, in a stable order. If it is empty, the stack
// has no function job.
func (p *Props) works() []config.Work { return slices.Sorted(maps.Keys(p.Config.Works())) }

// jobResources is the number of resources of the function job, and workResources of each work: a
// rule and its permission.
const (
	jobResources  = 7 // function, version, alias, role, log group, the settings of its invocations, alarm
	workResources = 2
)

// newJob makes the function job and the rules that start its works.
func (l *Lull) newJob(code awslambda.Code) {
	p, n := l.props, names.Of(l.props.Config)
	const purpose = "lull: does operators' work by a schedule"
	logName := "/aws/lambda/" + n.Job()
	log := awslogs.NewLogGroup(l.Construct, jsii.String("JobLog"), &awslogs.LogGroupProps{
		LogGroupName: &logName, Retention: p.logRetention(), RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	role := newRole(l.Construct, "JobRole", purpose, awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"),
		nil), l.jobRights(logName))
	fn := awslambda.NewFunction(l.Construct, jsii.String("Job"), &awslambda.FunctionProps{
		FunctionName: jsii.String(n.Job()), Description: jsii.String(purpose),
		Runtime: awslambda.Runtime_PROVIDED_AL2023(), Architecture: p.lambdaArchitecture(),
		Handler: jsii.String(release.Program), Code: code, Role: role, LogGroup: log,
		Timeout: seconds(lambda.JobTimeout), MemorySize: jsii.Number(float64(names.Job.MegabytesIn(p.Config))),
		LoggingFormat: awslambda.LoggingFormat_JSON, SystemLogLevelV2: awslambda.SystemLogLevel_WARN,
		ApplicationLogLevelV2: p.applicationLevel(), Environment: l.jobEnvironment(),
		CurrentVersionOptions: &awslambda.VersionOptions{RemovalPolicy: awscdk.RemovalPolicy_DESTROY},
	})
	p.Vpc.place(fn) // it reads from the sinks
	alias := awslambda.NewAlias(l.Construct, jsii.String("JobAlias"), &awslambda.AliasProps{
		AliasName: jsii.String(names.Alias), Version: fn.CurrentVersion(),
	})
	// A run that fails is not retried: the next one follows. A lease prevents that two runs do the
	// same work.
	alias.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
		RetryAttempts: jsii.Number(0), MaxEventAge: seconds(lambda.JobTimeout),
	})
	for _, w := range p.works() {
		target := awseventstargets.NewLambdaFunction(alias, &awseventstargets.LambdaFunctionProps{
			Event:         awsevents.RuleTargetInput_FromObject(map[string]any{"work": string(w)}),
			RetryAttempts: jsii.Number(0), MaxEventAge: seconds(lambda.JobTimeout),
		})
		awsevents.NewRule(l.Construct, jsii.String("JobRule-"+string(w)), &awsevents.RuleProps{
			RuleName: jsii.String(n.JobRule(string(w))), Description: jsii.String(works[w].says),
			Schedule: awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(p.Config.Works()[w].Minutes()))),
			Targets:  &[]awsevents.IRuleTarget{target},
		})
	}
}

// jobEnvironment returns the environment of job. Its metrics without a sink count for the default
// sink.
func (l *Lull) jobEnvironment() *map[string]*string {
	live := every(sinkNames(l.props.Config), func(name string) string { return *l.Sinks[name].Queues.Live.QueueUrl() })
	bulk := every(sinkNames(l.props.Config), func(name string) string { return *l.Sinks[name].Queues.Bulk.QueueUrl() })
	return &map[string]*string{
		lambda.EnvSink:       jsii.String(l.props.Config.DefaultSink),
		lambda.EnvLogLevel:   jsii.String(l.props.logLevel()),
		lambda.EnvTable:      l.Table.TableName(),
		lambda.EnvBucket:     l.Bucket.BucketName(),
		lambda.EnvLiveQueues: jsii.String(strings.Join(live, ",")),
		lambda.EnvBulkQueues: jsii.String(strings.Join(bulk, ",")),
	}
}

// jobRights allows job to keep the state of its jobs, to read from the sinks, and what its works
// need.
func (l *Lull) jobRights(logName string) []right {
	all := l.jobs()
	for _, w := range l.props.works() {
		all = append(all, works[w].rights(l)...)
	}
	all = append(all, l.readSinks()...)
	all = append(all, l.key("UseKey", seals, "dynamodb", "sqs")...)
	all = append(all, l.props.Vpc.rights()...)
	return append(all, right{
		sid: "Log", actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"},
		resources: []string{arn("logs", "log-group:"+logName+":*")},
	})
}

// canaryRights allows job to read the rows of the canary's document, of jobs and of the sinks'
// health, and to publish to the live queues.
func (l *Lull) canaryRights() []right {
	rows := l.table("CanaryRows", "dynamodb:BatchGetItem")
	rows.only = map[string]any{"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": canaryKeys()}}
	live := l.each(func(s *Sink) []string { return arns(s.Queues.Live) })
	return []right{rows, {sid: "PublishCanary", actions: []string{"sqs:SendMessage"}, resources: live}}
}

// verifyRights allows job to compare the rows of verified collections with their sinks and their
// source, and to repair what differs: to touch documents by the bulk queues, and to write what only
// a direct write can repair.
func (l *Lull) verifyRights() []right {
	var queues, domains, resolved, keys []string
	for _, name := range l.verified() {
		s := l.Sinks[name]
		queues = append(queues, arns(s.Queues.Bulk)...)
		keys = append(keys, s.documents()...)
		if auth := l.props.Config.Sinks[name].Auth; auth.Kind == config.AuthSigV4 && auth.Service == "es" {
			arn := l.props.sinkARN(name)
			domains = append(domains, arn+"/_bulk", arn+"/*/_search", arn+"/*/_refresh")
			resolved = append(resolved, arn, arn+"/", arn+"/_resolve/index/*")
		}
	}
	repair := l.table("RepairRows", "dynamodb:UpdateItem")
	repair.only = map[string]any{"ForAllValues:StringLike": map[string]any{
		"dynamodb:LeadingKeys": append(keys, healthRows+"*"),
	}}
	none := &Sink{lull: l} // the rights of no sink: only those on sources
	asked := verifiedSources(l.props.Config)
	return slices.Concat([]right{
		l.table("VerifyRows", "dynamodb:BatchGetItem", "dynamodb:Scan"), repair,
		{sid: "Touch", actions: []string{"sqs:SendMessage"}, resources: queues},
		{sid: "RepairSink", actions: []string{"es:ESHttpPost"}, resources: domains},
		{sid: "ResolveSink", actions: []string{"es:ESHttpGet"}, resources: resolved},
	}, none.fetchRights(asked), none.headerRights(asked))
}

// verifiedSources returns the names of the sources that verifications ask, sorted.
func verifiedSources(c *config.Config) (names []string) {
	for _, collection := range c.Verified() {
		names = append(names, c.Writers(collection)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// verified returns the names of the sinks of the collections that are verified, sorted.
func (l *Lull) verified() []string {
	return slices.DeleteFunc(sinkNames(l.props.Config), func(sink string) bool {
		return !slices.ContainsFunc(l.props.Config.Verified(), func(collection string) bool {
			return slices.Contains(l.props.Config.SinksFor(collection), sink)
		})
	})
}

// readSinks allows reading documents back from the sinks: reading their credentials, or calling the
// sinks that accept signed requests.
func (l *Lull) readSinks() []right {
	var secrets, domains, collections, databases []string
	for _, name := range sinkNames(l.props.Config) {
		auth := l.props.Config.Sinks[name].Auth
		switch {
		case auth.SecretARN != "":
			secrets = append(secrets, auth.SecretARN)
		case auth.Kind != config.AuthSigV4:
		case auth.Service == "rds-db":
			databases = append(databases, l.props.sinkARN(name))
		case auth.Service == "aoss":
			collections = append(collections, l.props.sinkARN(name))
		default:
			domains = append(domains, l.props.sinkARN(name)+"/_mget")
		}
	}
	slices.Sort(secrets)
	return append((&Sink{lull: l}).secretRights("Password", slices.Compact(secrets)),
		right{sid: "ReadSink", actions: []string{"es:ESHttpPost"}, resources: domains},
		right{sid: "ReadCollection", actions: []string{"aoss:APIAccessAll"}, resources: collections},
		right{sid: "ReadDatabase", actions: []string{"rds-db:connect"}, resources: databases},
	)
}
