package source

import (
	"cmp"
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
)

// piped reports whether the rule asks for what EventBridge Pipes read.
func (m Match) piped() bool { return m.Stream != "" || m.Queue != "" || m.Topic != "" && !m.fromSNS() }

// fromSNS reports whether the rule's topic is one of SNS. Kafka's topics have names, not ARNs.
func (m Match) fromSNS() bool { return strings.HasPrefix(m.Topic, "arn:") }

// pipe wraps a body in the record that a pipe sends for it, with the names that the rule requires.
// is is the origin that the body already has.
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

// repiped puts a body back into the record that it was taken from: what is inside says neither the
// record's key nor its place in the stream.
func (s *Set) repiped(from, body string, meta event.Meta) string {
	is := event.OriginOf(from, s.depth)
	m := Match{Stream: is.Stream, Topic: is.Topic}
	if m.fromSNS() {
		m.Topic = ""
	}
	return m.pipe(is, body, Change{ID: meta.Key, Version: meta.Position})
}

// service is the service of the rule's stream, such as kinesis.
func (m Match) service() string {
	if parts := strings.SplitN(m.Stream, ":", 4); len(parts) == 4 {
		return parts[2]
	}
	return ""
}

// record is a record of a topic of Kafka. The body null is a tombstone, which has no value.
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

// KeyText is a record's key as the id of a document: text and numbers as they are, and the columns
// of an object as [JoinKey] has them. The schema that Kafka Connect's JSON converter writes around
// a key is left out. field names the key in problems.
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

// ColumnsText is a key of several columns, an object, as the id of a document, as [JoinKey] has it.
// text reads a column.
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

// Key is the key of a record as JSON. A key that is not JSON is text.
func Key(text string) gjson.Result {
	v := gjson.Parse(text)
	if text == "" || event.Check(text) == nil && (v.Type == gjson.Number || v.Type == gjson.String || v.IsObject()) {
		return v
	}
	return gjson.Parse(Quoted(text))
}
