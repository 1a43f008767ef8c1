// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"reflect"
	"testing"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/seam/queue"
)

func TestABodyIsTheTailOfItsObject(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		body  string
		attrs map[string]queue.Attribute
		head  string
	}{
		{"plain", "{\"title\":\"größer\"}\n", nil, `{"schema":1}`},
		{"empty", "", nil, `{"schema":1}`},
		{"lines", "\n\n\nx", nil, `{"schema":1}`},
		{"no text", "\xff\x00\xfe", nil, `{"schema":1}`},
		{
			"attributes", "x",
			map[string]queue.Attribute{
				"lull-source": queue.Text("govuk"), "n": {Type: "Number", String: "7"},
				"b": {Type: "Binary", Binary: []byte{0, 255}},
			},
			`{"schema":1,"attributes":{"b":{"type":"Binary","binary":"AP8="},"lull-source":{"type":"String","text":"govuk"},"n":{"type":"Number","text":"7"}}}`,
		},
		{
			"an attribute that is not a text", "x",
			map[string]queue.Attribute{"a": {Type: "String", String: "\xff"}},
			`{"schema":1,"attributes":{"a":{"type":"String","bytes":"/w=="}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := encodeBody(tt.body, tt.attrs)
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			if want := tt.head + "\n" + tt.body; string(b) != want {
				t.Errorf("got %q, want %q", b, want)
			}
			body, attrs, err := decodeBody(b)
			if err != nil || body != tt.body || !reflect.DeepEqual(attrs, tt.attrs) {
				t.Errorf("got %q, %v, %v, want %q, %v", body, attrs, err, tt.body, tt.attrs)
			}
		})
	}
}

func TestAnObjectThatIsNotAMessageIsRefused(t *testing.T) {
	t.Parallel()
	for _, b := range []string{"", "{\"schema\":1}", "x\ny", "{}\nx", "{\"schema\":2}\nx", "{\"schema\":-1}\nx"} {
		if body, _, err := decodeBody([]byte(b)); err == nil {
			t.Errorf("%q: got %q, want an error", b, body)
		}
	}
}

func TestIdsStayBelowTheirPrefix(t *testing.T) {
	t.Parallel()
	var requests []string
	s := NewBodies(answers(t, 200, "", &requests), DeadPrefix)
	for _, id := range []string{"", "../flights/x", "a/b"} {
		if err := s.Put(awstest.Context(t), id, "x", nil); err == nil {
			t.Errorf("%q: got no error", id)
		}
	}
	if len(requests) != 0 {
		t.Errorf("got %q, want no request", requests)
	}
}

func FuzzDecodeBody(f *testing.F) {
	for _, s := range []string{
		"{\"schema\":1}\nbody",
		"{\"schema\":1,\"attributes\":{\"a\":{\"type\":\"String\",\"bytes\":\"/w==\"}}}\n", "{\n", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		body, attrs, err := decodeBody(b)
		if err != nil {
			return
		}
		again, err := encodeBody(body, attrs)
		if err != nil {
			t.Fatalf("encode the decoded body: %v", err)
		}
		body2, attrs2, err := decodeBody(again)
		if err != nil || body2 != body || len(attrs2) != len(attrs) {
			t.Fatalf("got %q, %v, %v, want %q, %v", body2, attrs2, err, body, attrs)
		}
	})
}
