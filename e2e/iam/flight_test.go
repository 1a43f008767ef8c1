// SPDX-License-Identifier: Apache-2.0

//go:build e2eiam

package iam

import (
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/journal"
)

// While the sink is away, a flight extends the visibility of its messages and continues as a new
// execution, with the rights of index. Without one of these rights, index says what it cannot do,
// and the messages are received again.
func TestAFlightThatOutlivesItsExecution(t *testing.T) {
	s := stack
	s.NeedServers(t)
	c := s.Collection("outlives")
	before := s.Begun(t, ground.Event{Collection: c, ID: "before", Version: 1})
	s.Search.Stop(t)
	s.Direct(t, ground.Event{Collection: c, ID: "first", Version: 1})
	s.Pending(t, ground.Key(c, "first"), 1)
	without := func(statement, action string, step journal.Step, detail string) {
		t.Helper()
		since := time.Now()
		giveBack := s.TakeAway(t, names.Index, ground.Right{Statement: statement, Action: action})
		waitForDecision(t, s, since, step, detail)
		giveBack()
	}
	without("HoldAndDelete", "sqs:ChangeMessageVisibility", journal.CallFailed, "change visibility")
	s.Direct(t, ground.Event{Collection: c, ID: "second", Version: 1})
	s.Counted(t, before, "Continued", 1)
	without("ContinueFlights", "s3:PutObject", journal.CallFailed, "write the checkpoint")
	without("StartFlights", "states:StartExecution", journal.LaunchLost, "")
	s.Watches(t, "launch-lost", lullMetric+"LaunchLost")
	s.Watches(t, "sink-down", lullMetric+"CircuitOpened")
	s.Search.Start(t)
	s.Settled(t, c, map[string]int{"before": 1, "first": 1, "second": 1})
	s.Never(t, before, "DeadLettered", "Rejected", "LeaseLost", "SinkNewer")
}
