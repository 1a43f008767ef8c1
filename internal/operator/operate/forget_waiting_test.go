// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
)

// A scheduled event keeps its whole message, and a flight each message with the events that ended.
func TestForgetFindsADocumentInTheScheduledMessageAndTheFlightOfAnother(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.commit(g.hold("f", put("alice", 1)), `{}`)
		usecasetest.OK(t, g.flights.Delete(t.Context(), "f"))
		both, at := rabbit(put("alice", 1), put("bob", 1)), time.Now().Add(time.Hour)
		for _, id := range []string{"alice", "bob"} {
			e := g.rig.EventOf(put(id, 1))
			usecasetest.OK(t, g.Schedule.Put(t.Context(), schedule.Item{
				ID: "s-" + id, Doc: e.Doc, Key: e.Key, NotBefore: at, Sink: "search", Lane: flight.Live, Body: both,
			}))
		}
		e := g.rig.EventOf(put("bob", 1))
		usecasetest.OK(t, g.flights.Put(t.Context(), &flight.Manifest{
			Schema: flight.SchemaVersion, Flight: "h", Sink: "search", Lane: flight.Live, Received: time.Now(),
			Records: []flight.Record{{
				Message: queue.Message{ID: "m", Receipt: "r", Body: both, Sent: time.Now(), ReceiveCount: 1},
				Events: []flight.Entry{{
					Index: 1, Doc: e.Doc, Key: e.Key, Class: e.Class, Op: e.Op, Due: micros(), Admitted: micros(),
				}},
			}},
		}))
		got := g.forgetTwice(api, "alice")
		if got.Remaining != 2 || got.Waits != 1 || !strings.Contains(remains(got), "content#bob") {
			t.Errorf("got %s, %s", places(got), remains(got))
		}
		usecasetest.OK(t, g.Schedule.Delete(t.Context(), "s-bob"))
		usecasetest.OK(t, g.flights.Delete(t.Context(), "h"))
		if got = g.forgetTwice(api, "alice"); got.Remaining != 0 {
			t.Errorf("after both went: %s", places(got))
		}
	})
}

// A scheduled event that is older than the committed version is not needed, because it will not be
// written.
func TestForgetDeletesTheOutdatedScheduledMessageOfAnother(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.commit(g.hold("f", put("bob", 2)), `{}`)
		usecasetest.OK(t, g.flights.Delete(t.Context(), "f"))
		for v, want := range map[int]bool{1: false, 2: false, 3: true} {
			e, id := g.rig.EventOf(put("bob", v)), fmt.Sprint("s-", v)
			usecasetest.OK(t, g.Schedule.Put(t.Context(), schedule.Item{
				ID: id, Doc: e.Doc, Key: e.Key, NotBefore: time.Now().Add(time.Hour), Sink: "search", Lane: flight.Live,
				Body: rabbit(put("alice", v), put("bob", v)),
			}))
			order := operate.Forgetting{Key: "content#alice", By: "ann"}
			usecasetest.Must(forgets(t.Context(), api, order))(t)
			if _, there, err := g.Schedule.Get(t.Context(), id); err != nil || there != want {
				t.Errorf("version %d: it is there %t, %v", v, there, err)
			}
			usecasetest.OK(t, g.Schedule.Delete(t.Context(), id))
		}
	})
}

// A scheduled event of another document cannot be read. Each sink of the forgotten document has a
// row, and the event is named once.
func TestForgetNamesAScheduledEventThatCannotBeRead(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.fanOut()
		g.commit(g.hold("f", put("alice", 1)), `{}`)
		usecasetest.OK(t, g.flights.Delete(t.Context(), "f"))
		e := g.rig.EventOf(put("bob", 1))
		usecasetest.OK(t, g.Schedule.Put(t.Context(), schedule.Item{
			ID: "s", Doc: e.Doc, Key: e.Key, NotBefore: time.Now().Add(time.Hour), Sink: "search", Lane: flight.Live,
			Body: put("bob", 1),
		}))
		g.Schedule = lostEvents{Store: g.Schedule, id: "s"}
		got := g.forgetTwice(api, "alice")
		if got.Remaining != 1 || strings.Count(remains(got), "scheduled/s") != 1 {
			t.Errorf("got %s, %s", places(got), remains(got))
		}
	})
}
