// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
)

// An Express execution fails, because index fails until the state machine has no retry left. lull
// recovers without an operator: the message becomes visible, a new flight starts for the message,
// and the new flight writes the document.
func TestDeadExpressExecutionIsRecovered(t *testing.T) {
	s := express(t)
	s.PruneRule(t, false) // its samples are executions that die too
	c := s.Collection("dead-flight")
	before := s.Counts(t)
	flights := flightIDs(t, s)
	restore := breakAlias(t, s, names.Index)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1})

	waitUntilDead(t, s, flights)
	if row := s.Row(t, ground.Key(c, "doc")); row.Committed != "" || row.Claimed != "" {
		t.Fatalf("committed %q, claimed %q while index is broken", row.Committed, row.Claimed)
	}
	restore()
	s.Settled(t, c, map[string]int{"doc": 1})
	s.Counted(t, before, "Launched", 2)
	s.Counted(t, before, "Received", 2)
	s.Wrote(t, c, 0, 1)
	// The manifest of the dead flight remains until prune deletes it, when it is older than any
	// flight. The flight that ended has deleted its own manifest.
	if got := len(flightIDs(t, s)) - len(flights); got != 1 {
		t.Errorf("%d manifests remain, want the dead flight's only", got)
	}
}

// SQS loses the message of a flight that died. Only the manifest of the flight still has the
// version, and `lull rescue` writes the version from the manifest.
func TestRescueWritesWhatNoMessageBringsBack(t *testing.T) {
	s := express(t)
	s.PruneRule(t, false) // its samples are executions that die too
	c := s.Collection("rescued")
	before, known := s.Counts(t), flightIDs(t, s)
	restore := breakAlias(t, s, names.Index)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1})
	var id flight.ID
	ground.Until(t, "a flight has its manifest", func() (bool, string) {
		for _, f := range flightIDs(t, s) {
			if !slices.Contains(known, f) {
				id = f
			}
		}
		return id != "", fmt.Sprint(len(known), " flights, none of them new")
	})
	loseMessages(t, s, id)
	s.Drained(t)
	waitUntilDead(t, s, known)
	restore()
	s.Says(t, 0, "", "rescue", string(id))
	s.Settled(t, c, map[string]int{"doc": 1})
	s.Counted(t, before, "Received", 1)
	if a := s.Lull(t, "rescue", string(id)); a.Code == 0 ||
		!strings.Contains(a.Errors, "nothing in the flight is left") {
		t.Errorf("a second rescue: exit %d: %s%s", a.Code, a.Out, a.Errors)
	}
}

// index is killed while its request to the sink is running. After the lease has expired, the retry
// claims the document again and writes it.
func TestKilledIndexIsRecovered(t *testing.T) {
	s := express(t)
	s.NeedServers(t)
	c := s.Collection("killed")
	key := ground.Key(c, "doc")
	before := s.Begun(t, ground.Event{Collection: c, ID: "other", Version: 1})
	thaw := s.Search.Freeze(t)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1})
	ground.Until(t, "the document is claimed", func() (bool, string) {
		row := s.Row(t, key)
		return row.Owner != "", fmt.Sprintf("pending %q", row.Pending.VersionText())
	})
	if n := killFunction(t, s.Names.Function(ground.Sink, names.Index)); n == 0 {
		t.Fatal("no process of index was found to kill")
	}
	if row := s.Row(t, key); row.Owner == "" || row.Committed != "" {
		t.Fatalf("index had finished before it was killed: owner %q, committed %q", row.Owner,
			row.Committed.VersionText())
	}
	thaw()
	s.Settled(t, c, map[string]int{"doc": 1, "other": 1})
	s.Counted(t, before, "Deleted", 1)
	s.Counted(t, before, "Received", 1) // the flight continued, so the message was not received again
	// The sink may have applied the request of the killed invocation. Then the document was written
	// twice, the second time with a greater fence.
	if n := s.Search.Writes(t, s.Index(c)); n != 2 && n != 3 {
		t.Errorf("OpenSearch counts %d writes, want 2 or 3", n)
	}
	s.Never(t, before, "LeaseLost", "SinkNewer", "DeadLettered")
}

// An operator stops a Standard execution while it waits. lull recovers as from a dead Express
// execution. A Standard execution wakes once, at the last due time.
func TestStoppedStandardExecutionIsRecovered(t *testing.T) {
	s := standard(t)
	c := s.Collection("stopped")
	machine := fmt.Sprintf("arn:aws:states:%s:%s:stateMachine:%s", s.Account.Region, s.AccountID,
		s.Names.StateMachine(ground.Sink, config.FlightStandard))
	before := s.Counts(t)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1})
	running := &sfn.ListExecutionsInput{StateMachineArn: &machine, StatusFilter: types.ExecutionStatusRunning}
	var execution *string
	ground.Until(t, "an execution runs", func() (bool, string) {
		out, err := s.Steps.ListExecutions(t.Context(), running)
		if err != nil || len(out.Executions) != 1 {
			return false, fmt.Sprintf("%d executions, %v", len(out.Executions), err)
		}
		execution = out.Executions[0].ExecutionArn
		return true, ""
	})
	if _, err := s.Steps.StopExecution(t.Context(),
		&sfn.StopExecutionInput{ExecutionArn: execution, Cause: aws.String("stopped by a test")}); err != nil {
		t.Fatal(err)
	}
	ground.Until(t, "the execution has ended", func() (bool, string) {
		out, err := s.Steps.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: execution})
		if err != nil {
			return false, err.Error()
		}
		if out.Status == types.ExecutionStatusSucceeded {
			t.Fatal("the execution had finished before it was stopped")
		}
		return out.Status == types.ExecutionStatusAborted, string(out.Status)
	})
	if row := s.Row(t, ground.Key(c, "doc")); row.Committed != "" {
		t.Fatal("committed although its execution was stopped")
	}
	s.Settled(t, c, map[string]int{"doc": 1})
	s.Counted(t, before, "Launched", 2)
	s.Counted(t, before, "Received", 2)

	// With Standard executions, a burst is also one write.
	writes := s.Search.Writes(t, s.Index(c))
	s.Direct(t, shuffledVersions(c, "burst", 5)...)
	s.Settled(t, c, map[string]int{"doc": 1, "burst": 5})
	s.Wrote(t, c, writes, 1)
}

// If a function refuses its settings, it keeps every message and counts ConfigurationErrors. No
// message is lost.
func TestBadSettingsLoseNothing(t *testing.T) {
	s := express(t)
	c := s.Collection("configuration-errors")
	before := s.Counts(t)
	restore := breakAlias(t, s, names.Receive)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1},
		ground.Event{Collection: c, ID: "gone", Version: 1, Delete: true})
	s.Grows(t, before, "ConfigurationErrors")
	restore()
	if row := s.Row(t, ground.Key(c, "doc")); row.Exists() {
		t.Errorf("a function with bad settings wrote a row: %+v", row)
	}
	s.Committed(t, ground.Key(c, "gone"), 1)
	s.Settled(t, c, map[string]int{"doc": 1})
}
