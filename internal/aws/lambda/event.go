// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/seam/queue"
)

// Batch is a parsed SQS event.
type Batch struct {
	Queue    string // the name of the queue that the records come from
	Messages []queue.Message
	Unread   []string // ids of records that cannot be read
}

// errNoBatch says that the payload is not an SQS event. The text of the error does not quote the
// payload.
var errNoBatch = errors.New("the event is not a batch of SQS messages")

// maxMillis is the latest accepted time, in the year 9999.
const maxMillis = 253_402_300_799_999

// ReadBatch reads an SQS event. ReadBatch fails if the payload is not an SQS event, or if a record
// has no id, because such a record cannot be reported. The batch shares no memory with the payload.
func ReadBatch(payload []byte) (Batch, error) {
	if !gjson.ValidBytes(payload) {
		return Batch{}, errNoBatch
	}
	// ParseBytes copies the payload, because the runtime reuses its buffer
	records := gjson.ParseBytes(payload).Get("Records")
	if !records.IsArray() {
		return Batch{}, errNoBatch
	}
	b := Batch{Messages: make([]queue.Message, 0, strings.Count(records.Raw, `"messageId"`))}
	var err error
	records.ForEach(func(_, record gjson.Result) bool {
		var m queue.Message
		var r reading
		record.ForEach(func(key, value gjson.Result) bool {
			r.field(&m, key.Str, value)
			return true
		})
		switch {
		case m.ID == "" || r.source != "aws:sqs":
			err = errNoBatch
			return false
		case m.Receipt == "" || !r.body || r.bad || m.Sent.IsZero() || m.ReceiveCount < 1:
			b.Unread = append(b.Unread, m.ID)
		default:
			b.Messages = append(b.Messages, m)
		}
		b.Queue = r.queue
		return true
	})
	if err != nil {
		return Batch{}, err
	}
	return b, nil
}

// reading contains the parts of a record that do not belong to its message.
type reading struct {
	source, queue string
	body, bad     bool
}

func (r *reading) field(m *queue.Message, name string, v gjson.Result) {
	switch name {
	case "messageId":
		m.ID = v.String()
	case "receiptHandle":
		m.Receipt = v.String()
	case "body":
		m.Body, r.body = v.String(), v.Type == gjson.String
	case "eventSource":
		r.source = v.String()
	case "eventSourceARN":
		r.queue = queueName(v.String())
	case "attributes":
		r.attributes(m, v)
	case "messageAttributes":
		v.ForEach(func(key, value gjson.Result) bool {
			a, ok := messageAttribute(value)
			if !ok {
				r.bad = true
				return false
			}
			if m.Attributes == nil {
				m.Attributes = make(map[string]queue.Attribute)
			}
			m.Attributes[key.String()] = a
			return true
		})
	}
}

// attributes reads the system attributes, which SQS itself sets.
func (r *reading) attributes(m *queue.Message, v gjson.Result) {
	m.Sent = r.millis(v.Get("SentTimestamp"))
	if first := v.Get("ApproximateFirstReceiveTimestamp"); first.Exists() {
		m.FirstReceived = r.millis(first)
	}
	m.ReceiveCount = int(min(r.number(v.Get("ApproximateReceiveCount")), 1<<30))
	m.Group = v.Get("MessageGroupId").String()
	m.MovedFrom = v.Get("DeadLetterQueueSourceArn").String()
	m.Sender = v.Get("SenderId").String()
}

func (r *reading) millis(v gjson.Result) time.Time {
	n := r.number(v)
	if n <= 0 || n > maxMillis {
		r.bad = true
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// number reads a whole number that SQS writes as text.
func (r *reading) number(v gjson.Result) int64 {
	n, err := strconv.ParseUint(v.String(), 10, 63)
	r.bad = r.bad || err != nil
	return int64(n)
}

func messageAttribute(v gjson.Result) (queue.Attribute, bool) {
	a := queue.Attribute{Type: v.Get("dataType").String(), String: v.Get("stringValue").String()}
	var err error
	if binary := v.Get("binaryValue"); binary.Type != gjson.Null {
		a.Binary, err = base64.StdEncoding.DecodeString(binary.String())
	}
	return a, err == nil && a.Type != ""
}

// queueName returns the last part of the ARN or URL of a queue.
func queueName(s string) string { return s[strings.LastIndexAny(s, ":/")+1:] }

// Answer returns the answer to an event source mapping, which names the failed messages.
func Answer(failed []string) []byte {
	type failure struct {
		ItemIdentifier string `json:"itemIdentifier"`
	}
	answer := struct {
		BatchItemFailures []failure `json:"batchItemFailures"`
	}{make([]failure, len(failed))}
	for i, id := range failed {
		answer.BatchItemFailures[i].ItemIdentifier = id
	}
	out, err := json.Marshal(answer)
	if err != nil {
		panic(err) // cannot happen: the answer contains only texts
	}
	return out
}
