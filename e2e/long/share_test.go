// SPDX-License-Identifier: Apache-2.0

//go:build e2elong

package long

import (
	"fmt"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/deploy/names"
)

// While a deploy is half done, each invocation runs one of two builds. Both work on the same
// messages, rows, manifests and dead letters, in an upgrade and in a rollback. No change is lost,
// and the sink never returns to an older version.
//
// CodeDeploy shifts the aliases before CloudFormation changes the rest of the stack. Here the rest
// has changed already, so the former build also works with the new roles and names. The earlier
// build knows one state machine of a sink, and this build two of other names. Each build loses the
// flights that it starts on the other's stack (LaunchLost), and SQS delivers their messages again.
func TestTwoBuildsShareTheInvocations(t *testing.T) {
	s := stack // with the earlier build
	c := s.Collection("shared")
	before := s.Counts(t)
	l := startLoad(t, s, c)
	l.commits(t, 2)
	for _, way := range []struct {
		name   string
		deploy func(testing.TB)
	}{{"upgrade", s.Upgrade}, {"roll back", s.RollBack}} {
		t.Log(way.name)
		former := make(map[names.Function]string)
		for _, f := range names.Functions() {
			former[f] = s.Republish(t, f)
		}
		way.deploy(t)
		for f, version := range former {
			s.Share(t, f, version, 0.5)
		}
		ran := make(map[names.Function]map[string]int)
		for f := range former {
			ran[f] = s.Ran(t, f)
		}
		l.commits(t, 4)
		for round, f := range []names.Function{names.Receive, names.Index} {
			ground.Until(t, fmt.Sprintf("both builds of %s have run", f), func() (bool, string) {
				versions, others := s.Ran(t, f), 0
				for version, n := range versions {
					if version != former[f] {
						others += n - ran[f][version]
					}
				}
				own := versions[former[f]] - ran[f][former[f]]
				return own >= 5 && others >= 5, fmt.Sprintf("former %d, new %d times", own, others)
			})
			t.Logf("%d: %s ran %v, before %v; the former build is %s", round, f, s.Ran(t, f), ran[f], former[f])
		}
		id := "deleted-" + way.name[:2]
		s.Direct(t, ground.Event{Collection: c, ID: id, Version: 5, Delete: true})
		s.Committed(t, ground.Key(c, id), 5)
		s.Direct(t, ground.Event{Collection: c, ID: id, Version: 4})
		for f, version := range former {
			s.Share(t, f, version, 0)
		}
	}
	l.commits(t, 2)
	s.Holds(t, c, l.stop(t))
	s.Never(t, before, "SinkNewer", "Rejected", "Panics", "ConfigurationErrors", "UnknownSchema", "InvalidEvents",
		"Parked", "LeaseLost")
	t.Logf("the functions counted %v", s.Counts(t).Since(before))
}
