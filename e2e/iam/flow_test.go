// SPDX-License-Identifier: Apache-2.0

//go:build e2eiam

package iam

import (
	"testing"

	"github.com/lullhq/lull/e2e/ground"
)

// With the deployed roles, all of lull works. Without this test, a failure with fewer rights would
// prove nothing.
func TestTheFlowPassesWithTheDeployedRoles(t *testing.T) {
	s := stack
	c := s.Collection("flow")
	before := s.Counts(t)
	s.Publish(t, ground.Event{Collection: c, ID: "by-topic", Version: 1})
	s.Put(t, ground.Event{Collection: c, ID: "by-bus", Version: 1})
	s.Direct(t, ground.Event{Collection: c, ID: "by-queue", Version: 1},
		ground.Event{Collection: c, ID: "by-queue", Version: 2})
	s.Settled(t, c, map[string]int{"by-topic": 1, "by-bus": 1, "by-queue": 2})
	s.Done(t, before, 4)
	s.Never(t, before, "Unreachable", "LaunchLost", "Failed", "TurnsLost", "DeleteLost", "Released")
}
