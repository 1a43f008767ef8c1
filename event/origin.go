// SPDX-License-Identifier: Apache-2.0

package event

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"
)

// Origin is where a message comes from, according to its envelopes. An origin may be false: every
// sender that may write to the queue can invent an envelope.
type Origin struct {
	Topic      string // the ARN of the SNS topic if raw delivery is off, or the name of the Kafka topic
	Bus        string // the source of an EventBridge event, such as aws.s3
	DetailType string // the detail-type of an EventBridge event
	Bucket     string // the bucket of a change in S3; empty if a message names several
	// Stream is the ARN of the stream or broker that a pipe reads: a DynamoDB or Kinesis stream, a
	// cluster of Amazon MSK, or a broker of Amazon MQ.
	Stream string
	Queue  string // the queue of the broker, without the virtual host
}

// OriginOf returns the origin that at most depth envelopes of a message name. If a message has two
// envelopes of one kind, the outer envelope counts, because the last sender added it. OriginOf does
// not decode the event. For a text that cannot be a body, it uses the part that it can read.
func OriginOf(text string, depth int) Origin {
	var o Origin
	for range depth {
		if text = strings.Trim(text, whitespace); text == "" || text[0] != '{' {
			return o
		}
		switch k := recognise(text); k.kind {
		case sns:
			o.Topic = cmp.Or(o.Topic, k.has["TopicArn"].Str)
			text = k.has["Message"].Str
		case eventBridge:
			if o.Bus == "" {
				o.Bus, o.DetailType = k.has["source"].Str, k.has["detail-type"].Str
			}
			detail := k.has["detail"]
			if k.ofS3() {
				o.Bucket = Child(detail, "bucket", "name").Str
				return o
			}
			if text = detail.Raw; detail.Type == gjson.String {
				text = detail.Str
			}
		case rabbitOne, activeOne, kafkaOne, kinesisOne:
			text = o.piped(k)
		case records:
			o.Bucket = oneOf(k.has["Records"], "s3", "bucket", "name")
			o.stream(oneOf(k.has["Records"], "eventSourceARN"))
			return o
		case raw:
			if k.has["eventSource"].Str == "aws:dynamodb" {
				o.stream(Child(k.whole, "eventSourceARN").Str)
			}
			return o
		case abandoned:
			o.stream(Child(k.batch, "streamArn").Str)
			return o
		default:
			return o
		}
	}
	return o
}

// piped reads the origin of a record from EventBridge Pipes. It returns the text inside the record,
// or "" if the text cannot be read.
func (o *Origin) piped(k envelope) string {
	m := Members(k.whole, "eventSourceARN", "eventSourceArn", "eventSourceKey", "destination", "topic", "data", "value")
	o.stream(cmp.Or(m["eventSourceARN"].Str, m["eventSourceArn"].Str))
	inside := m["data"]
	switch k.kind {
	case kafkaOne:
		inside = m["value"]
		o.Topic = cmp.Or(o.Topic, m["topic"].Str)
	case rabbitOne: // "queue::virtual host"
		queue, _, _ := strings.Cut(m["eventSourceKey"].Str, "::")
		o.Queue = cmp.Or(o.Queue, queue)
	case activeOne: // AWS uses both spellings of the name
		to := Members(m["destination"], "physicalname", "physicalName")
		o.Queue = cmp.Or(o.Queue, to["physicalname"].Str, to["physicalName"].Str)
	default:
	}
	text, _ := decodeText(inside)
	return text
}

// stream records the ARN of a stream. The outermost envelope has priority.
func (o *Origin) stream(arn string) { o.Stream = cmp.Or(o.Stream, arn) }

// oneOf returns the text that all records have at this place, or "" if the texts differ.
func oneOf(list gjson.Result, names ...string) (one string) {
	for _, r := range list.ForEach {
		this := Child(r, names...).Str
		if this == "" || one != "" && this != one {
			return ""
		}
		one = this
	}
	return one
}
