// SPDX-License-Identifier: Apache-2.0

package memorysink_test

import (
	"testing"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	"github.com/lullhq/lull/sink/sinktest"
)

func TestTheSinkIsASink(t *testing.T) {
	t.Parallel()
	for _, versions := range []bool{true, false} {
		t.Run(map[bool]string{true: "with versions", false: "without versions"}[versions], func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, sinktest.Options{
				New: func(*testing.T) sinktest.Sink {
					return memorysink.New(clock.System{}, memorysink.Settings{Versions: versions})
				},
				Capabilities: sink.Capabilities{Versions: versions, Generation: true},
				Recreate: func(_ *testing.T, s sinktest.Sink) sinktest.Sink {
					made, _ := s.(*memorysink.Sink)
					made.Recreate()
					return s
				},
				Rebuilds: versions,
			})
		})
	}
}

func TestTheUsersOwnStays(t *testing.T) {
	t.Parallel()
	table := map[sinktest.Place]sinktest.Owned{}
	for _, place := range sinktest.Places() {
		table[place] = sinktest.Owned{None: "the documents are in this process, which is lull's own"}
	}
	sinktest.Own(t, "memory", table)
}
