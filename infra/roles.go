// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"

	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
)

// consume lists the calls that an event source mapping makes in the function's name.
var consume = []string{"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}

// rights returns the rights of a sink's function. They allow exactly the calls of the function's
// code.
func (s *Sink) rights(f names.Function) []right {
	var all []right
	switch f {
	case names.Receive:
		all = s.receiveRights()
	case names.Index:
		all = s.indexRights()
	case names.Prune:
		all = s.pruneRights()
	case names.DLQ:
		all = s.dlqRights()
	}
	all = append(all, s.lull.keys()...)
	return append(all, right{
		sid: "Log", actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"},
		resources: []string{s.logARN(f)},
	})
}

// logARN returns the ARN of a function's log group and all its streams.
func (s *Sink) logARN(f names.Function) string {
	return arn("logs", "log-group:"+s.names().FunctionLog(s.Name, f)+":*")
}

// receiveRights allows receive to read and admit rows, write manifests and scheduled events, start
// flights, and send dead letters. receive also sends an event again with a delay if it is due
// within minutes. While the table is unreachable, it extends the visibility of messages.
func (s *Sink) receiveRights() []right {
	return append([]right{
		{
			sid: "Consume", actions: append([]string{"sqs:ChangeMessageVisibility", "sqs:SendMessage"}, consume...),
			resources: arns(s.Queues.Live, s.Queues.Bulk),
		},
		{sid: "SendDeadLetters", actions: []string{"sqs:SendMessage"}, resources: arns(s.Queues.Dead)},
		s.lull.table("Rows", "dynamodb:BatchGetItem"), s.writeRows(names.Receive),
		{
			sid: "PutFlights", actions: []string{"s3:PutObject"},
			resources: s.lull.objects(s3.FlightPrefix, s3.SchedulePrefix),
		},
		s.startFlights(),
	}, append(s.lull.archive("Archive", "s3:PutObject"), s.references()...)...)
}

// indexRights allows index to read, claim and commit rows, and to read, continue and delete
// flights. It also allows index to extend and delete messages, and to write to the sink.
func (s *Sink) indexRights() []right {
	return slices.Concat([]right{
		{
			sid: "HoldAndDelete", actions: []string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage"},
			resources: arns(s.Queues.Live, s.Queues.Bulk),
		},
		{sid: "SendDeadLetters", actions: []string{"sqs:SendMessage"}, resources: arns(s.Queues.Dead)},
		s.lull.table("Rows", "dynamodb:BatchGetItem"), s.writeRows(names.Index),
		{
			sid: "Flights", actions: []string{"s3:DeleteObject", "s3:GetObject"},
			resources: s.lull.objects(s3.FlightPrefix),
		},
		{
			sid: "ContinueFlights", actions: []string{"s3:PutObject"},
			resources: s.lull.objects(s3.FlightPrefix + "*/next-"),
		},
		s.lull.mayList(),
		s.startFlights(),
	}, s.references(), s.fetchRights(sortedKeys(s.lull.props.Config.Sources)), s.writeRights(),
		s.enrichRights(), s.headerRights(sortedKeys(s.lull.props.Config.Sources)), s.lull.props.Vpc.rights())
}

// pruneRights allows prune to scan rows and delete old ones, to enqueue and redrive events, and to
// park events that cannot be enqueued. It also allows prune to start index for a comparison with
// the sink. No other function may scan. prune may change the rows of all sinks: a single prune
// scans the rows of every sink, and of sinks that the settings no longer have.
func (s *Sink) pruneRights() []right {
	return []right{
		s.lull.table("Rows", "dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:Scan",
			"dynamodb:UpdateItem"),
		s.lull.waiting("Waiting"),
		s.lull.mayList(),
		{
			sid: "Collect", actions: []string{"s3:DeleteObject", "s3:GetObject"},
			resources: s.lull.objects(s3.DeadPrefix, s3.FlightPrefix, s3.SchedulePrefix),
		},
		{sid: "Park", actions: []string{"s3:PutObject"}, resources: s.lull.objects(s3.DeadPrefix)},
		{sid: "Enqueue", actions: []string{"sqs:SendMessage"}, resources: arns(s.Queues.Live, s.Queues.Bulk)},
		s.startFlights(),
	}
}

// dlqRights allows dlq to read rows and to park dead letters. It also allows dlq to send a message
// that lull has not tried yet to its queue.
func (s *Sink) dlqRights() []right {
	return append([]right{
		{
			sid: "Consume", actions: append([]string{"sqs:ChangeMessageVisibility"}, consume...),
			resources: arns(s.Queues.Dead),
		},
		{sid: "Return", actions: []string{"sqs:SendMessage"}, resources: arns(s.Queues.Live, s.Queues.Bulk)},
		s.lull.table("Rows", "dynamodb:BatchGetItem", "dynamodb:GetItem"), s.writeRows(names.DLQ),
		{sid: "Park", actions: []string{"s3:PutObject"}, resources: s.lull.objects(s3.DeadPrefix)},
	}, s.references()...)
}

// startFlights returns the right to start flights. It names the state machines as text. A reference
// would be circular, because the state machines refer to the function.
func (s *Sink) startFlights() right {
	return right{sid: "StartFlights", actions: []string{"states:StartExecution"}, resources: s.machineARNs()}
}

// references returns the rights to read the places in S3 that messages may refer to. It also allows
// listing the buckets, because only then does S3 distinguish a missing object from a denied
// request. For a missing object, the event becomes a dead letter; after a denied request, it waits
// for an operator.
func (s *Sink) references() []right {
	return s.loadRights("References", s.lull.props.Config.Payload.Allow)
}

// loadRights allows reading objects, and seeing that an object does not exist.
func (s *Sink) loadRights(what string, places []config.BucketPrefix) []right {
	if len(places) == 0 {
		return nil
	}
	var objects, buckets []string
	for _, place := range places {
		bucket := "arn:" + *awscdk.Aws_PARTITION() + ":s3:::" + place.Bucket
		objects = append(objects, bucket+"/"+place.Prefix+"*")
		if !slices.Contains(buckets, bucket) {
			buckets = append(buckets, bucket)
		}
	}
	return []right{
		{sid: "Load" + what, actions: []string{"s3:GetObject"}, resources: objects},
		{sid: "Miss" + what, actions: []string{"s3:ListBucket"}, resources: buckets},
		s.otherKeys("Read"+what, "s3"),
	}
}

// fetchRights allows a function to fetch the documents of these sources from buckets.
func (s *Sink) fetchRights(sources []string) []right {
	var places []config.BucketPrefix
	for _, name := range sources {
		if f := s.lull.props.Config.Sources[name].Fetch; f != nil {
			if bucket, prefix, ok := f.Bucket(); ok {
				places = append(places, config.BucketPrefix{Bucket: bucket, Prefix: prefix})
			}
		}
	}
	return s.loadRights("Fetched", places)
}

// headerRights allows a function to read the headers of requests to these sources and to the sink's
// enrichers. Both are in one statement, because IAM refuses a policy that has two statements with
// the same name.
func (s *Sink) headerRights(sources []string) []right {
	c := s.lull.props.Config
	var secrets []string
	for _, name := range sources {
		if from := c.Sources[name]; from.Fetch != nil {
			secrets = append(secrets, from.Fetch.Headers.SecretARN)
		}
	}
	for _, name := range c.Enriched(s.Name) {
		secrets = append(secrets, c.Collections[string(name)].Enrich.Headers.SecretARN)
	}
	slices.Sort(secrets)
	return s.secretRights("Headers", notEmpty(slices.Compact(secrets)))
}

// secretRights allows reading secrets.
func (s *Sink) secretRights(what string, secrets []string) []right {
	if len(secrets) == 0 {
		return nil
	}
	return []right{
		{sid: "Read" + what, actions: []string{"secretsmanager:GetSecretValue"}, resources: secrets},
		s.otherKeys("Decrypt"+what, "secretsmanager"),
	}
}

// writeRights allows index to write to its sink: to read the credentials, or to call the sink if
// requests are signed.
func (s *Sink) writeRights() []right {
	settings, arn := s.lull.props.Config.Sinks[s.Name], s.lull.props.sinkARN(s.Name)
	switch {
	case settings.Auth.SecretARN != "":
		return s.secretRights("Password", []string{settings.Auth.SecretARN})
	case settings.Auth.Kind != config.AuthSigV4:
		return nil
	case settings.Auth.Service == "rds-db":
		return []right{{sid: "WriteSink", actions: []string{"rds-db:connect"}, resources: []string{arn}}}
	case settings.Auth.Service == "aoss":
		return []right{{sid: "WriteSink", actions: []string{"aoss:APIAccessAll"}, resources: []string{arn}}}
	}
	// The first statement is for the bulk request, and for reading a document that was written
	// before. From that document, index learns whether the sink or the document causes a refusal.
	// The second statement is for the request that probes a sink after an outage, and for resolving
	// the name of an index.
	return []right{
		{
			sid: "WriteSink", actions: []string{"es:ESHttpPost"},
			resources: []string{arn + "/_bulk", arn + "/_mget", arn + "/*/_search"},
		},
		{
			sid: "ProbeSink", actions: []string{"es:ESHttpGet"},
			resources: []string{arn, arn + "/", arn + "/_resolve/index/*"},
		},
	}
}

// enrichRights allows index to call those enrichers of its collections that are functions.
func (s *Sink) enrichRights() []right {
	var functions []string
	for _, c := range s.lull.props.Config.Enriched(s.Name) {
		if arn := s.lull.props.Config.Collections[string(c)].Enrich.FunctionARN; arn != "" {
			functions = append(functions, arn)
		}
	}
	return []right{{sid: "AskEnrichers", actions: []string{"lambda:InvokeFunction"}, resources: functions}}
}

// otherKeys returns the right to read data that is encrypted with the keys in ReadKeyARNs.
func (s *Sink) otherKeys(sid, service string) right {
	return through(sid, decrypts, s.lull.props.ReadKeyARNs, service)
}

// rights returns the rights on the network interface of a function in a VPC. Lambda manages the
// interface in the function's name.
func (v *Vpc) rights() []right {
	if v == nil {
		return nil
	}
	return []right{{
		sid: "NetworkInterface", actions: []string{
			"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
			"ec2:DescribeNetworkInterfaces",
			"ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
		}, resources: anything,
	}}
}

// notEmpty removes the empty texts.
func notEmpty(texts []string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

func arns(queues ...awssqs.IQueue) []string {
	return every(queues, func(q awssqs.IQueue) string { return *q.QueueArn() })
}
