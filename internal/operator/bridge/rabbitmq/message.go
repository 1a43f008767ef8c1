// SPDX-License-Identifier: Apache-2.0

package rabbitmq

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/seam/queue"
)

// delivery is a message as RabbitMQ delivered it. Its sender chose all of its content.
type delivery struct{ *amqp.Delivery }

// message returns the delivery for the bridge.
func (d delivery) message() bridge.Message {
	return bridge.Message{
		Tag: d.DeliveryTag, Body: d.Body, Form: d.outgoing, Original: d.Delivery,
		About: []any{"message", text(d.MessageId), "routing_key", text(d.RoutingKey)},
	}
}

// properties returns the attributes of a message for lull's queue. Their names are those that
// package event reads. If a property is empty, the header of the same name is used.
func (d delivery) properties() map[string]string {
	named := map[string]string{
		"content_type": d.ContentType, "event_type": d.Type, "routing_key": d.RoutingKey,
		"exchange": d.Exchange, "message_id": d.MessageId,
		queue.AttrTrace: "",
	}
	out := make(map[string]string, len(named))
	for name, value := range named {
		if value = text(cmp.Or(value, d.header(name))); value != "" {
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

func (d delivery) header(name string) string {
	value, _ := d.Headers[name].(string)
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
func (d delivery) outgoing(body []byte) queue.Outgoing {
	beside := d.properties()
	out := queue.Outgoing{Body: string(body), Attributes: make(map[string]queue.Attribute, len(beside))}
	for name, value := range beside {
		out.Attributes[name] = queue.Text(value)
	}
	if run := text(d.header(runHeader)); run != "" || !plain(body) {
		out.Body = d.envelope(run, body)
	}
	return out
}

// envelope returns the message in the form in which EventBridge Pipes sends a message of RabbitMQ.
func (d delivery) envelope(run string, body []byte) string {
	type properties struct {
		ContentType string            `json:"contentType,omitempty"`
		Type        string            `json:"type,omitempty"`
		MessageID   string            `json:"messageId,omitempty"`
		Headers     map[string]string `json:"headers,omitempty"`
	}
	beside := d.properties()
	p := properties{ContentType: beside["content_type"], Type: beside["event_type"], MessageID: beside["message_id"]}
	if run != "" {
		p.Headers = map[string]string{runHeader: run}
	}
	return string(asJSON(struct {
		EventSource string     `json:"eventSource"`
		Properties  properties `json:"basicProperties"`
		RoutingKey  string     `json:"routingKey,omitempty"`
		Data        string     `json:"data"`
	}{"aws:rmq", p, beside["routing_key"], base64.StdEncoding.EncodeToString(body)}))
}

func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts always have a JSON form
	}
	return text
}
