// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/seam/deadletter"
)

// This file reads the records of Kafka, Kinesis and ActiveMQ that EventBridge Pipes sends. Each
// record is one message, with the producer's text in base64. If a pipe reads in batches, SQS splits
// a batch into messages.
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-batching-concurrency.html

// kafka opens a record of Kafka. A record without a value is a tombstone, and its body is null.
func (u Unwrapper) kafka(dst []Body, record gjson.Result, meta Meta, left int) []Body {
	m := Members(record, "key", "value", "headers", "offset")
	headers := make(map[string]gjson.Result)
	for _, header := range m["headers"].ForEach { // headers are a list, because Kafka allows a name twice
		addMembers(headers, header, metaNames)
	}
	inner := metaOf(func(name string) string { return headerText(headers[name]) })
	inner.Position = Text(m["offset"])
	if key := m["key"]; key.Type != gjson.Null {
		text, err := decodeText(key)
		if err != "" || !utf8.ValidString(text) {
			return append(dst, Body{Invalid: inField("key", undecodable("key of the record is neither base64 of text "+
				"nor JSON: send keys as text or JSON")), Meta: meta})
		}
		inner.Key = text
	}
	meta = meta.withInner(inner)
	if v := m["value"]; v.Type == gjson.Null || v.Type == gjson.String && v.Str == "" {
		return append(dst, Body{Text: "null", Meta: meta})
	}
	return u.decoded(dst, "value", m["value"], meta, left)
}

// kinesis opens a record of a Kinesis stream.
func (u Unwrapper) kinesis(dst []Body, record gjson.Result, meta Meta, left int) []Body {
	m := Members(record, "data", "partitionKey", "sequenceNumber")
	meta = meta.withInner(Meta{Key: m["partitionKey"].Str, Position: Text(m["sequenceNumber"])})
	return u.decoded(dst, "data", m["data"], meta, left)
}

// active opens a message of ActiveMQ.
func (u Unwrapper) active(dst []Body, message gjson.Result, meta Meta, left int) []Body {
	m := Members(message, "data", "type", "properties")
	properties := Members(m["properties"], metaNames...)
	inner := metaOf(func(name string) string { return properties[name].Str }).withInner(Meta{Type: m["type"].Str})
	return u.decoded(dst, "data", m["data"], meta.withInner(inner), left)
}

// decoded decodes the text of the producer from base64, and opens the text.
func (u Unwrapper) decoded(dst []Body, field string, v gjson.Result, meta Meta, left int) []Body {
	text, problem := decodeText(v)
	if problem == "" && !isHeartbeat(meta.ContentType) {
		problem = foreignFormat(text)
	}
	if problem != "" {
		bad := inField(field, undecodable("%s of the message %s", field, problem))
		return append(dst, Body{Invalid: bad, Meta: meta})
	}
	return u.open(dst, text, meta, left)
}

// decodeText decodes the producer's text from base64. An object or an array is not in base64,
// because the input template of the pipe has already decoded it.
func decodeText(v gjson.Result) (text, problem string) {
	switch {
	case v.IsObject() || v.IsArray():
		return v.Raw, ""
	case v.Type != gjson.String:
		return "", "is " + TypeName(v) + ": send text in base64"
	}
	inside, err := base64.StdEncoding.DecodeString(v.Str)
	if err != nil {
		return "", "is not base64"
	}
	return trimSchemaPrefix(string(inside)), ""
}

// schemaPrefix is the length of the prefix that Confluent's serializers write before a value: a
// zero byte, and the number of a schema in four bytes.
const schemaPrefix = 5

// trimSchemaPrefix removes the prefix of Confluent's serializers from a text, if JSON follows the
// prefix. It returns any other text unchanged.
func trimSchemaPrefix(text string) string {
	if len(text) > schemaPrefix && text[0] == 0 && Check(text[schemaPrefix:]) == nil {
		return text[schemaPrefix:]
	}
	return text
}

// foreignFormat describes a value that is not JSON, if its first bytes show the format. Otherwise,
// it returns "".
func foreignFormat(text string) string {
	switch {
	case strings.HasPrefix(text, "\xf3\x89\x9a\xc2"):
		return "is an aggregate of the Kinesis Producer Library: set its AggregationEnabled to false"
	case len(text) > schemaPrefix && text[0] == 0:
		return "begins with a schema number, like Avro and Protobuf: let the producer write JSON"
	case strings.HasPrefix(text, "\x1f\x8b"):
		return "is compressed with gzip: let the producer write plain JSON"
	}
	return ""
}

// abandonedRecords returns an Invalid that names the records of a stream that a pipe stopped trying
// to send. The pipe sends only the positions of the records. The stream still has the records,
// until its retention ends.
func abandonedRecords(batch gjson.Result) *Invalid {
	m := Members(batch, "streamArn", "shardId", "startSequenceNumber", "endSequenceNumber")
	return inField("startSequenceNumber", &Invalid{
		Reason: deadletter.Contract,
		Problem: "EventBridge Pipes stopped retrying the records of " + Quote(m["streamArn"].Str) + ", shard " +
			Quote(m["shardId"].Str) + ", from " + Quote(m["startSequenceNumber"].Str) + " to " +
			Quote(m["endSequenceNumber"].Str) + ": the message does not contain the records: publish their documents again",
	})
}

func inField(field string, f *Invalid) *Invalid {
	f.Field = field
	return f
}
