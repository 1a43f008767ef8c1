// SPDX-License-Identifier: Apache-2.0

//go:build e2elong

package long

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
)

var stack *ground.Stack

func TestMain(m *testing.M) {
	ground.Main(m, func(ctx context.Context, g *ground.Ground) (err error) {
		stack, err = g.DeployEarlier(ctx, ground.Settings{Stack: "lull-upgrade", Kind: config.FlightExpress})
		return err
	})
}

// The stack is upgraded and rolled back while documents change continuously. No change is lost, and
// the sink never returns to an older version. Each build reads the rows, manifests, messages and
// dead letters of the other build.
func TestUpgradeAndRollBackUnderLoad(t *testing.T) {
	s := stack
	c := s.Collection("upgrade")
	deleted, before := ground.Key(c, "deleted"), s.Counts(t)
	s.Direct(t, ground.Event{Collection: c, ID: "deleted", Version: 5, Delete: true})
	s.Committed(t, deleted, 5)
	s.DirectBodies(t, "{no json "+c)
	var letters []operate.Letter
	ground.Until(t, "the earlier build parks a dead letter", func() (bool, string) {
		s.JSON(t, &letters, "dead", "list")
		return len(letters) == 1, fmt.Sprint(len(letters))
	})
	l := startLoad(t, s, c)
	// The receive of the earlier build sends this event to its queue again, with a delay. The
	// receive of the current build gets it.
	due := time.Now().Add(25 * time.Second)
	s.Direct(t, ground.Event{Collection: c, ID: "later", Version: 1, NotBefore: due})
	s.Counted(t, before, "Scheduled", 1)

	l.commits(t, 3)
	t.Log("upgrade")
	s.Upgrade(t)
	l.commits(t, 3)
	s.Committed(t, ground.Key(c, "later"), 1)
	s.Direct(t, ground.Event{Collection: c, ID: "deleted", Version: 4},
		ground.Event{Collection: c, ID: "deleted-later", Version: 5, Delete: true})
	s.Committed(t, ground.Key(c, "deleted-later"), 5)
	var shown operate.Letter
	s.JSON(t, &shown, "dead", "show", letters[0].ID)
	if shown.Body != "{no json "+c {
		t.Errorf("the dead letter of the earlier build holds %q", shown.Body)
	}
	s.Says(t, 0, "dropped: 1", "dead", "drop", letters[0].ID)

	t.Log("roll back")
	s.RollBack(t)
	l.commits(t, 3)
	s.Direct(t, ground.Event{Collection: c, ID: "deleted-later", Version: 4})
	t.Log("upgrade once more")
	s.Upgrade(t)
	l.commits(t, 3)

	want := l.stop(t)
	want["later"] = 1
	s.Holds(t, c, want)
	got := s.Counts(t).Since(before)
	t.Logf("the functions counted %v", got)
	s.Never(t, before, "SinkNewer", "Rejected", "Panics", "ConfigurationErrors", "UnknownSchema", "InvalidEvents")
	if got["Parked"] != 1 {
		t.Errorf("%d dead letters, want the one that was sent before", got["Parked"])
	}
}

// If an operator rolls back to this build, it may find rows that newer code wrote. A function does
// not change such a row, says so, and loses no message.
func TestARowOfNewerCodeIsLeftAlone(t *testing.T) {
	s := stack
	c := s.Collection("newer")
	key := ground.Key(c, "doc")
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1})
	s.Settled(t, c, map[string]int{"doc": 1})
	was, before := s.Row(t, key).Schema, s.Counts(t)
	s.Schema(t, key, 99)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 2})
	s.Grows(t, before, "UnknownSchema")
	s.Holds(t, c, map[string]int{"doc": 1})
	s.Schema(t, key, was)
	s.Settled(t, c, map[string]int{"doc": 2})
}
