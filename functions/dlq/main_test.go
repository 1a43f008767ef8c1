package main

import (
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
)

func TestWiring(t *testing.T) {
	t.Parallel()
	needed := []string{lambda.EnvTable, lambda.EnvBucket, lambda.EnvLiveQueue, lambda.EnvBulkQueue, lambda.EnvDeadQueue}
	lambdatest.Wiring(t, "dlq", wire, needed, func(t *testing.T, _ *lambda.Setup, h lambda.Handler) {
		t.Helper()
		q, ok := h.(*lambda.Queues)
		if !ok || len(q.Handles) != 1 || q.Handles["lull-search-dead"] == nil {
			t.Errorf("got %+v, want a handle for the dead-letter queue", h)
		}
	})
}
