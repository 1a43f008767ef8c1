//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/shard"
)

// OpenSearch is away for longer than messages stay invisible by themselves and than one execution
// lasts. Meanwhile the flight extends its messages, continues as a new execution, and nobody else
// receives them; when OpenSearch is back everything is written, the newest versions only, nothing
// was refused and nothing is a dead letter.
func TestHoldOutlivesTheQueuesVisibility(t *testing.T) {
	s := express(t)
	s.NeedServers(t)
	c := s.Collection("outage")
	// The sink was seen healthy and the index is there: what follows is the outage's.
	before := s.Begun(t, ground.Event{Collection: c, ID: "doc-0", Version: 1})
	s.Search.Stop(t)
	s.Direct(t,
		ground.Event{Collection: c, ID: "doc-0", Version: 2},
		ground.Event{Collection: c, ID: "doc-1", Version: 1},
		ground.Event{Collection: c, ID: "doc-2", Version: 1, Delete: true},
	)
	// Of a document of its own: a message behind a newer version may leave its flight for a moment.
	s.Publish(t, ground.Event{Collection: c, ID: "doc-3", Version: 2})
	const sent = 4
	inFlight := func() (bool, string) {
		d := s.Depth(t, s.Live)
		return d == ground.Depth{InFlight: sent}, fmt.Sprintf("%+v", d)
	}
	ground.Until(t, "all messages are received", inFlight)

	away := max(s.Config.Queues.Visibility, s.Config.Flight.ContinueAfter) + 13*time.Second
	ground.During(t, away, "all messages are held", func() (bool, string) {
		if n := s.Receive(t, s.Live); n > 0 {
			return false, fmt.Sprintf("another consumer was given %d", n)
		}
		return inFlight()
	})
	s.Search.Start(t)
	s.Committed(t, ground.Key(c, "doc-2"), 1)
	s.Settled(t, c, map[string]int{"doc-0": 2, "doc-1": 1, "doc-3": 2})

	s.Counted(t, before, "Deleted", sent)
	got := s.Counts(t).Since(before)
	// One flight stays and probes. Messages of another are away for some minutes, after a minute, and
	// are received again.
	if n := got["Received"]; n < sent || n > sent+got["Away"] {
		t.Errorf("receive was given %d messages, want %d, and those %d again that were away", n, sent, got["Away"])
	}
	if got["Extended"] < sent { // and none became visible in a time longer than V: each was extended at least once
		t.Errorf("visibility was extended %d times, want %d or more", got["Extended"], sent)
	}
	if got["Continued"] < 1 {
		t.Error("no flight went on as a new execution")
	}
	s.Never(t, before, "DeadLettered", "Rejected", "TwelveHours", "SinkNewer", "LeaseLost")
	if got["CircuitOpened"] < 1 || got["CircuitClosed"] < 1 {
		t.Errorf("the sink's circuit opened %d times and closed %d times, want both", got["CircuitOpened"],
			got["CircuitClosed"])
	}
	for _, id := range []string{"doc-0", "doc-1", "doc-3"} {
		if row := s.Row(t, ground.Key(c, id)); row.Refusals != 0 {
			t.Errorf("%s: %d refusals, want none: nobody refused it", id, row.Refusals)
		}
	}
	if h := s.Row(t, shard.HealthRow(ground.Sink)); h.OpenUntil != 0 {
		t.Errorf("the sink still counts as unhealthy until %s", h.OpenUntil.Time())
	}
	t.Logf("away for %s: %v", away, got)
}

// The table answers nothing for longer than receive waits. Messages wait in the queue, none is
// acknowledged, and all of them are written when it answers again: also what it was asked meanwhile
// and did late.
func TestFrozenTableLosesNothing(t *testing.T) {
	s := express(t)
	s.NeedServers(t)
	c := s.Collection("frozen-table")
	before := s.Begun(t, ground.Event{Collection: c, ID: "doc-0", Version: 1})
	thaw := freezeTable(t)
	s.Direct(t, ground.Event{Collection: c, ID: "doc-0", Version: 2},
		ground.Event{Collection: c, ID: "doc-1", Version: 1},
		ground.Event{Collection: c, ID: "doc-2", Version: 1, Delete: true})
	s.Grows(t, before, "Unreachable")
	s.Never(t, before, "Claimed", "Deleted", "DeadLettered")
	thaw()
	s.Committed(t, ground.Key(c, "doc-2"), 1)
	s.Settled(t, c, map[string]int{"doc-0": 2, "doc-1": 1})
	s.Never(t, before, "DeadLettered", "Rejected", "SinkNewer")
}
