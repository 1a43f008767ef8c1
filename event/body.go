package event

import "cmp"

// Shape says what the text of a Body is.
type Shape byte

// The shapes.
const (
	Plain    Shape = iota // what the upstream wrote
	S3Record              // one record of an S3 notification: its key is URL-encoded
	// the detail of an EventBridge event from S3: its key is as it is, Meta.Type says what happened
	S3Change
)

// Body is what is left of a message, or of one part of it, when the envelopes are off: a text, a
// skip or an Invalid.
type Body struct {
	Text  string // one JSON value, checked; a substring of the message where no envelope demands decoding
	Shape Shape
	Meta
	Skip    string // why this is not an event: "heartbeat", "s3:TestEvent"
	Invalid *Invalid
}

// Meta is what envelopes and attributes say beside a body. None of it is part of an order key but
// Run and Position, which come from the body of the message only.
type Meta struct {
	ContentType string
	Type        string // event type: RabbitMQ's property type, EventBridge's detail-type
	RoutingKey  string
	Run         string // resync run, from a header inside the envelope
	Key         string // the key of a record in Kafka, as text; the partition key in Kinesis
	// Position is the record's place in its stream, in digits: Kafka's offset, which counts in one
	// partition, or Kinesis's sequence number.
	Position string
}

// over puts inner's values before m's: the innermost envelope knows best.
func (m Meta) over(inner Meta) Meta {
	return Meta{
		ContentType: cmp.Or(inner.ContentType, m.ContentType),
		Type:        cmp.Or(inner.Type, m.Type),
		RoutingKey:  cmp.Or(inner.RoutingKey, m.RoutingKey),
		Run:         cmp.Or(inner.Run, m.Run),
		Key:         cmp.Or(inner.Key, m.Key),
		Position:    cmp.Or(inner.Position, m.Position),
	}
}

// Pointer names the object in S3 that holds the body of a message too large for SQS.
type Pointer struct {
	Bucket string
	Key    string
}

// MaxEvents is how many events one message may carry. All of a message is judged and held together:
// a larger one would keep others out of its batch. AWS writes one record into most notifications.
const MaxEvents = 500

// heartbeat is the content type of GOV.UK's heartbeats. They need not be JSON.
const heartbeat = "application/x-heartbeat"
