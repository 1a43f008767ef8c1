// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
)

func sns(body string) string {
	quoted, err := json.Marshal(body)
	if err != nil {
		return ""
	}
	return `{"Type":"Notification","TopicArn":"arn:aws:sns:eu-west-1:1:t","Message":` + string(quoted) + `}`
}

func TestRawBodyIsPassedOnAsItIs(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"type":"x"}`, `[]`, `null`, `12`, `"text"`, `{"detail":{}}`, `{"Message":"{}"}`,
		`{"Records":[{"eventSource":"aws:sqs"}]}`, `["a",{"s3BucketName":"b","s3Key":"k"}]`,
	} {
		got := event.Unwrapper{Depth: 1}.Unwrap(nil, " "+body+"\n", event.Meta{Type: "t"})
		if len(got) != 1 || got[0] != (event.Body{Text: body, Meta: event.Meta{Type: "t"}}) {
			t.Errorf("%s: got %+v, want it as it is", body, got)
		}
	}
}

func TestEnvelopesComeOffUpToTheDepth(t *testing.T) {
	t.Parallel()
	body := `{"a":1}`
	for n := range 6 {
		text := body
		for range n {
			text = sns(text)
		}
		for depth := range 6 {
			got := event.Unwrapper{Depth: depth}.Unwrap(nil, text, event.Meta{})
			if n <= depth && (len(got) != 1 || got[0].Text != body) {
				t.Errorf("%d envelopes, depth %d: got %+v, want the event", n, depth, got)
			}
			if bad := got[0].Invalid; n > depth && (len(got) != 1 || bad == nil || bad.Reason != event.Undecodable) {
				t.Errorf("%d envelopes, depth %d: got %+v, want undecodable", n, depth, got)
			}
		}
	}
}

func TestInnermostEnvelopeSaysWhatTheBodyIs(t *testing.T) {
	t.Parallel()
	inner := `{"basicProperties":{"contentType":"inner","type":null,"headers":{"routing_key":{"bytes":[107,49]},"resyncrun":"r"}},"data":"e30="}`
	outer := strings.TrimSuffix(sns(inner), "}") +
		`,"MessageAttributes":{"content_type":{"Type":"String","Value":"outer"},"event_type":{"Type":"String","Value":"e"}}}`
	meta := event.MetaOf(map[string]queue.Attribute{
		"content_type": queue.Text("attribute"),
		"routing_key":  queue.Text("k0"), "resyncrun": queue.Text("no"),
	})
	got := event.Unwrapper{Depth: 4}.Unwrap(nil, outer, meta)
	want := event.Body{Text: "{}", Meta: event.Meta{ContentType: "inner", Type: "e", RoutingKey: "k1", Run: "r"}}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if meta.Run != "" {
		t.Errorf("got run %q from an attribute, want none: order keys come from the body alone", meta.Run)
	}
}

func TestEveryMessageOfAnEnvelopeIsABody(t *testing.T) {
	t.Parallel()
	rabbits := func(n int) string {
		return `{"rmqMessagesByQueue":{"a::/":[` +
			strings.TrimSuffix(strings.Repeat(`{"basicProperties":{},"data":"e30="},`, n), ",") +
			`],"b::/":[],"c::/":null}}`
	}
	tests := []struct {
		name, body string
		want       int
	}{
		{"records of S3", `{"Records":[{"eventSource":"aws:s3"},{"eventSource":"aws:s3"}]}`, 2},
		{"records of a stream", `{"Records":[{"eventSource":"aws:dynamodb"}]}`, 1},
		{"RabbitMQ", rabbits(3), 3},
		{"as many as allowed", rabbits(event.MaxEvents), event.MaxEvents},
		{"one too many", rabbits(event.MaxEvents + 1), 0},
		{"one too many inside", sns(rabbits(event.MaxEvents + 1)), 0},
		{"none", rabbits(0), 0},
	}
	for _, tt := range tests {
		got := event.Unwrapper{Depth: 4}.Unwrap(nil, tt.body, event.Meta{})
		bad := slices.ContainsFunc(got, func(b event.Body) bool { return b.Invalid != nil })
		if bad != (tt.want == 0) || len(got) != max(tt.want, 1) {
			t.Errorf("%s: got %d bodies, want %d, or one Invalid", tt.name, len(got), tt.want)
		}
	}
}

// A megabyte of headers has a third of a million headers. None of them may take memory that is
// kept. The test is not parallel, because it counts the allocations of the whole process.
func TestManyHeadersCostLittle(t *testing.T) {
	body := `{"eventSource":"aws:kafka","topic":"t","offset":1,"value":"e30=","headers":[` +
		strings.TrimSuffix(strings.Repeat(`{"a":[1]},`, 100_000), ",") + `]}`
	var got []event.Body
	allocated := testing.AllocsPerRun(1, func() {
		got = event.Unwrapper{Depth: 4}.Unwrap(nil, body, event.Meta{})
	})
	if len(got) != 1 || got[0].Text != "{}" || allocated > 1000 {
		t.Errorf("got %d bodies with %v allocations, want one with a few", len(got), allocated)
	}
}

func FuzzUnwrap(f *testing.F) {
	for _, seed := range []string{
		`{}`, sns(`{}`), sns(sns(`[1]`)), `{"detail-type":"x","source":"aws.s3","detail":{}}`,
		`{"detail-type":"x","source":"y","detail":"{}"}`,
		`{"Records":[{"eventSource":"aws:s3"},1]}`,
		`{"rmqMessagesByQueue":{"q":[{"basicProperties":{"headers":{"type":{"bytes":[1,300,-1]}}},"data":"e30="}]}}`,
		`["x.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]`, `{"Service":"Amazon S3","Event":"s3:TestEvent"}`,
		`{"basicProperties":{},"data":"e30="}`,
		`{"eventSource":"aws:kafka","topic":"t","offset":1,"key":"aw==","value":"e30=","headers":[{"resyncrun":[1,-1]},1]}`,
		`{"eventSource":"aws:kinesis","sequenceNumber":"7","partitionKey":"k","data":"e30="}`,
		`{"eventSource":"aws:amq","data":"e30=","type":"t","properties":{"resyncrun":"r"}}`,
		`{"KinesisBatchInfo":{"startSequenceNumber":"1","streamArn":"x"}}`,
	} {
		f.Add(seed, byte(4))
	}
	f.Fuzz(func(t *testing.T, body string, depth byte) {
		u := event.Unwrapper{Depth: int(depth % 8), Load: func(p event.Pointer) (string, *event.Invalid) {
			return p.Key,
				nil
		}}
		got := u.Unwrap(nil, body, event.Meta{})
		if len(got) == 0 || len(got) > event.MaxEvents {
			t.Fatalf("%q: got %d bodies", body, len(got))
		}
		for i, b := range got {
			n := 0
			for _, is := range []bool{b.Text != "", b.Skip != "", b.Invalid != nil} {
				if is {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("%q: body %d is %d of text, skip and Invalid: %+v", body, i, n, b)
			}
			if b.Text != "" && !json.Valid([]byte(b.Text)) {
				t.Fatalf("%q: body %d is not JSON: %q", body, i, b.Text)
			}
		}
	})
}
