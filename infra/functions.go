// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
)

// Deployed is a function and the alias by which lull calls the function. To pass the function to
// CDK, use the field Function.
type Deployed struct {
	Function awslambda.Function
	Alias    awslambda.Alias
	Log      awslogs.LogGroup

	role awsiam.Role
}

// pruneTimeout is longer than the 40 s that a run of prune may take. It is also longer than the
// lease that prevents two runs at the same time.
const pruneTimeout = time.Minute

// deadVisibility is six times the time-out of dlq, as AWS advises. If the document of a dead letter
// is leased, dlq extends the visibility.
const deadVisibility = 6 * lambda.DLQTimeout

// purposes describes each function for people who see it in the AWS console.
var purposes = map[names.Function]string{
	names.Receive: "lull: admits events and holds their messages in a flight",
	names.Index:   "lull: a turn of a flight: claims, writes to the sink, commits, deletes messages",
	names.Prune:   "lull: collects old rows, enqueues scheduled events, finds orphaned flights",
	names.DLQ:     "lull: judges what reaches the dead-letter queue and parks or returns it",
}

func (s *Sink) timeout(f names.Function) time.Duration {
	c := s.lull.props.Config
	switch f {
	case names.Receive:
		return c.Receive.Timeout
	case names.Index:
		return c.Index.Timeout
	case names.Prune:
		return pruneTimeout
	default:
		return lambda.DLQTimeout
	}
}

// newFunction makes one function with its role, log group, version and alias.
func (s *Sink) newFunction(f names.Function, code awslambda.Code) *Deployed {
	p, id := s.lull.props, title(string(f))
	log := awslogs.NewLogGroup(s.scope, jsii.String(id+"Log"), &awslogs.LogGroupProps{
		LogGroupName:  jsii.String(s.names().FunctionLog(s.Name, f)),
		Retention:     p.logRetention(),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY, // logs expire anyway, and a new stack needs the name
	})
	role := newRole(s.scope, id+"Role", purposes[f], awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"),
		nil), s.rights(f))
	fn := awslambda.NewFunction(s.scope, jsii.String(id), &awslambda.FunctionProps{
		FunctionName: jsii.String(s.names().Function(s.Name, f)),
		Description:  jsii.String(purposes[f]),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: p.lambdaArchitecture(),
		Handler:      jsii.String(release.Program),
		Code:         code,
		Timeout:      seconds(s.timeout(f)),
		MemorySize:   jsii.Number(float64(f.MegabytesIn(p.Config))),
		Role:         role,
		LogGroup:     log,
		// Of Lambda's own log lines, only lines about problems are kept. For the lines of a
		// function, Lambda's filter treats metrics as lines at INFO, so the filter must not drop
		// INFO. The functions filter their own lines by level.
		LoggingFormat:         awslambda.LoggingFormat_JSON,
		SystemLogLevelV2:      awslambda.SystemLogLevel_WARN,
		ApplicationLogLevelV2: p.applicationLevel(),
		Environment:           s.environment(f),
		// A redriven or scheduled event passes through SQS and this function many times. That is
		// not an endless loop, but without this setting Lambda would stop it at the 16th time.
		RecursiveLoop:         awslambda.RecursiveLoop_ALLOW,
		CurrentVersionOptions: &awslambda.VersionOptions{RemovalPolicy: p.versionRemoval()},
	})
	if f == names.Index {
		p.Vpc.place(fn)
	}
	if n := cmp.Or(config.IndexConcurrency(p.Config.Sinks[s.Name]), p.IndexConcurrency); f == names.Index && n > 0 {
		raw[awslambda.CfnFunction](fn).SetReservedConcurrentExecutions(jsii.Number(float64(n)))
	}
	return &Deployed{Function: fn, Log: log, role: role, Alias: awslambda.NewAlias(s.scope, jsii.String(id+"Alias"),
		&awslambda.AliasProps{
			AliasName: jsii.String(names.Alias),
			Version:   fn.CurrentVersion(),
		})}
}

// environment returns what a function needs in addition to its settings: names and ARNs, but never
// a secret.
func (s *Sink) environment(f names.Function) *map[string]*string {
	env := map[string]*string{
		lambda.EnvSink:      jsii.String(s.Name),
		lambda.EnvLogLevel:  jsii.String(s.lull.props.logLevel()),
		lambda.EnvTable:     s.lull.Table.TableName(),
		lambda.EnvBucket:    s.lull.Bucket.BucketName(),
		lambda.EnvLiveQueue: s.Queues.Live.QueueUrl(),
		lambda.EnvBulkQueue: s.Queues.Bulk.QueueUrl(),
	}
	if s.lull.props.template != nil {
		env[lambda.EnvSettings] = jsii.String(forSettings)
	}
	if f != names.Prune {
		env[lambda.EnvDeadQueue] = s.Queues.Dead.QueueUrl()
	}
	if f != names.DLQ {
		env[lambda.EnvExpress] = jsii.String(s.machineARN(config.FlightExpress))
		env[lambda.EnvStandard] = jsii.String(s.machineARN(config.FlightStandard))
	}
	return &env
}

// tellSenders gives receive and dlq the ids of the principals that send in lull's name, in the form
// that SQS reports (ADR 0057). These principals are the roles of the sink's functions, the
// operator's role, and the account. The id of the account stands for the root user, who has every
// right anyway. Emulators report the account as the sender of every message.
func (s *Sink) tellSenders() {
	ids := every(names.Functions(), func(f names.Function) string { return *s.Functions[f].role.RoleId() })
	ids = append(ids, *s.lull.Operators[Repairer].Role.RoleId(), *awscdk.Aws_ACCOUNT_ID())
	for _, f := range []names.Function{names.Receive, names.DLQ} {
		s.Functions[f].Function.AddEnvironment(jsii.String(lambda.EnvSenders), jsii.String(strings.Join(ids, ",")), nil)
	}
}

// place puts a function into the VPC, if there is one. Only index and job call the sink. All other
// functions only call AWS services, and need no VPC.
func (v *Vpc) place(fn awslambda.Function) {
	if v == nil {
		return
	}
	raw[awslambda.CfnFunction](fn).SetVpcConfig(&awslambda.CfnFunction_VpcConfigProperty{
		SubnetIds:        jsii.Strings(v.SubnetIDs...),
		SecurityGroupIds: jsii.Strings(v.SecurityGroupIDs...),
	})
}

// versionRemoval returns what a deploy does with the version before it.
func (p *Props) versionRemoval() awscdk.RemovalPolicy {
	if p.Rollout.shifts() {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}

func (p *Props) logLevel() string { return cmp.Or(p.LogLevel, "INFO") }

func (p *Props) applicationLevel() awslambda.ApplicationLogLevel {
	if p.logLevel() == "DEBUG" {
		return awslambda.ApplicationLogLevel_DEBUG
	}
	return awslambda.ApplicationLogLevel_INFO
}

func (p *Props) lambdaArchitecture() awslambda.Architecture {
	if p.architecture() == X86_64 {
		return awslambda.Architecture_X86_64()
	}
	return awslambda.Architecture_ARM_64()
}

func (p *Props) logRetention() awslogs.RetentionDays {
	return cmp.Or(p.LogRetention, awslogs.RetentionDays_ONE_MONTH)
}
