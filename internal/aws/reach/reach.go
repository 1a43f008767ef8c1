// SPDX-License-Identifier: Apache-2.0

// Package reach defines which ARNs and ids a stack accepts: their form, and the regions and
// accounts that they may name. Without this check, CloudFormation would report a wrong ARN half an
// hour later, or never: a policy that names a resource of another service is a valid policy.
//
// A Kind describes the value of an option, of a field of infra.Props or of a setting. AWS may
// refuse an ARN of another region, of another account or of a FIFO topic; the Kind then says what
// to do. An ARN of another partition never works.
package reach

import (
	"regexp"
	"strings"
)

// Place is the region and the account of a stack. The zero value means that region and account are
// unknown: then only values that can never work are refused.
type Place struct{ Region, Account string }

// Kind is a kind of resource, for one use by a stack.
type Kind struct {
	// Written describes the form of the value, for messages.
	Written string
	pattern *regexp.Regexp
	// region, account and fifo say what to do if the resource has another region or account, or is
	// a FIFO topic. An empty text means that AWS accepts such a resource.
	region, account, fifo string
}

// The kinds of resources. The partition in an ARN is aws, aws-cn, aws-us-gov and so on.
var (
	// Topic is an SNS topic to which the stack subscribes a queue. The subscription and its
	// dead-letter queue must be in the region of the topic and in the account of the stack. SNS
	// delivers messages of a FIFO topic to standard queues. But the dead-letter queue of such a
	// subscription must be a FIFO queue, and all queues of a stack are standard queues. Source:
	// "Amazon SNS dead-letter queues", Amazon SNS Developer Guide.
	Topic = Kind{
		Written: "arn:aws:sns:REGION:ACCOUNT:NAME", pattern: topic,
		region: "subscribe a queue there, or publish to a topic of this region",
		fifo:   "its dead-letter queue would have to be a FIFO queue, and the stack's is not: publish to a standard topic",
	}
	// AlarmTopic is an SNS topic that gets the alarms.
	AlarmTopic = Kind{
		Written: Topic.Written, pattern: topic,
		region: "name a topic of this region", fifo: "name a standard topic",
	}
	// Bus is an event bus for which the stack creates a rule. CloudFormation refers to the bus by
	// its name, so the bus must be in the region and the account of the stack.
	Bus = Kind{
		Written: "its name, or arn:aws:events:REGION:ACCOUNT:event-bus/NAME",
		pattern: regexp.MustCompile(
			`^(arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9_./-]{1,256}$`),
		region:  "create a rule on that bus that forwards to a bus of this region, and name the bus of this region here",
		account: "create a rule on that bus that forwards to a bus of this account, and name the bus of this account here",
	}
	// CommitBus is an event bus that is the target of a pipe: "Event bus in the same account and
	// Region" ("Amazon EventBridge Pipes targets", Amazon EventBridge User Guide).
	CommitBus = Kind{
		Written: "arn:aws:events:REGION:ACCOUNT:event-bus/NAME", pattern: arnPattern("events", `event-bus/[A-Za-z0-9_./-]{1,256}`),
		region:  "name a bus of this region, and create a rule on it that forwards to the other bus",
		account: "name a bus of this account, and create a rule on it that forwards to the other bus",
	}
	// DynamoDBStream and KinesisStream are streams that a pipe reads.
	DynamoDBStream = source("arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/TIME", dynamoDBStream)
	KinesisStream  = source("arn:aws:kinesis:REGION:ACCOUNT:stream/NAME, or its consumer's ARN", kinesisStream)
	// Stream is a DynamoDB stream or a Kinesis stream.
	Stream = source("arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/TIME or arn:aws:kinesis:REGION:ACCOUNT:stream/NAME",
		regexp.MustCompile(dynamoDBStream.String()+"|"+kinesisStream.String()))
	// Cluster is a Kafka cluster and Broker is an Amazon MQ broker that a pipe reads.
	Cluster = source("arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/ID", arnPattern("kafka", `cluster/[A-Za-z0-9_-]+/[A-Za-z0-9-]+`))
	Broker  = source("arn:aws:mq:REGION:ACCOUNT:broker:NAME:ID", arnPattern("mq", `broker:[A-Za-z0-9_.-]+:[A-Za-z0-9-]+`))
	// Secret is a secret that index or a pipe reads. The function index and a pipe read a secret
	// only from Secrets Manager in their own region.
	Secret = Kind{
		Written: "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME", pattern: arnPattern("secretsmanager", `secret:\S+`),
		region: "replicate the secret to this region, and name the replica",
	}
	// Key is a KMS key that encrypts the queues, the table and the bucket.
	Key = Kind{
		Written: "arn:aws:kms:REGION:ACCOUNT:key/ID (not an alias, which has no policy)", pattern: key,
		region:  "name a key of this region, such as a replica of a multi-region key",
		account: "name a key of this account: DynamoDB accepts no other",
	}
	// ReadKey is a KMS key of data that the stack only reads. The stack's right to use the key is
	// limited to services in the stack's region.
	ReadKey = Kind{Written: Key.Written, pattern: key, region: "name the key, or its replica, of this region"}
	// Function is a Lambda function that the stack invokes, in the region that the ARN names.
	Function = Kind{
		Written: "arn:aws:lambda:REGION:ACCOUNT:function:NAME, with an alias or a version if it has one",
		pattern: arnPattern("lambda", `function:[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9$_-]{1,128})?`),
	}
	// Engine is a search engine or a database that accepts signed requests. The engine's own policy
	// decides who may send them.
	Engine = Kind{
		Written: "arn:aws:es:REGION:ACCOUNT:domain/NAME or arn:aws:aoss:REGION:ACCOUNT:collection/ID or " +
			"arn:aws:rds-db:REGION:ACCOUNT:dbuser:RESOURCE/USER",
		pattern: regexp.MustCompile(`^arn:aws[a-z-]*:(es:[a-z0-9-]+:[0-9]{12}:domain/[a-z][a-z0-9-]{2,27}|` +
			`aoss:[a-z0-9-]+:[0-9]{12}:collection/[a-z0-9]{3,40}|` +
			`rds-db:[a-z0-9-]+:[0-9]{12}:dbuser:[A-Za-z0-9-]{1,63}/[A-Za-z_][A-Za-z0-9_-]{0,62})$`),
	}
	// Bucket is an S3 bucket that may send notifications. The ARN of a bucket has no region and no
	// account. The policy of the queue requires that the bucket belongs to the stack's account.
	Bucket = Kind{
		Written: "arn:aws:s3:::NAME", pattern: regexp.MustCompile(`^arn:aws[a-z-]*:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`),
	}
	// Origin is a resource whose events a service sends. The policy of the queue requires that the
	// resource belongs to the stack's account.
	Origin = Kind{
		Written: "the ARN of the resource whose events the service sends, such as arn:aws:s3:::NAME",
		pattern: regexp.MustCompile(`^arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:([0-9]{12})?:\S+$`),
		account: "let a role of the other account send the events: see Sender",
	}
	// Person is a role or a user that may assume a role of the stack.
	Person = Kind{Written: "arn:aws:iam::ACCOUNT:role/NAME", pattern: regexp.MustCompile("^" + person + "$")}
	// Sender may send messages: it is a role, a user, or an account, which decides itself who may
	// send.
	Sender = Kind{
		Written: Person.Written + ", or an account of twelve digits",
		pattern: regexp.MustCompile("^([0-9]{12}|" + person + ")$"),
	}
	// Subnet and Group are the ids of a subnet and of a security group in a VPC. The subnet and the
	// security group must belong to the stack's own account and region.
	Subnet = Kind{Written: "subnet-ID", pattern: regexp.MustCompile(`^subnet-[a-z0-9]+$`)}
	Group  = Kind{Written: "sg-ID", pattern: regexp.MustCompile(`^sg-[a-z0-9]+$`)}
)

// Patterns that more than one kind uses.
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

// source returns the kind of a resource that a pipe reads. According to its documentation,
// EventBridge Pipes reads only sources in the account and the region of the pipe.
func source(written string, pattern *regexp.Regexp) Kind {
	return Kind{
		Written: written, pattern: pattern,
		region:  "EventBridge Pipes reads only sources in its own region: deploy this stack there, or replicate the data",
		account: "EventBridge Pipes reads only sources in its own account: deploy this stack there, or forward the changes",
	}
}

// Pattern returns the regular expression for values of the kind.
func (k Kind) Pattern() string { return k.pattern.String() }

// Fault says what is wrong with a value and how to fix it. Both texts are empty for a valid value.
// A CDK token is a placeholder for a later value, and is accepted without a check.
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
		return "", "" // the value is a name or an id without a region, or the place of the stack is unknown
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

// Partition returns the partition of a region, which depends on how the name of the region begins.
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

// Region returns the region that an ARN names. Region returns "" for a CDK token and for other
// values.
func Region(value string) string {
	if parts := strings.SplitN(value, ":", 6); len(parts) == 6 && !isToken(value) {
		return parts[3]
	}
	return ""
}
