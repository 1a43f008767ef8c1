// SPDX-License-Identifier: Apache-2.0

package rabbitmq

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullhq/lull/event"
)

func TestEveryBodyArrivesAsItWas(t *testing.T) {
	t.Parallel()
	const run, beat = "01KAH3Z0QZ4M7N9P0R1S2T3V4W", "application/x-heartbeat"
	for name, tt := range map[string]struct {
		m       amqp.Delivery
		as      bool // the body is sent unchanged
		invalid string
		skip    bool
	}{
		"JSON":                {m: amqp.Delivery{Body: []byte(`{"a":"ä"}`)}, as: true},
		"not JSON":            {m: amqp.Delivery{Body: []byte(`hello`)}, as: true, invalid: "not JSON"},
		"empty":               {m: amqp.Delivery{}, invalid: "empty"},
		"not UTF-8":           {m: amqp.Delivery{Body: []byte{'"', 0xff, '"'}}, invalid: "UTF-8"},
		"a control character": {m: amqp.Delivery{Body: []byte("{\"a\":\x01}")}, invalid: "not JSON"},
		"U+FFFE":              {m: amqp.Delivery{Body: []byte("{\"a\":\"\ufffe\"}")}},
		"resync run":          {m: amqp.Delivery{Body: []byte(`{"a":1}`), Headers: amqp.Table{"resyncrun": run}}},
		"heartbeat":           {m: amqp.Delivery{Body: []byte(`{}`), ContentType: beat}, as: true, skip: true},
		"heartbeat, empty":    {m: amqp.Delivery{ContentType: beat}, skip: true},
		"headers for properties": {
			m: amqp.Delivery{
				Body: []byte(`{}`), Headers: amqp.Table{"routing_key": "guide.major", "event_type": int32(7)},
			},
			as: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := delivery{&tt.m}.outgoing(tt.m.Body)
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
			if want := (delivery{&tt.m}).header("routing_key"); got[0].Meta.RoutingKey != want || got[0].Meta.Type != "" {
				t.Errorf("got %+v", got[0].Meta)
			}
		})
	}
}

// Senders choose properties and headers, but cannot set lull's own attributes.
func TestPropertiesAreWhatEveryQueueTakes(t *testing.T) {
	t.Parallel()
	m := amqp.Delivery{
		Body: []byte(
			`{}`), Exchange: "published_documents", RoutingKey: "guide.\x00\x1b[31m\ufffe", Type: "links", MessageId: "m-1",
		ContentType: strings.Repeat("ü", 5000), Headers: amqp.Table{
			"lull-event": "3", "lull-first-sent": "1", "lull-letter": "x", "lull-source": "other", "lull-group": "g",
			"more":        "x",
			"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		},
	}
	out := delivery{&m}.outgoing(m.Body)
	want := map[string]string{
		"exchange": "published_documents", "routing_key": "guide.\ufffd\ufffd[31m\ufffd", "event_type": "links",
		"message_id":   "m-1",
		"content_type": strings.Repeat("ü", maxText/2), "traceparent": delivery{&m}.header("traceparent"),
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
