// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/shard"
)

// OpenSearch is down for longer than the queue's visibility and longer than one execution lasts.
// During this time, the flight extends the visibility of its messages and continues as a new
// execution, and no other consumer receives the messages. When OpenSearch is up again, lull writes
// only the newest versions. No document counts as refused, and there is no dead letter.
func TestHoldOutlivesTheQueuesVisibility(t *testing.T) {
	s := express(t)
	s.NeedServers(t)
	c := s.Collection("outage")
	// Before the outage, the sink was healthy and the index existed. So all later counts come from
	// the outage.
	before := s.Begun(t, ground.Event{Collection: c, ID: "doc-0", Version: 1})
	s.Search.Stop(t)
	s.Direct(t,
		ground.Event{Collection: c, ID: "doc-0", Version: 2},
		ground.Event{Collection: c, ID: "doc-1", Version: 1},
		ground.Event{Collection: c, ID: "doc-2", Version: 1, Delete: true},
	)
	// This message is of another document, because a superseded message may leave its flight for a
	// moment.
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
	// One flight continues and probes the sink. After a minute, the messages of any other flight
	// wait in the queue for some minutes, and are then received again.
	if n := got["Received"]; n < sent || n > sent+got["Away"] {
		t.Errorf("receive was given %d messages, want %d, and those %d again that were away", n, sent, got["Away"])
	}
	if got["Extended"] < sent { // the outage is longer than V, so each message was extended at least once
		t.Errorf("visibility was extended %d times, want %d or more", got["Extended"], sent)
	}
	if got["Continued"] < 1 {
		t.Error("no flight continued as a new execution")
	}
	s.Never(t, before, "DeadLettered", "Rejected", "TwelveHours", "SinkNewer", "LeaseLost")
	if got["CircuitOpened"] < 1 || got["CircuitClosed"] < 1 {
		t.Errorf("the sink's circuit opened %d times and closed %d times, want both", got["CircuitOpened"],
			got["CircuitClosed"])
	}
	for _, id := range []string{"doc-0", "doc-1", "doc-3"} {
		if row := s.Row(t, ground.Key(c, id)); row.Refusals != 0 {
			t.Errorf("%s: %d refusals, want none: the sink was only down", id, row.Refusals)
		}
	}
	if h := s.Row(t, shard.HealthRow(ground.Sink)); h.OpenUntil != 0 {
		t.Errorf("the sink still counts as unhealthy until %s", h.OpenUntil.Time())
	}
	t.Logf("away for %s: %v", away, got)
}

// The table does not answer for longer than receive waits. Messages wait in the queue, and no
// message is acknowledged. When the table answers again, all documents are written, although the
// table may apply earlier requests late.
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
