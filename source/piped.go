// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
)

// piped reports whether the rule requires that EventBridge Pipes read the message.
func (m Match) piped() bool { return m.Stream != "" || m.Queue != "" || m.Topic != "" && !m.fromSNS() }

// fromSNS reports whether the rule's topic is a topic of SNS. A topic of SNS has an ARN, and a
// topic of Kafka has only a name.
func (m Match) fromSNS() bool { return strings.HasPrefix(m.Topic, "arn:") }

// pipe wraps a body in the record that a pipe sends, with the names that the rule requires. The
// argument is names the origin that the envelopes of the body already show.
func (m Match) pipe(is event.Origin, body string, c Change) string {
	switch service := m.service(); {
	case service == "dynamodb":
		stream := m.Stream
		if !strings.Contains(stream, "/stream/") {
			stream += "/stream/2026-11-20T00:00:00.000"
		}
		if is.Stream == "" {
			return body
		}
		return Pointer{Tokens: []string{"eventSourceARN"}}.Put(body, Quoted(stream))
	case service == "mq" || m.Queue != "":
		return `{"eventSource":"aws:rmq","eventSourceArn":` + Quoted(m.Stream) + `,"eventSourceKey":` +
			Quoted(cmp.Or(m.Queue, anyName)+"::/") + `,"basicProperties":{"headers":{}},"redelivered":false,"data":` + encoded(body) + `}`
	case service == "kinesis" && m.Topic == "":
		return `{"kinesisSchemaVersion":"1.0","partitionKey":` + Quoted(c.ID) + `,"sequenceNumber":` +
			Quoted(c.Version) + `,"data":` + encoded(body) + `,"eventSource":"aws:kinesis","eventVersion":"1.0",` +
			`"eventName":"aws:kinesis:record","eventSourceARN":` + Quoted(m.Stream) + `}`
	default:
		return record(m.Stream, cmp.Or(m.Topic, anyName), c, body)
	}
}

// wrapAgain puts a body back into a record like the one from which it was unwrapped. The body alone
// contains neither the key of the record nor its position in the stream.
func (s *Set) wrapAgain(from, body string, meta event.Meta) string {
	is := event.OriginOf(from, s.depth)
	m := Match{Stream: is.Stream, Topic: is.Topic}
	if m.fromSNS() {
		m.Topic = ""
	}
	return m.pipe(is, body, Change{ID: meta.Key, Version: meta.Position})
}

// service returns the AWS service of the rule's stream, such as kinesis.
func (m Match) service() string {
	if parts := strings.SplitN(m.Stream, ":", 4); len(parts) == 4 {
		return parts[2]
	}
	return ""
}

// record returns a record of a Kafka topic. If the body is the text "null", the record is a
// tombstone, which has no value.
func record(cluster, topic string, c Change, body string) string {
	from := `"SelfManagedKafka"`
	if cluster != "" {
		from = `"aws:kafka","eventSourceArn":` + Quoted(cluster)
	}
	value := ""
	if body != "null" {
		value = `,"value":` + encoded(body)
	}
	return `{"eventSource":` + from + `,"eventSourceKey":` + Quoted(topic+"-0") + `,"topic":` + Quoted(topic) +
		`,"partition":"0","offset":` + Scalar(c.Version) + `,"timestampType":"CREATE_TIME","key":` + encoded(c.ID) + value +
		`,"headers":[]}`
}

func encoded(text string) string { return Quoted(base64.StdEncoding.EncodeToString([]byte(text))) }

// KeyText returns the key of a record as the id of a document. A text or a number is the id itself.
// The columns of an object are joined by [JoinKey]. KeyText ignores the schema that Kafka Connect's
// JSON converter writes around a key. The argument field is the name of the key in problems.
func KeyText(field string, key gjson.Result) (string, *event.Invalid) {
	if payload := event.Child(key, "payload"); payload.Exists() && event.Child(key, "schema").Exists() {
		key = payload
	}
	if !key.IsObject() {
		return Identity(field, key)
	}
	return ColumnsText(field, key, func(_ string, v gjson.Result) (string, *event.Invalid) {
		return Identity(field, v)
	})
}

// ColumnsText returns the id of a document for a key of several columns, which is a JSON object.
// [JoinKey] joins the columns. The function text reads one column.
func ColumnsText(field string, key gjson.Result, text func(name string, v gjson.Result) (string, *event.Invalid)) (
	string, *event.Invalid,
) {
	columns := make(map[string]string)
	for name, v := range key.ForEach {
		of, bad := text(name.Str, v)
		if columns[name.Str] = of; bad == nil && len(columns) > MaxColumns {
			bad = Invalid(field, "the key has more than %d columns", MaxColumns)
		}
		if bad != nil {
			return "", bad
		}
	}
	return JoinKey(columns), nil
}

// Key returns the key of a record as JSON. A key that is not JSON becomes a JSON string.
func Key(text string) gjson.Result {
	v := gjson.Parse(text)
	if text == "" || event.Check(text) == nil && (v.Type == gjson.Number || v.Type == gjson.String || v.IsObject()) {
		return v
	}
	return gjson.Parse(Quoted(text))
}
