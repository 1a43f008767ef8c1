// Package reach defines which ARNs and ids a stack accepts: their form, and the regions and
// accounts they may name. CloudFormation would find a wrong ARN half an hour later, or never: a
// policy that names another service's resource is a valid policy.
//
// A Kind describes the value of one option, one field of infra.Props or one setting. It says what
// to do about an ARN that AWS refuses: of another region or account, or of a FIFO topic. An ARN of
// another partition never works.
package reach

import (
	"regexp"
	"strings"
)

// Place is where a stack is. The zero value means anywhere: then only values that work nowhere are
// refused.
type Place struct{ Region, Account string }

// Kind is one kind of resource, for one use of it.
type Kind struct {
	// Written is how it is written.
	Written string
	pattern *regexp.Regexp
	// These say what to do if the resource has another region or account, or is a FIFO topic. Empty
	// means that AWS accepts it.
	region, account, fifo string
}

// The kinds. A partition is aws, aws-cn, aws-us-gov and so on.
var (
	// Topic is subscribed to. Its subscription and the subscription's dead-letter queue must be in
	// the topic's region and in the stack's account. SNS delivers a FIFO topic's messages to
	// standard queues. But the dead-letter queue of the subscription has to be a FIFO queue, and a
	// stack's queues are all standard. Source: "Amazon SNS dead-letter queues", Amazon SNS
	// Developer Guide.
	Topic = Kind{
		Written: "arn:aws:sns:REGION:ACCOUNT:NAME", pattern: topic,
		region: "subscribe a queue there, or publish to a topic of this region",
		fifo:   "its dead-letter queue would have to be a FIFO queue, and the stack's is not: publish to a standard topic",
	}
	// AlarmTopic gets the alarms.
	AlarmTopic = Kind{
		Written: Topic.Written, pattern: topic,
		region: "name a topic of this region", fifo: "name a standard topic",
	}
	// Bus gets a rule. CloudFormation and CDK name the bus of a rule, so it is the stack's own.
	Bus = Kind{
		Written: "its name, or arn:aws:events:REGION:ACCOUNT:event-bus/NAME",
		pattern: regexp.MustCompile(
			`^(arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9_./-]{1,256}$`),
		region:  "have a rule of that bus forward to a bus of this region, and name this bus",
		account: "have a rule of that bus forward to a bus of this account, and name this bus",
	}
	// CommitBus is a pipe's target: "Event bus in the same account and Region" ("Amazon EventBridge
	// Pipes targets", Amazon EventBridge User Guide).
	CommitBus = Kind{
		Written: "arn:aws:events:REGION:ACCOUNT:event-bus/NAME", pattern: arnPattern("events", `event-bus/[A-Za-z0-9_./-]{1,256}`),
		region:  "name a bus of this region, and have a rule of it forward to the other",
		account: "name a bus of this account, and have a rule of it forward to the other",
	}
	// DynamoDBStream and KinesisStream are read by a pipe.
	DynamoDBStream = source("arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/TIME", dynamoDBStream)
	KinesisStream  = source("arn:aws:kinesis:REGION:ACCOUNT:stream/NAME, or its consumer's ARN", kinesisStream)
	// Stream is either of them.
	Stream = source("arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/TIME or arn:aws:kinesis:REGION:ACCOUNT:stream/NAME",
		regexp.MustCompile(dynamoDBStream.String()+"|"+kinesisStream.String()))
	// Cluster and Broker are read by a pipe.
	Cluster = source("arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/ID", arnPattern("kafka", `cluster/[A-Za-z0-9_-]+/[A-Za-z0-9-]+`))
	Broker  = source("arn:aws:mq:REGION:ACCOUNT:broker:NAME:ID", arnPattern("mq", `broker:[A-Za-z0-9_.-]+:[A-Za-z0-9-]+`))
	// Secret is read by index or a pipe, which ask Secrets Manager in their own region.
	Secret = Kind{
		Written: "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME", pattern: arnPattern("secretsmanager", `secret:\S+`),
		region: "replicate the secret to this region, and name the replica",
	}
	// Key encrypts queues, table and bucket.
	Key = Kind{
		Written: "arn:aws:kms:REGION:ACCOUNT:key/ID (not an alias, which has no policy)", pattern: key,
		region:  "name a key of this region, such as a replica of a multi-region key",
		account: "name a key of this account: DynamoDB accepts no other",
	}
	// ReadKey encrypts data that is read. The right to use it is limited to services of the stack's
	// region.
	ReadKey = Kind{Written: Key.Written, pattern: key, region: "name the key, or its replica, of this region"}
	// Function is invoked, in the region that its ARN names.
	Function = Kind{
		Written: "arn:aws:lambda:REGION:ACCOUNT:function:NAME, with an alias or a version if it has one",
		pattern: arnPattern("lambda", `function:[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9$_-]{1,128})?`),
	}
	// Engine is a sink that takes signed requests. Its own policy decides who may ask.
	Engine = Kind{
		Written: "arn:aws:es:REGION:ACCOUNT:domain/NAME or arn:aws:aoss:REGION:ACCOUNT:collection/ID or " +
			"arn:aws:rds-db:REGION:ACCOUNT:dbuser:RESOURCE/USER",
		pattern: regexp.MustCompile(`^arn:aws[a-z-]*:(es:[a-z0-9-]+:[0-9]{12}:domain/[a-z][a-z0-9-]{2,27}|` +
			`aoss:[a-z0-9-]+:[0-9]{12}:collection/[a-z0-9]{3,40}|` +
			`rds-db:[a-z0-9-]+:[0-9]{12}:dbuser:[A-Za-z0-9-]{1,63}/[A-Za-z_][A-Za-z0-9_-]{0,62})$`),
	}
	// Bucket may notify. Its ARN has no region and no account; the queue's policy requires the
	// stack's account.
	Bucket = Kind{
		Written: "arn:aws:s3:::NAME", pattern: regexp.MustCompile(`^arn:aws[a-z-]*:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`),
	}
	// Origin is the resource whose events a service sends. The queue's policy requires that it
	// belongs to the stack's account.
	Origin = Kind{
		Written: "the ARN of the resource whose events the service sends, such as arn:aws:s3:::NAME",
		pattern: regexp.MustCompile(`^arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:([0-9]{12})?:\S+$`),
		account: "let the other account's role send instead: Sender",
	}
	// Person may do something: assume a role.
	Person = Kind{Written: "arn:aws:iam::ACCOUNT:role/NAME", pattern: regexp.MustCompile("^" + person + "$")}
	// Sender may send: a person, or everybody whom an account permits.
	Sender = Kind{
		Written: Person.Written + ", or an account of twelve digits",
		pattern: regexp.MustCompile("^([0-9]{12}|" + person + ")$"),
	}
	// Subnet and Group are ids of a VPC. Only the stack's own account and region can have them.
	Subnet = Kind{Written: "subnet-ID", pattern: regexp.MustCompile(`^subnet-[a-z0-9]+$`)}
	Group  = Kind{Written: "sg-ID", pattern: regexp.MustCompile(`^sg-[a-z0-9]+$`)}
)

