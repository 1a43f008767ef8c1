package functions

import (
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
)

func TestPruneWiring(t *testing.T) {
	t.Parallel()
	needed := []string{
		lambda.EnvTable, lambda.EnvBucket, lambda.EnvLiveQueue, lambda.EnvBulkQueue, lambda.EnvExpress,
		lambda.EnvStandard,
	}
	testWiring(t, "prune", wirePrune, needed, func(t *testing.T, s *lambda.Setup, h lambda.Handler) {
		t.Helper()
		task, ok := h.(*lambda.Task)
		if !ok || task.Limit != s.Config.Lifecycle.PruneEvery {
			t.Errorf("got %+v, want a task", h)
		}
	})
}
