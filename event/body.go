// SPDX-License-Identifier: Apache-2.0

package event

import "cmp"

// Shape says what the text of a Body contains.
type Shape byte

// The shapes.
const (
	Plain    Shape = iota // the upstream's own text
	S3Record              // one record of an S3 notification, with a URL-encoded key
	// S3Change is the detail of an EventBridge event from S3, with an unencoded key. Meta.Type says
	// what happened to the object.
	S3Change
)

// Body is what remains of a message, or of one part of it, without the envelopes: a text, a skip or
// an Invalid.
type Body struct {
	Text  string // one checked JSON value; it shares memory with the message unless an envelope encoded it
	Shape Shape
	Meta
	Skip    string // why the body is not an event, such as "heartbeat" or "s3:TestEvent"
	Invalid *Invalid
}

// Meta holds facts about a body from envelopes and attributes. Only Run and Position can be part of
// an order key, and Run and Position come only from the body of the message.
type Meta struct {
	ContentType string
	Type        string // event type: RabbitMQ's property type, EventBridge's detail-type
	RoutingKey  string
	Run         string // resync run, from a header inside the envelope
	Key         string // the key of a record in Kafka, as text, or the partition key in Kinesis
	// Position is the position of a record in its stream, in digits: Kafka's offset, which counts
	// within one partition, or Kinesis's sequence number.
	Position string
}

// withInner combines two sets of facts. The facts in inner have priority, because the innermost
// envelope is closest to the event.
func (m Meta) withInner(inner Meta) Meta {
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

// MaxEvents is how many events one message may contain. lull processes and holds all events of a
// message together, so a larger message would leave less space for other messages in its batch.
// Most AWS notifications have one record.
const MaxEvents = 500

// heartbeat is the content type of GOV.UK's heartbeat messages, which need not be JSON.
const heartbeat = "application/x-heartbeat"
