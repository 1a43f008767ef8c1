package event

import "github.com/tidwall/gjson"

// kind is what an object is wrapped in.
type kind byte

const (
	raw kind = iota
	sns
	eventBridge
	records     // S3 notification, or records of a DynamoDB stream
	testEvent   // what S3 sends when a notification is set up
	rabbitBatch // Amazon MQ for RabbitMQ as Lambda gets it: many messages by queue
	rabbitOne   // the same from EventBridge Pipes: one message
	activeOne   // Amazon MQ for ActiveMQ from EventBridge Pipes: one message
	kafkaOne    // a record of Kafka, from Amazon MSK or a cluster of one's own, from EventBridge Pipes
	kinesisOne  // a record of a Kinesis stream, from EventBridge Pipes
	abandoned   // what EventBridge Pipes sends of records of a stream that it gave up on
)

// envelope is an object's kind and what it is known by.
type envelope struct {
	kind  kind
	whole gjson.Result
	has   map[string]gjson.Result // the members that envelopes have; nil where there is none
	batch gjson.Result            // where abandoned records are in their stream
}

// text reports whether a member is there and text.
func (k envelope) text(name string) bool { return k.has[name].Type == gjson.String }

// ofS3 reports whether an event of EventBridge is a change in S3.
func (k envelope) ofS3() bool { return k.has["source"].Str == "aws.s3" }

// recognise looks at the names of an object's top level, once. A body with a name that only our
// own events have is not an envelope, whatever else it holds. So the scan of most events ends at
// its first fields, before anything is kept.
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
		k.kind = k.streamed()
	}
	return k
}

// streamed is the kind of a record that EventBridge Pipes sends: it names where it comes from, and
// has what such a record always has.
func (k envelope) streamed() kind {
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
