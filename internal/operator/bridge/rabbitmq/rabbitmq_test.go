// SPDX-License-Identifier: Apache-2.0

package rabbitmq

import (
	"maps"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestWhatIsParkedReachesNoOtherQueue(t *testing.T) {
	t.Parallel()
	sent := amqp.Table{"CC": []any{"search"}, "BCC": []any{"search"}, "attempt": uint32(1<<32 - 1), "part": uint16(3)}
	was := maps.Clone(sent)
	d := &amqp.Delivery{Headers: sent, Exchange: "pages", RoutingKey: "answer"}
	got := parkedHeaders(d, "too large", 128<<10)
	for name, want := range map[string]any{
		"CC": nil, "BCC": nil, "attempt": uint32(1<<32 - 1), "x-lull-reason": "too large", "x-lull-exchange": "pages",
		"x-lull-routing-key": "answer",
	} {
		if got[name] != want {
			t.Errorf("header %s is %v, want %v", name, got[name], want)
		}
	}
	if got["x-lull-CC"] == nil || got["x-lull-BCC"] == nil || len(sent) != len(was) {
		t.Errorf("got %v from %v, want every header of the sender, and the sender's headers unchanged", got, sent)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("the client cannot send these headers: %v", err)
	}
	sent["long"] = []any{amqp.Table{"x": strings.Repeat("x", 127<<10)}}
	got = parkedHeaders(d, "too large", 128<<10)
	if got["CC"] != nil || got["BCC"] != nil || got["x-lull-reason"] != nil || got["long"] == nil || sent["CC"] == nil {
		t.Errorf("the headers fill a frame, and %d are left: want only the sender's headers without CC and BCC", len(got))
	}
}
