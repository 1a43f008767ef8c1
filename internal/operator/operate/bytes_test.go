// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
)

// notUTF8 is an event but for two bytes. If it changed on the way, it would become a document that
// was never sent.
const notUTF8 = "{\"type\":\"doc.changed\",\"subject\":\"a\",\"sequence\":1,\"data\":{\"title\":\"x\xff\xfey\"}}"

func TestPublishedBodyThatIsNotUTF8IsRefusedAsItIs(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		got, err := api.Publish(t.Context(), operate.Publication{Messages: outgoing(put("a", 1), notUTF8, put("b", 1))})
		if err != nil || got.Messages != 2 || len(got.Refused) != 1 {
			t.Fatalf("got %+v, error %v; want two sent, one refused", got, err)
		}
		if r := got.Refused[0]; r.Message != 1 || !strings.Contains(r.Why, "UTF-8") {
			t.Errorf("refusal %+v, want message 1, which is not UTF-8", r)
		}
		if n := g.sent("search live"); n != 2 {
			t.Errorf("the queue holds %d messages, want 2", n)
		}
	})
}

func TestDeadLetterIsShownByteForByteAlsoWhereItIsNotUTF8(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		for _, body := range []string{notUTF8, "", "<b>\t&\u2028 ü"} {
			l := deadletter.New(queue.Message{ID: "m", Body: body, Sent: g.Clock.Now()}, deadletter.Undecodable, "", "",
				"", 0, g.Clock.Now())
			l.Sink, l.Lane = "search", "live"
			usecasetest.Must(g.rig.Letters.Park(t.Context(), l))(t)
			got, err := api.Letter(t.Context(), l.ID)
			if err != nil || got.Body != body {
				t.Errorf("got %q, error %v; want %q", got.Body, err, body)
			}
		}
	})
}

func TestPublicationWithABodyOfNoMessageIsRefused(t *testing.T) {
	t.Parallel()
	var p operate.Publication
	for _, text := range []string{
		`{"messages":[],"base64":{"0":"YQ=="}}`, `{"messages":[{}],"base64":{"-1":"YQ=="}}`,
		`{"base64":[]}`,
	} {
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}
