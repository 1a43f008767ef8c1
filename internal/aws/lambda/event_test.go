// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/seam/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/sqs.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheGoldenEventIsReadWhole(t *testing.T) {
	t.Parallel()
	got, err := ReadBatch(golden(t))
	if err != nil {
		t.Fatalf("ReadBatch: %v", err)
	}
	want := Batch{Queue: "lull-search-live", Messages: []queue.Message{
		{
			ID: "b1a7e3c0-0001-4c8e-9a51-0f6f0c1d2e3f", Receipt: "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a+first==",
			Body: "{\"id\":\"a\",\"title\":\"größer \\u0000 <&> 🚀\"}\n", Sent: time.UnixMilli(1777888800123).UTC(),
			FirstReceived: time.UnixMilli(1777888802456).UTC(), ReceiveCount: 1, Sender: "AROAEXAMPLE:publisher",
			Attributes: map[string]queue.Attribute{
				"lull-source": queue.Text("govuk"), "priority": {Type: "Number.int", String: "7"},
				"trace": {Type: "Binary", Binary: []byte{0, 1, 2, 255, 254}},
			},
		},
		{
			ID: "b1a7e3c0-0002-4c8e-9a51-0f6f0c1d2e3f", Receipt: "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a+second==",
			Sent: time.UnixMilli(1777629600000).UTC(), FirstReceived: time.UnixMilli(1777629600500).UTC(),
			ReceiveCount: 298,
			MovedFrom:    "arn:aws:sqs:eu-west-1:123456789012:lull-search-bulk",
			Sender:       "AROAEXAMPLE:publisher",
		},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// AWS's own Go types read the same event with the same result as ReadBatch, which decodes the event
// by hand.
func TestTheEventIsWhatAWSsTypesReadAndWrite(t *testing.T) {
	t.Parallel()
	var theirs events.SQSEvent
	if err := json.Unmarshal(golden(t), &theirs); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(theirs)
	if err != nil {
		t.Fatal(err)
	}
	for name, payload := range map[string][]byte{"golden": golden(t), "written by AWS's types": again} {
		ours, err := ReadBatch(payload)
		if err != nil || len(ours.Messages) != len(theirs.Records) {
			t.Fatalf("%s: got %d messages, %v", name, len(ours.Messages), err)
		}
		for i, r := range theirs.Records {
			m := ours.Messages[i]
			if m.ID != r.MessageId || m.Receipt != r.ReceiptHandle || m.Body != r.Body ||
				len(m.Attributes) != len(r.MessageAttributes) {
				t.Errorf("%s: got %+v, want %+v", name, m, r)
			}
			for key, a := range r.MessageAttributes {
				text := ""
				if a.StringValue != nil {
					text = *a.StringValue
				}
				if got := m.Attributes[key]; got.Type != a.DataType || got.String != text ||
					string(got.Binary) != string(a.BinaryValue) {
					t.Errorf("%s: attribute %s: got %+v, want %+v", name, key, got, a)
				}
			}
			if fmt.Sprint(m.Sent.UnixMilli()) != r.Attributes["SentTimestamp"] {
				t.Errorf("%s: sent %s, want %s", name, m.Sent, r.Attributes["SentTimestamp"])
			}
		}
	}
	var answer events.SQSEventResponse
	if err := json.Unmarshal(Answer([]string{"a", "b"}), &answer); err != nil || len(answer.BatchItemFailures) != 2 ||
		answer.BatchItemFailures[1].ItemIdentifier != "b" {
		t.Errorf("got %+v, %v", answer, err)
	}
}

// record returns a valid record of an SQS event with one change.
func record(change func(r map[string]any)) string {
	r := map[string]any{
		"messageId": "m", "receiptHandle": "r", "body": "b", "eventSource": "aws:sqs",
		"eventSourceARN": "arn:aws:sqs:eu-west-1:1:q",
		"attributes": map[string]any{
			"SentTimestamp": "1777888800123", "ApproximateReceiveCount": "1",
			"ApproximateFirstReceiveTimestamp": "1777888800123",
		},
	}
	change(r)
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // cannot happen: the maps hold only texts
	}
	return string(b)
}

func TestARecordThatCannotBeReadFailsAlone(t *testing.T) {
	t.Parallel()
	attribute := func(name string, v any) func(map[string]any) {
		return func(r map[string]any) {
			attributes, ok := r["attributes"].(map[string]any)
			if !ok {
				t.Fatal("the valid record has no attributes")
			}
			attributes[name] = v
		}
	}
	message := func(a map[string]any) func(map[string]any) {
		return func(r map[string]any) { r["messageAttributes"] = map[string]any{"a": a} }
	}
	for name, change := range map[string]func(map[string]any){
		"no receipt":                   func(r map[string]any) { delete(r, "receiptHandle") },
		"no body":                      func(r map[string]any) { delete(r, "body") },
		"a body that is not text":      func(r map[string]any) { r["body"] = 7 },
		"no attributes":                func(r map[string]any) { delete(r, "attributes") },
		"no time":                      attribute("SentTimestamp", ""),
		"a time before 1970":           attribute("SentTimestamp", "-5"),
		"a time of zero":               attribute("SentTimestamp", "0"),
		"a time that is not a number":  attribute("SentTimestamp", "1e12"),
		"a time too far in the future": attribute("SentTimestamp", "999999999999999999"),
		"a count that is not a number": attribute("ApproximateReceiveCount", "one"),
		"a count of zero":              attribute("ApproximateReceiveCount", "0"),
		"no base64":                    message(map[string]any{"dataType": "Binary", "binaryValue": "*"}),
		"an untyped attribute":         message(map[string]any{"stringValue": "x"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := record(func(r map[string]any) { r["messageId"] = "good" })
			got, err := ReadBatch([]byte(`{"Records":[` + good + `,` + record(change) + `,` + good + `]}`))
			if err != nil {
				t.Fatalf("ReadBatch: %v", err)
			}
			if len(got.Messages) != 2 || len(got.Unread) != 1 || got.Unread[0] != "m" {
				t.Errorf("got %d messages and unread %v, want 2 messages and the changed record unread", len(got.Messages), got.Unread)
			}
		})
	}
}

// AWS puts the message group of a message into the attributes of the SQS record. The group is the
// tenant.
func TestTheGroupOfAMessageIsRead(t *testing.T) {
	t.Parallel()
	got, err := ReadBatch([]byte(`{"Records":[` + record(func(r map[string]any) {
		if attributes, ok := r["attributes"].(map[string]any); ok {
			attributes["MessageGroupId"] = "tenant"
		}
	}) + `]}`))
	if err != nil || len(got.Messages) != 1 || got.Messages[0].Group != "tenant" {
		t.Errorf("got %+v, %v, want one message of the group tenant", got.Messages, err)
	}
}

func TestAnEventThatIsNotABatchIsAnError(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		"", "{", "null", "[]", "{}", `{"Records":null}`, `{"Records":{}}`, `{"Records":"hunter2"}`, `{"Records":[7]}`,
		`{"Records":[{}]}`,
		`{"Records":[` + record(func(r map[string]any) { r["messageId"] = "" }) + `]}`,
		`{"Records":[` + record(func(r map[string]any) { r["eventSource"] = "aws:s3" }) + `]}`,
		`{"Records":[` + record(func(map[string]any) {}) + `]`,
	} {
		got, err := ReadBatch([]byte(payload))
		if err == nil {
			t.Errorf("%s: got %+v, want an error", payload, got)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes the event: %v", payload, err)
		}
	}
	if got, err := ReadBatch([]byte(`{"Records":[]}`)); err != nil || len(got.Messages) != 0 {
		t.Errorf("an empty batch: got %+v, %v", got, err)
	}
}

