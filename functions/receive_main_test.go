package functions

import (
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
)

func TestReceiveWiring(t *testing.T) {
	t.Parallel()
	needed := []string{
		lambda.EnvTable, lambda.EnvBucket, lambda.EnvLiveQueue, lambda.EnvBulkQueue, lambda.EnvDeadQueue,
		lambda.EnvExpress, lambda.EnvStandard,
	}
	testWiring(t, "receive", wireReceive, needed, func(t *testing.T, _ *lambda.Setup, h lambda.Handler) {
		t.Helper()
		q, ok := h.(*lambda.Queues)
		if !ok || len(q.Handles) != 2 || q.Handles["lull-search-live"] == nil || q.Handles["lull-search-bulk"] == nil {
			t.Errorf("got %+v, want a handle for each lane", h)
		}
	})
}
