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

// envelope is an object's kind and the fields that this kind has.
type envelope struct {
	kind  kind
	whole gjson.Result

	snsType, message, attributes gjson.Result
	detailType, detail, source   gjson.Result
	records                      gjson.Result
	queues                       gjson.Result
	eventSource                  gjson.Result
	batch                        gjson.Result // where abandoned records are in their stream
}

// recognise looks at the names of an object's top level, once. A body with a name that only our
// own events have is not an envelope, whatever else it holds. So the scan of most events ends at
// its first fields.
func recognise(text string) envelope {
	k := envelope{whole: gjson.Parse(text)}
	var topic, kafka, sequence, service, test, properties, payload, event bool
	k.whole.ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "specversion", "subject", "sequence", "content_id", "payload_version":
			event = true
			return false
		case "Type":
			k.snsType = v
		case "TopicArn":
			topic = v.Type == gjson.String
		case "Message":
			k.message = v
		case "MessageAttributes":
			k.attributes = v
		case "detail-type":
			k.detailType = v
		case "detail":
			k.detail = v
		case "source":
			k.source = v
		case "Records":
			k.records = v
		case "Service":
			service = v.Str == "Amazon S3"
		case "Event":
			test = v.Str == "s3:TestEvent"
		case "rmqMessagesByQueue":
			k.queues = v
		case "basicProperties":
			properties = v.IsObject()
		case "data":
			payload = v.Type == gjson.String
		case "eventSource":
			k.eventSource = v
		case "topic":
			kafka = v.Type == gjson.String
		case "sequenceNumber":
			sequence = v.Type == gjson.String
		case "KinesisBatchInfo", "DDBStreamBatchInfo":
			if v.IsObject() {
				k.batch = v
			}
		}
		return true
	})
	switch {
	case event:
	case topic && k.snsType.Type == gjson.String && k.message.Type == gjson.String:
		k.kind = sns
	case k.detailType.Type == gjson.String && k.source.Type == gjson.String && k.detail.Exists():
		k.kind = eventBridge
	case service && test:
		k.kind = testEvent
	case k.records.IsArray() && wrapsRecords(k.records):
		k.kind = records
	case k.queues.IsObject():
		k.kind = rabbitBatch
	case properties && payload:
		k.kind = rabbitOne
	case Child(k.batch, "startSequenceNumber").Type == gjson.String:
		k.kind = abandoned
	default:
		k.kind = streamed(k.eventSource.Str, kafka, sequence, payload)
	}
	return k
}

// streamed is the kind of a record that EventBridge Pipes sends: it names where it comes from, and
// has what such a record always has.
func streamed(from string, topic, sequence, data bool) kind {
	switch {
	case from == "aws:kinesis" && sequence && data:
		return kinesisOne
	case (from == "aws:kafka" || from == "SelfManagedKafka") && topic:
		return kafkaOne
	case from == "aws:amq" && data:
		return activeOne
	}
	return raw
}

// wrapsRecords reports whether the first record comes from a service whose records are events. An
// empty list is not an envelope.
func wrapsRecords(list gjson.Result) bool {
	known := false
	list.ForEach(func(_, r gjson.Result) bool {
		source := recordSource(r)
		known = source == "aws:s3" || source == "aws:dynamodb"
		return false
	})
	return known
}

func recordSource(r gjson.Result) string { return Child(r, "eventSource").Str }