func TestABatchDoesNotReferToThePayload(t *testing.T) {
	t.Parallel()
	payload := golden(t)
	got, err := ReadBatch(payload)
	if err != nil {
		t.Fatal(err)
	}
	for i := range payload {
		payload[i] = 'x' // the Lambda runtime reads the next event into the same buffer
	}
	if got.Messages[0].Receipt != "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a+first==" {
		t.Errorf("got %q", got.Messages[0].Receipt)
	}
}

func TestTheAnswerAlwaysHoldsTheList(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		failed []string
		want   string
	}{
		{nil, `{"batchItemFailures":[]}`},
		{[]string{}, `{"batchItemFailures":[]}`},
		{[]string{"a"}, `{"batchItemFailures":[{"itemIdentifier":"a"}]}`},
		{
			[]string{"a", "b\"\\\n<"},
			`{"batchItemFailures":[{"itemIdentifier":"a"},{"itemIdentifier":"b\"\\\n\u003c"}]}`,
		},
	} {
		if got := string(Answer(tt.failed)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func FuzzReadBatch(f *testing.F) {
	f.Add(golden(f))
	f.Add([]byte(`{"Records":[` + record(func(map[string]any) {}) + `]}`))
	f.Add([]byte(`{"Records":[{"messageId":"\ud800","eventSource":"aws:sqs"}]}`))
	f.Add([]byte(`{"Records":[null,7,"x",[],{}]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		b, err := ReadBatch(payload)
		if err != nil {
			return
		}
		for _, m := range b.Messages {
			if m.ID == "" || m.Receipt == "" || m.Sent.IsZero() || m.ReceiveCount < 1 {
				t.Errorf("ReadBatch returned an incomplete message: %+v", m)
			}
		}
		var answer events.SQSEventResponse
		if err := json.Unmarshal(Answer(append(b.Unread, ids(b.Messages)...)), &answer); err != nil {
			t.Fatalf("the answer is not JSON: %v", err)
		}
		if len(answer.BatchItemFailures) != len(b.Messages)+len(b.Unread) {
			t.Errorf("got %d failures, want %d", len(answer.BatchItemFailures), len(b.Messages)+len(b.Unread))
		}
	})
}

// event returns an SQS event with n messages of 871 bytes each.
func event(n int) []byte {
	body := `{"title":"` + strings.Repeat("größer ", 100) + `"}`
	records := make([]string, n)
	for i := range records {
		records[i] = record(func(r map[string]any) {
			r["messageId"], r["body"] = fmt.Sprintf("m-%d", i), body
			r["messageAttributes"] = map[string]any{"lull-source": map[string]any{
				"dataType":    "String",
				"stringValue": "native",
			}}
		})
	}
	return []byte(`{"Records":[` + strings.Join(records, ",") + `]}`)
}

func BenchmarkReadBatch(b *testing.B) {
	payload := event(1000)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadBatch(payload); err != nil {
			b.Fatal(err)
		}
	}
}

// This benchmark decodes the same event with aws-lambda-go's types, for comparison.
func BenchmarkReflection(b *testing.B) {
	payload := event(1000)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		var e events.SQSEvent
		if err := json.Unmarshal(payload, &e); err != nil {
			b.Fatal(err)
		}
	}
}
