package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/names"
)

// Operator is a role of the command line.
type Operator struct {
	awsiam.Role
	Purpose string
}

// The operators' roles. Each has what its commands call; operator can do what reader can.
const (
	Publisher = "publisher" // lull publish, resync
	Reader    = "reader"    // lull get, status, wait, explain, dead list, dead show; with publisher: doctor
	Repairer  = "operator"  // lull dead redrive, dead drop, cancel, rescue
)

// newOperators are the roles that people assume, so that a person's own role needs nothing but to
// assume them.
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
		{Reader, "Reader", "lull: reads rows, flights, dead letters, logs and the depth of queues", l.readerRights()},
		{
			Repairer, "Operator", "lull: redrives, drops, cancels and rescues; can read what reader can",
			append(l.readerRights(), l.operatorRights()...),
		},
	} {
		l.Operators[o.name] = Operator{newRole(l.Construct, o.id, o.purpose, trusted, o.rights), o.purpose}
	}
	for _, name := range []string{Publisher, Reader, Repairer} {
		raw[awsiam.CfnRole](l.Operators[name]).SetRoleName(
			jsii.String(names.Of(l.props.Config).Role(name, *awscdk.Aws_REGION())))
	}
}

// findQueues is what every command does first.
func (l *Lull) findQueues() right {
	return right{sid: "FindQueues", actions: []string{"sqs:GetQueueUrl"}, resources: append(l.ingest(), l.dead()...)}
}

func (l *Lull) publisherRights() []right {
	return append([]right{
		l.findQueues(),
		{sid: "Publish", actions: []string{"sqs:SendMessage"}, resources: l.ingest()},
	}, l.key()...)
}

// readerRights include dead letters' and held messages' bodies: `lull dead show` prints them. Logs
// hold none.
func (l *Lull) readerRights() []right {
	return append([]right{
		l.findQueues(),
		{sid: "CountMessages", actions: []string{"sqs:GetQueueAttributes"}, resources: append(l.ingest(), l.dead()...)},
		l.table("Rows", "BatchGetItem", "GetItem"),
		l.waiting("Waiting"),
		{
			sid: "Objects", actions: []string{"s3:GetObject"},
			resources: l.objects(s3.DeadPrefix, s3.FlightPrefix, s3.SchedulePrefix),
		},
		l.mayList(),
		{sid: "ReadLogs", actions: []string{"logs:FilterLogEvents"}, resources: l.logs()},
	}, l.key()...)
}

// logs are the log groups of all functions: `lull explain --logs` reads decisions there.
func (l *Lull) logs() []string {
	var all []string
	for _, sink := range sinkNames(l.props.Config) {
		for _, f := range names.Functions() {
			all = append(all, arn("logs", "log-group:"+names.Of(l.props.Config).FunctionLog(sink, f)+":*"))
		}
	}
	return all
}

// operatorRights change rows and letters, send messages and start flights.
func (l *Lull) operatorRights() []right {
	var machines []string
	for _, name := range sinkNames(l.props.Config) {
		machines = append(machines, l.Sinks[name].machineARN())
	}
	return []right{
		l.table("ChangeRows", "DeleteItem", "UpdateItem"),
		{
			sid: "ChangeLetters", actions: []string{"s3:DeleteObject", "s3:PutObject"},
			resources: l.objects(s3.DeadPrefix),
		},
		{sid: "Redrive", actions: []string{"sqs:SendMessage"}, resources: l.ingest()},
		{sid: "Rescue", actions: []string{"states:StartExecution"}, resources: machines},
		{
			sid: "RescueFlights", actions: []string{"s3:DeleteObject", "s3:PutObject"},
			resources: l.objects(s3.FlightPrefix),
		},
	}
}

// ingest are the live and bulk queues of all sinks.
func (l *Lull) ingest() []string {
	var all []string
	for _, name := range sinkNames(l.props.Config) {
		all = append(all, arns(l.Sinks[name].Queues.Live, l.Sinks[name].Queues.Bulk)...)
	}
	return all
}

// dead are the dead-letter queues of all sinks.
func (l *Lull) dead() []string {
	var all []string
	for _, name := range sinkNames(l.props.Config) {
		all = append(all, arns(l.Sinks[name].Queues.Dead)...)
	}
	return all
}
