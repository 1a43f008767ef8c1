// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"slices"
	"strings"
	"time"

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

// work is a kind of scheduled work of the function job.
type work struct {
	name   string
	says   string
	every  time.Duration // whole minutes; 0 if the settings do not ask for the work
	rights func(*Lull) []right
}

// works lists the works that the settings ask for. If it is empty, the stack has no function job.
func works(c *config.Config) []work {
	return slices.DeleteFunc([]work{
		{lambda.WorkCanary, "lull: sends the canary's document through each sink", c.Canary.Every, (*Lull).canaryRights},
	}, func(w work) bool { return w.every == 0 })
}

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
	for _, w := range works(p.Config) {
		target := awseventstargets.NewLambdaFunction(alias, &awseventstargets.LambdaFunctionProps{
			Event:         awsevents.RuleTargetInput_FromObject(map[string]any{"work": w.name}),
			RetryAttempts: jsii.Number(0), MaxEventAge: seconds(lambda.JobTimeout),
		})
		awsevents.NewRule(l.Construct, jsii.String("JobRule-"+w.name), &awsevents.RuleProps{
			RuleName: jsii.String(n.JobRule(w.name)), Description: jsii.String(w.says),
			Schedule: awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(w.every.Minutes()))),
			Targets:  &[]awsevents.IRuleTarget{target},
		})
	}
}

// jobEnvironment returns the environment of job. Its metrics without a sink count for the default
// sink.
func (l *Lull) jobEnvironment() *map[string]*string {
	live := every(sinkNames(l.props.Config), func(name string) string { return *l.Sinks[name].Queues.Live.QueueUrl() })
	return &map[string]*string{
		lambda.EnvSink:       jsii.String(l.props.Config.DefaultSink),
		lambda.EnvLogLevel:   jsii.String(l.props.logLevel()),
		lambda.EnvTable:      l.Table.TableName(),
		lambda.EnvLiveQueues: jsii.String(strings.Join(live, ",")),
	}
}

// jobRights allows job to keep the state of its jobs, to read from the sinks, and what its works
// need.
func (l *Lull) jobRights(logName string) []right {
	all := l.jobs()
	for _, w := range works(l.props.Config) {
		all = append(all, w.rights(l)...)
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
	return []right{rows, {sid: "Publish", actions: []string{"sqs:SendMessage"}, resources: live}}
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
