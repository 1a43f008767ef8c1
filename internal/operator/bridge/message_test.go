// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
)

func TestEveryBodyArrivesAsItWas(t *testing.T) {
	t.Parallel()
	const run, beat = "01KAH3Z0QZ4M7N9P0R1S2T3V4W", "application/x-heartbeat"
	for name, tt := range map[string]struct {
		m       Message
		as      bool // the body is sent unchanged
		invalid string
		skip    bool
	}{
		"JSON":                {m: Message{Body: []byte(`{"a":"ä"}`)}, as: true},
		"not JSON":            {m: Message{Body: []byte(`hello`)}, as: true, invalid: "not JSON"},
		"empty":               {m: Message{}, invalid: "empty"},
		"not UTF-8":           {m: Message{Body: []byte{'"', 0xff, '"'}}, invalid: "UTF-8"},
		"a control character": {m: Message{Body: []byte("{\"a\":\x01}")}, invalid: "not JSON"},
		"U+FFFE":              {m: Message{Body: []byte("{\"a\":\"\ufffe\"}")}},
		"resync run":          {m: Message{Body: []byte(`{"a":1}`), Headers: map[string]any{"resyncrun": run}}},
		"heartbeat":           {m: Message{Body: []byte(`{}`), ContentType: beat}, as: true, skip: true},
		"heartbeat, empty":    {m: Message{ContentType: beat}, skip: true},
		"headers for properties": {
			m: Message{
				Body: []byte(`{}`), Headers: map[string]any{"routing_key": "guide.major", "event_type": int32(7)},
			},
			as: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := tt.m.outgoing()
			if !plain([]byte(out.Body)) || out.Refusal() != nil {
				t.Errorf("SQS would refuse the body %q", out.Body)
			}
			if got := out.Body == string(tt.m.Body); got != tt.as {
				t.Errorf("the body is sent unchanged: %t, want %t", got, tt.as)
			}
			got := event.Unwrapper{Depth: 4}.Unwrap(nil, out.Body, event.MetaOf(out.Attributes))
			if len(got) != 1 {
				t.Fatalf("got %d bodies", len(got))
			}
			switch b := got[0]; {
			case tt.skip:
				if b.Skip != "heartbeat" {
					t.Errorf("got %+v", b)
				}
			case tt.invalid != "":
				if b.Invalid == nil || !strings.Contains(b.Invalid.Error(), tt.invalid) {
					t.Errorf("got %+v", b.Invalid)
				}
			case b.Text != string(tt.m.Body):
				t.Errorf("got %q, %v", b.Text, b.Invalid)
			}
			if want, _ := tt.m.Headers["resyncrun"].(string); got[0].Meta.Run != want {
				t.Errorf("got run %q", got[0].Meta.Run)
			}
			if want := tt.m.header("routing_key"); got[0].Meta.RoutingKey != want || got[0].Meta.Type != "" {
				t.Errorf("got %+v", got[0].Meta)
			}
		})
	}
}

// Senders choose properties and headers, but cannot set lull's own attributes.
func TestPropertiesAreWhatEveryQueueTakes(t *testing.T) {
	t.Parallel()
	m := Message{
		Body: []byte(
			`{}`), Exchange: "published_documents", RoutingKey: "guide.\x00\x1b[31m\ufffe", Type: "links", ID: "m-1",
		ContentType: strings.Repeat("ü", 5000), Headers: map[string]any{
			"lull-event": "3", "lull-first-sent": "1", "lull-letter": "x", "lull-source": "other", "lull-group": "g",
			"more":        "x",
			"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		},
	}
	out := m.outgoing()
	want := map[string]string{
		"exchange": "published_documents", "routing_key": "guide.\ufffd\ufffd[31m\ufffd", "event_type": "links",
		"message_id":   "m-1",
		"content_type": strings.Repeat("ü", maxText/2), "traceparent": m.header("traceparent"),
	}
	for name, value := range want {
		if got := out.Attributes[name]; got.String != value || got.Type != "String" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if len(out.Attributes) != len(want) || out.Refusal() != nil {
		t.Errorf("got %+v", out.Attributes)
	}
}
