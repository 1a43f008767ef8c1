// SPDX-License-Identifier: Apache-2.0

//go:build e2elong

package long

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
)

var openStack = sync.OnceValues(func() (*ground.Stack, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return stack.DeployPlain(ctx, ground.Settings{
		Stack: "lull-open", Kind: config.FlightExpress, Outage: config.TableOutageOpen,
	})
})

// currentStack returns a stack of the current build. Until its upgrade, the other stack runs the
// earlier build.
func currentStack(t *testing.T) *ground.Stack {
	t.Helper()
	s, err := openStack()
	ground.Must(t, err)
	return s
}

// With tableOutage: open, lull writes documents while the table is unreachable, and acknowledges no
// message. When the table is reachable again, lull compares every message with the rows. If an
// older version has undone a delete, lull writes the delete again.
func TestOpenOutage(t *testing.T) {
	s := currentStack(t)
	c := s.Collection("open")
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1},
		ground.Event{Collection: c, ID: "deleted", Version: 5, Delete: true})
	s.Committed(t, ground.Key(c, "deleted"), 5)
	s.Settled(t, c, map[string]int{"doc": 1})
	before := s.Counts(t)
	s.Watches(t, "outage-writes", "lull OutageWrite")
	s.Watches(t, "table-unreachable", "lull Unreachable")
	rows := []ground.Right{
		{Statement: "WriteRows", Action: "dynamodb:UpdateItem"}, {Statement: "Rows", Action: "dynamodb:BatchGetItem"},
	}
	receive, index := s.TakeAway(t, names.Receive, rows...), s.TakeAway(t, names.Index, rows...)
	const sent = 3
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 2}, ground.Event{Collection: c, ID: "new", Version: 1},
		ground.Event{Collection: c, ID: "deleted", Version: 4})
	ground.Until(t, "the sink has the documents that were sent during the outage", func() (bool, string) {
		hits := s.Search.Documents(t, s.Index(c))
		got := hits["doc"].Meta.Version + " " + hits["new"].Meta.Version + " " + hits["deleted"].Meta.Version
		return got == "2 1 4", got
	})
	s.Never(t, before, "Deleted", "Committed", "DeadLettered")
	if d := s.Depth(t, s.Live); d.Visible+d.InFlight != sent {
		t.Errorf("the queue holds %+v, want all %d messages", d, sent)
	}
	receive()
	index()
	s.Committed(t, ground.Key(c, "doc"), 2)
	s.Committed(t, ground.Key(c, "new"), 1)
	s.Drained(t)
	ground.Until(t, "the delete is written again", func() (bool, string) {
		hits := s.Search.Documents(t, s.Index(c))
		_, there := hits["deleted"]
		return !there, fmt.Sprint(len(hits))
	})
	s.Holds(t, c, map[string]int{"doc": 2, "new": 1})
	s.Counted(t, before, "Reasserted", 1)
	s.Never(t, before, "DeadLettered", "SinkNewer", "Rejected")
}

// OpenSearch is killed while documents change continuously, and is started again with the data on
// its disk. No acknowledged document is lost, no document returns to an older version, and there is
// no dead letter.
func TestKilledSinkLosesNothing(t *testing.T) {
	s := currentStack(t)
	s.NeedServers(t)
	c := s.Collection("killed-sink")
	before := s.Counts(t)
	l := startLoad(t, s, c)
	l.commits(t, 2)
	s.Search.Kill(t)
	s.Grows(t, before, "CircuitOpened")
	s.Search.Start(t)
	l.commits(t, 2)
	s.Holds(t, c, l.stop(t))
	s.Never(t, before, "DeadLettered", "Rejected", "SinkNewer")
	t.Logf("the functions counted %v", s.Counts(t).Since(before))
}
