// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/deploy/names"
)

// Operator is an IAM role for users of the command line. To pass the role to CDK, use the field
// Role.
type Operator struct {
	Role    awsiam.Role
	Purpose string
}

// The names of the roles for operators. Each role allows the calls of the commands in its comment.
// Repairer includes the rights of Reader.
const (
	Publisher = "publisher" // lull publish
	// lull get, status, list, wait, explain, console, dead list, dead show, index check, jobs,
	// replay --dry-run; with publisher: doctor, resync
	Reader = "reader"
	// lull dead redrive, dead drop, cancel, rescue, index repair, pause, resume, reset, replay,
	// forget, backfill, rebuild, object --abort, object --reset
	Repairer = "operator"
)

// newOperators makes the roles that people assume. The own role of a person then needs only the
// right to assume these roles.
func (l *Lull) newOperators() {
	trusted := l.props.Operators
	if trusted == nil {
		trusted = awsiam.NewAccountRootPrincipal()
	}
	l.Operators = make(map[string]Operator)
	for _, o := range []struct {
		name, id, purpose string
		rights            []right
	}{
		{Publisher, "Publisher", "lull: publishes events", l.publisherRights()},
		{
			Reader, "Reader", "lull: reads rows, flights, dead letters, logs and the depth of queues",
			append(l.readerRights(), l.jobs()...),
		},
		{
			Repairer, "Operator", "lull: redrives, drops, cancels and rescues; can read what reader can",
			append(l.readerRights(), l.operatorRights()...),
		},
	} {
		role := newRole(l.Construct, o.id, o.purpose, trusted, o.rights)
		raw[awsiam.CfnRole](role).SetRoleName(
			jsii.String(names.Of(l.props.Config).Role(o.name, *awscdk.Aws_REGION())))
		l.Operators[o.name] = Operator{role, o.purpose}
	}
}

// findQueues allows looking up the URLs of the queues, which every command does first.
func (l *Lull) findQueues(more ...string) right {
	return right{
		sid: "FindQueues", actions: append([]string{"sqs:GetQueueUrl"}, more...),
		resources: append(l.ingest(), l.dead()...),
	}
}

func (l *Lull) publisherRights() []right {
	return append([]right{
		l.findQueues(),
		{sid: "Publish", actions: []string{"sqs:SendMessage"}, resources: l.ingest()},
	}, append(l.key("UseKey", seals, "sqs"), l.askSearchable()...)...)
}

// readerRights returns the rights of Reader. They include reading the bodies of dead letters and
// held messages, because `lull dead show` prints the bodies. Logs contain no bodies.
func (l *Lull) readerRights() []right {
	return append([]right{
		l.findQueues("sqs:GetQueueAttributes"), // to count messages
		l.table("Rows", "dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Scan"),
		l.table("FitTable", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"),
		l.waiting("Waiting"),
		{
			sid: "Objects", actions: []string{"s3:GetObject"},
			resources: l.objects(s3.DeadPrefix, s3.FlightPrefix, s3.SchedulePrefix),
		},
		l.mayList(),
		{sid: "ReadLogs", actions: []string{"logs:FilterLogEvents"}, resources: l.logs()},
		{sid: "ReadMetrics", actions: []string{"cloudwatch:GetMetricData"}, resources: anything}, // lull console --aws
	}, append(l.archive("ReadArchive", "s3:GetObject"), l.key("ReadKey", decrypts, "dynamodb", "s3")...)...)
}

// jobs allows storing the progress of a job, such as `lull index check`. A job writes its own row
// and the row that lists all jobs.
func (l *Lull) jobs() []right {
	r := l.table("Jobs", "dynamodb:UpdateItem")
	r.only = map[string]any{}
	for operator, keys := range jobKeys() {
		r.only[operator] = keys
	}
	return append([]right{r}, l.key("UseTableKey", rewrites, "dynamodb")...)
}

// logs are the log groups of all functions. `lull explain --logs` reads the decisions from them.
func (l *Lull) logs() []string {
	return l.each(func(s *Sink) []string { return every(names.Functions(), s.logARN) })
}

// operatorRights allows changing rows and dead letters, sending messages and starting flights.
func (l *Lull) operatorRights() []right {
	machines := l.each((*Sink).machineARNs)
	return append(append([]right{
		l.table("ChangeRows", "dynamodb:DeleteItem", "dynamodb:UpdateItem"),
		{
			sid: "ChangeDeadLetters", actions: []string{"s3:DeleteObject", "s3:PutObject"},
			resources: l.objects(s3.DeadPrefix),
		},
		{ // lull cancel --scheduled
			sid: "CancelScheduled", actions: []string{"s3:DeleteObject"}, resources: l.objects(s3.SchedulePrefix),
		},
		{sid: "Redrive", actions: []string{"sqs:SendMessage"}, resources: l.ingest()},
		{sid: "Rescue", actions: []string{"states:StartExecution"}, resources: machines},
		{
			sid: "RescueFlights", actions: []string{"s3:DeleteObject", "s3:PutObject"},
			resources: l.objects(s3.FlightPrefix),
		},
	}, l.forget()...), l.keys()...)
}

// archive returns a right on the archive. If the settings have no archive, it returns no right.
func (l *Lull) archive(sid string, actions ...string) []right {
	if l.props.Config.Archive.Keep == 0 {
		return nil
	}
	return []right{{sid: sid, actions: actions, resources: l.objects(s3.ArchivePrefix)}}
}

// forget allows removing a document from the archive, including old versions of its objects.
func (l *Lull) forget() []right {
	rights := l.archive("Forget", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutObject")
	if len(rights) > 0 {
		rights = append(rights, right{
			sid: "ForgetVersions", actions: []string{"s3:ListBucketVersions"}, resources: []string{*l.Bucket.BucketArn()},
		})
	}
	return rights
}

// ingest lists the live and bulk queues of all sinks.
func (l *Lull) ingest() []string {
	return l.each(func(s *Sink) []string { return arns(s.Queues.Live, s.Queues.Bulk) })
}

// dead lists the dead-letter queues of all sinks.
func (l *Lull) dead() []string {
	return l.each(func(s *Sink) []string { return arns(s.Queues.Dead) })
}

// each collects a list from every sink, in a stable order.
func (l *Lull) each(of func(*Sink) []string) []string {
	var all []string
	for _, name := range sinkNames(l.props.Config) {
		all = append(all, of(l.Sinks[name])...)
	}
	return all
}
