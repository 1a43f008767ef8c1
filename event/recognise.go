// SPDX-License-Identifier: Apache-2.0

package event

import "github.com/tidwall/gjson"

// kind is the kind of an envelope.
type kind byte

const (
	raw kind = iota
	sns
	eventBridge
	records     // an S3 notification, or records of a DynamoDB stream
	testEvent   // S3 sends it when a notification is set up
	rabbitBatch // Amazon MQ for RabbitMQ in Lambda's form: many messages by queue
	rabbitOne   // Amazon MQ for RabbitMQ from EventBridge Pipes: one message
	activeOne   // Amazon MQ for ActiveMQ from EventBridge Pipes: one message
	kafkaOne    // a record of Kafka, from Amazon MSK or your own cluster, from EventBridge Pipes
	kinesisOne  // a record of a Kinesis stream, from EventBridge Pipes
	abandoned   // from EventBridge Pipes: the positions of records that a pipe stopped trying to send
)

// envelope is an object, its kind, and the members by which it was recognised.
type envelope struct {
	kind  kind
	whole gjson.Result
	has   map[string]gjson.Result // the members that envelopes have; nil if the object has no such member
	batch gjson.Result            // the positions of abandoned records in their stream
}

// text reports whether a member exists and is a text.
func (k envelope) text(name string) bool { return k.has[name].Type == gjson.String }

// ofS3 reports whether an EventBridge event is a change in S3.
func (k envelope) ofS3() bool { return k.has["source"].Str == "aws.s3" }

// recognise finds the kind of an envelope from the names of an object's members. If an object has a
// name that only lull's own events have, it is not an envelope. So for most events the scan ends at
// the first fields, before it allocates memory.
func recognise(text string) envelope {
	k := envelope{whole: gjson.Parse(text)}
	for name, v := range k.whole.ForEach {
		switch name.Str {
		case "specversion", "subject", "sequence", "content_id", "payload_version":
			return k
		case "Type", "TopicArn", "Message", "MessageAttributes", "detail-type", "detail", "source", "Records", "Service",
			"Event", "rmqMessagesByQueue", "basicProperties", "data", "eventSource", "topic", "sequenceNumber":
			if k.has == nil {
				k.has = make(map[string]gjson.Result)
			}
			k.has[name.Str] = v
		case "KinesisBatchInfo", "DDBStreamBatchInfo":
			if v.IsObject() {
				k.batch = v
			}
		}
	}
	switch {
	case k.text("TopicArn") && k.text("Type") && k.text("Message"):
		k.kind = sns
	case k.text("detail-type") && k.text("source") && k.has["detail"].Exists():
		k.kind = eventBridge
	case k.has["Service"].Str == "Amazon S3" && k.has["Event"].Str == "s3:TestEvent":
		k.kind = testEvent
	case k.has["Records"].IsArray() && wrapsRecords(k.has["Records"]):
		k.kind = records
	case k.has["rmqMessagesByQueue"].IsObject():
		k.kind = rabbitBatch
	case k.has["basicProperties"].IsObject() && k.text("data"):
		k.kind = rabbitOne
	case Child(k.batch, "startSequenceNumber").Type == gjson.String:
		k.kind = abandoned
	default:
		k.kind = k.pipeKind()
	}
	return k
}

// pipeKind returns the kind of a record from EventBridge Pipes. Such a record names the service
// from which the pipe read it, and has the fields that this service always sends.
func (k envelope) pipeKind() kind {
	switch from := k.has["eventSource"].Str; {
	case from == "aws:kinesis" && k.text("sequenceNumber") && k.text("data"):
		return kinesisOne
	case (from == "aws:kafka" || from == "SelfManagedKafka") && k.text("topic"):
		return kafkaOne
	case from == "aws:amq" && k.text("data"):
		return activeOne
	}
	return raw
}

// wrapsRecords reports whether the first record comes from a service whose records are events. An
// empty list is not an envelope.
func wrapsRecords(list gjson.Result) bool {
	from := recordSource(Child(list, "0"))
	return from == "aws:s3" || from == "aws:dynamodb"
}

func recordSource(r gjson.Result) string { return Child(r, "eventSource").Str }