// These shapes are used by more than one kind.
var (
	topic          = arnPattern("sns", `[A-Za-z0-9_-]{1,256}(\.fifo)?`)
	key            = arnPattern("kms", `key/[A-Za-z0-9-]+`)
	dynamoDBStream = arnPattern("dynamodb", `table/[A-Za-z0-9_.-]+/stream/\S+`)
	kinesisStream  = arnPattern("kinesis", `stream/[A-Za-z0-9_.-]+(/consumer/[A-Za-z0-9_.-]+:[0-9]+)?`)
)

const person = `arn:aws[a-z-]*:(iam|sts)::[0-9]{12}:(root|(role|user|assumed-role)/[A-Za-z0-9_+=,.@/-]+)`

// arnPattern returns the pattern of an ARN with a region and an account.
func arnPattern(service, resource string) *regexp.Regexp {
	return regexp.MustCompile(`^arn:aws[a-z-]*:` + service + `:[a-z0-9-]+:[0-9]{12}:` + resource + `$`)
}

// source is the kind of a source that a pipe reads. EventBridge Pipes is documented for sources in
// the pipe's account and region only.
func source(written string, pattern *regexp.Regexp) Kind {
	return Kind{
		Written: written, pattern: pattern,
		region:  "EventBridge Pipes reads only sources in its own region: deploy this stack there, or replicate the data",
		account: "EventBridge Pipes reads only sources in its own account: deploy this stack there, or forward the changes",
	}
}

// Pattern is the regular expression of its shape.
func (k Kind) Pattern() string { return k.pattern.String() }

// Fault says what is wrong with a value and what to do. Both are empty for a value that works. A
// CDK token is a placeholder for a later value, and is accepted without a check.
func (k Kind) Fault(value string, at Place) (problem, fix string) {
	switch {
	case isToken(value):
		return "", ""
	case value == "":
		return "is missing", "write " + k.Written
	case !k.pattern.MatchString(value):
		return "is malformed", "write " + k.Written
	case k.fifo != "" && strings.HasSuffix(value, ".fifo"):
		return "is a FIFO topic", k.fifo
	}
	parts := strings.SplitN(value, ":", 6)
	if len(parts) < 6 || at == (Place{}) {
		return "", "" // a name or an id, or the stack may be deployed anywhere
	}
	partition, region, account := parts[1], parts[3], parts[4]
	switch own := Partition(at.Region); {
	case partition != own:
		return "is not of the stack's partition " + own, "deploy a stack there"
	case k.region != "" && region != at.Region:
		return "is not in the stack's region " + at.Region, k.region
	case k.account != "" && account != "" && account != at.Account:
		return "is not of the stack's account " + at.Account, k.account
	}
	return "", ""
}

func isToken(value string) bool { return strings.Contains(value, "{Token[") }

// Partition is the partition of a region, by how its name begins.
func Partition(region string) string {
	for prefix, partition := range map[string]string{
		"cn-": "aws-cn", "us-gov-": "aws-us-gov", "eusc-": "aws-eusc", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b",
		"eu-isoe-": "aws-iso-e", "us-isof-": "aws-iso-f",
	} {
		if strings.HasPrefix(region, prefix) {
			return partition
		}
	}
	return "aws"
}

// Region is the region that an ARN names; empty if it is a token of CDK's.
func Region(value string) string {
	if parts := strings.SplitN(value, ":", 6); len(parts) == 6 && !isToken(value) {
		return parts[3]
	}
	return ""
}
