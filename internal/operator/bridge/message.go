// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/seam/queue"
)

// Message is a message as a broker delivered it. Its sender chose all of its content.
type Message struct {
	// Tag identifies the delivery within its session.
	Tag  uint64
	Body []byte

	Exchange, RoutingKey, Type, ContentType, ID string
	// Headers are the sender's headers, without the properties. The bridge uses only headers that are
	// texts.
	Headers map[string]any
	// Original is the delivery as the session received it. With it the session can park the message
	// unchanged.
	Original any
}

// properties returns the attributes of a message for lull's queue. Their names are those that
// package event reads. If a property is empty, the header of the same name is used.
func (m *Message) properties() map[string]string {
	named := map[string]string{
		"content_type": m.ContentType, "event_type": m.Type, "routing_key": m.RoutingKey,
		"exchange": m.Exchange, "message_id": m.ID,
		queue.AttrTrace: "",
	}
	out := make(map[string]string, len(named))
	for name, value := range named {
		if value = text(cmp.Or(value, m.header(name))); value != "" {
			out[name] = value
		}
	}
	return out
}

// runHeader names the resync run. It is part of the order key, so it is only accepted in the
// envelope.
const runHeader = "resyncrun"

// maxText bounds a property, in bytes. AMQP's own properties have at most 255; headers have no
// limit.
const maxText = 1024

func (m *Message) header(name string) string {
	value, _ := m.Headers[name].(string)
	return value
}

// text replaces each character that SQS refuses by U+FFFD, and cuts the text at maxText.
func text(s string) string {
	s = strings.Map(func(r rune) rune {
		if !isAccepted(r) {
			return utf8.RuneError
		}
		return r
	}, s)
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}

// isAccepted reports whether SQS accepts a character. SQS accepts the characters of XML 1.0.
// Source: SendMessage in the SQS API reference.
func isAccepted(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD || r > 0xFFFF
}

// plain reports whether SQS accepts a body unchanged.
func plain(body []byte) bool {
	return len(body) > 0 && utf8.Valid(body) &&
		strings.IndexFunc(string(body), func(r rune) bool { return !isAccepted(r) }) < 0
}

// outgoing returns the message for lull's queue. The body is unchanged, and the properties are
// attributes. A body that SQS would refuse is sent in base64, in the envelope of Amazon MQ for
// RabbitMQ. A message with a resync run is also sent in this envelope.
func (m *Message) outgoing() queue.Outgoing {
	beside := m.properties()
	out := queue.Outgoing{Body: string(m.Body), Attributes: make(map[string]queue.Attribute, len(beside))}
	for name, value := range beside {
		out.Attributes[name] = queue.Text(value)
	}
	if run := text(m.header(runHeader)); run != "" || !plain(m.Body) {
		out.Body = m.envelope(run)
	}
	return out
}

// envelope returns the message in the form in which EventBridge Pipes sends a message of RabbitMQ.
func (m *Message) envelope(run string) string {
	type properties struct {
		ContentType string            `json:"contentType,omitempty"`
		Type        string            `json:"type,omitempty"`
		MessageID   string            `json:"messageId,omitempty"`
		Headers     map[string]string `json:"headers,omitempty"`
	}
	beside := m.properties()
	p := properties{ContentType: beside["content_type"], Type: beside["event_type"], MessageID: beside["message_id"]}
	if run != "" {
		p.Headers = map[string]string{runHeader: run}
	}
	return string(asJSON(struct {
		EventSource string     `json:"eventSource"`
		Properties  properties `json:"basicProperties"`
		RoutingKey  string     `json:"routingKey,omitempty"`
		Data        string     `json:"data"`
	}{"aws:rmq", p, beside["routing_key"], base64.StdEncoding.EncodeToString(m.Body)}))
}

// reference returns a pointer in the form of the SQS extended client. The pointer replaces a body
// that is in S3.
func reference(bucket, key string) []byte {
	return asJSON([]any{
		"software.amazon.payloadoffloading.PayloadS3Pointer",
		map[string]string{"s3BucketName": bucket, "s3Key": key},
	})
}

func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts always have a JSON form
	}
	return text
}
