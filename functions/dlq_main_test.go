package functions

import (
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
)

func TestDLQWiring(t *testing.T) {
	t.Parallel()
	needed := []string{
		lambda.EnvTable, lambda.EnvBucket, lambda.EnvLiveQueue, lambda.EnvBulkQueue, lambda.EnvDeadQueue,
		lambda.EnvDeadSenders,
	}
	testWiring(t, "dlq", wireDLQ, needed, func(t *testing.T, _ *lambda.Setup, h lambda.Handler) {
		t.Helper()
		q, ok := h.(*lambda.Queues)
		if !ok || len(q.Handles) != 1 || q.Handles["lull-search-dead"] == nil {
			t.Errorf("got %+v, want a handle for the dead-letter queue", h)
		}
	})
}
