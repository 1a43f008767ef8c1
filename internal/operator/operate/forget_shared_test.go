// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// rabbit is RabbitMQ's envelope around several events.
func rabbit(events ...string) string {
	var all []string
	for _, e := range events {
		all = append(all, `{"basicProperties":{},"data":"`+base64.StdEncoding.EncodeToString([]byte(e))+`"}`)
	}
	return `{"eventSource":"aws:rmq","rmqMessagesByQueue":{"q::/":[` + strings.Join(all, ",") + `]}}`
}

// park parks the dead letter of one event of a message: without a key if the body of the event is
// empty.
func (g *ground) park(m queue.Message, event string, at int) string {
	g.Helper()
	l := deadletter.New(m, deadletter.Undecodable, "x", "", "", at, time.Now())
	if event != "" {
		e := g.rig.EventOf(event)
		l = deadletter.New(m, deadletter.RejectedBySink, "x", e.Doc, e.Key, at, time.Now())
	}
	l.Sink, l.Lane = "search", string(flight.Live)
	usecasetest.Must(g.rig.Letters.Park(g.Context(), l))(g)
	return l.ID
}

// forgetTwice forgets a document, and again: what remains must still be named the second time.
func (g *ground) forgetTwice(api operate.API, id string) (f operate.Forgotten) {
	g.Helper()
	var before string
	for i := range 2 {
		f = usecasetest.Must(forgets(g.Context(), api, operate.Forgetting{Key: usecasetest.Doc(id), By: "ann"}))(g)
		if text := fmt.Sprint(f.Remaining, remains(f)); i > 0 && text != before {
			g.Errorf("the second time %s remain, the first time %s", text, before)
		} else {
			before = text
		}
	}
	return f
}

func remains(f operate.Forgotten) string {
	var all []string
	for _, s := range f.Steps {
		all = append(all, s.Remains...)
	}
	return strings.Join(all, "\n")
}

// Alice's event lies inside the dead letter of Bob: one message has both.
func TestForgetFindsADocumentInTheDeadLetterOfAnother(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.commit(g.hold("f", put("alice", 1)), `{}`)
		usecasetest.OK(t, g.flights.Delete(t.Context(), "f"))
		id := g.park(queue.Message{ID: "m", Body: rabbit(put("alice", 1), put("bob", 1))}, put("bob", 1), 1)
		only := queue.Message{ID: "n", Body: rabbit(put("alice", 1), put("carol", 1)), Attributes: map[string]queue.Attribute{
			queue.AttrEvent: queue.Text("1"), // a copy of the message for the event of Carol alone
		}}
		copied := g.park(only, put("carol", 1), 1)
		g.park(queue.Message{ID: "o", Body: put("dave", 1)}, put("dave", 1), 0)
		got := g.forgetTwice(api, "alice")
		if said := remains(got); got.Remaining != 2 || got.Waits != 0 || !strings.Contains(said, id) ||
			!strings.Contains(said, copied) {
			t.Errorf("got %s, %+v", places(got), got)
		}
		for _, l := range []string{id, copied} {
			usecasetest.OK(t, g.rig.Letters.Drop(t.Context(), l))
		}
		if got = g.forgetTwice(api, "alice"); got.Remaining != 0 {
			t.Errorf("after the dead letters were dropped: %s", places(got))
		}
	})
}

// The dead letter of a message without a key is of no document, and its events are in base64.
func TestForgetDecodesADeadLetterWithoutAKey(t *testing.T) {
	faulty := func(id string) string {
		return `{"type":"doc.changed","subject":"` + id + `","data":{"title":"secret"}}`
	}
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.commit(g.hold("f", put("alice-1", 1)), `{}`)
		usecasetest.OK(t, g.flights.Delete(t.Context(), "f"))
		want := []string{
			g.park(queue.Message{ID: "1", Body: rabbit(faulty("bob"), faulty("alice-1"))}, "", 0),
			g.park(queue.Message{ID: "2", Body: rabbit(`{"subject":"alice-1"`, faulty("bob"))}, "", 0),
			g.park(queue.Message{ID: "3", Body: `{"subject":"\u0061lice-1"`}, "", 0),
		}
		g.park(queue.Message{ID: "4", Body: rabbit(`{"subject":"dave"`)}, "", 0)
		got := g.forgetTwice(api, "alice-1")
		said := remains(got)
		for _, id := range want {
			if !strings.Contains(said, "lull dead drop "+id) {
				t.Errorf("said %s, want dead letter %s", said, id)
			}
		}
		if got.Remaining != len(want) {
			t.Errorf("got %s", places(got))
		}
	})
}
