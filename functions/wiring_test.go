// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"maps"
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
)

// queues reports whether a handler has a queue for each of these names, and no other queue.
func queues(names ...string) func(*lambda.Setup, lambda.Handler) bool {
	return func(_ *lambda.Setup, h lambda.Handler) bool {
		q, ok := h.(*lambda.Queues)
		return ok && slices.Equal(slices.Sorted(maps.Keys(q.Handles)), names) &&
			!slices.ContainsFunc(names, func(name string) bool { return q.Handles[name] == nil })
	}
}

func TestWiring(t *testing.T) {
	t.Parallel()
	own := []string{lambda.EnvTable, lambda.EnvBucket, lambda.EnvLiveQueue, lambda.EnvBulkQueue}
	for function, tt := range map[string]struct {
		wire  lambda.Wire
		needs []string // names that the function needs, besides its own queue
		fits  func(s *lambda.Setup, h lambda.Handler) bool
	}{
		"receive": {
			wireReceive,
			[]string{lambda.EnvDeadQueue, lambda.EnvExpress, lambda.EnvStandard, lambda.EnvSenders},
			queues("lull-search-bulk", "lull-search-live"),
		},
		"index": {
			wireIndex,
			[]string{lambda.EnvDeadQueue, lambda.EnvExpress, lambda.EnvStandard},
			func(s *lambda.Setup, h lambda.Handler) bool {
				turn, ok := h.(*lambda.Turn)
				return ok && turn.Limit == s.Config.Index.Timeout
			},
		},
		"prune": {
			wirePrune, []string{lambda.EnvExpress, lambda.EnvStandard}, func(s *lambda.Setup, h lambda.Handler) bool {
				task, ok := h.(*lambda.Task)
				return ok && task.Limit == s.Config.Lifecycle.PruneEvery
			},
		},
		"dlq": {wireDLQ, []string{lambda.EnvDeadQueue, lambda.EnvSenders}, queues("lull-search-dead")},
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			testWiring(t, function, tt.wire, slices.Concat(own, tt.needs), tt.fits)
		})
	}
}
