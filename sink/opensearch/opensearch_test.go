// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSink(t *testing.T, o opensearch.Options) *opensearch.Sink {
	t.Helper()
	s, err := opensearch.New(o)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func withDeadline(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

func put(doc string, fence shard.Fence, document string) sink.Op {
	return sink.Op{
		Doc: shard.DocID(doc), Kind: shard.Put, Fence: fence, Version: fmt.Sprint(fence),
		At: time.UnixMicro(1_700_000_000_000_000), Document: []byte(document),
	}
}

func del(doc string, fence shard.Fence) sink.Op {
	op := put(doc, fence, "")
	op.Kind, op.Document = shard.Delete, nil
	return op
}

func write(t *testing.T, s *opensearch.Sink, want sink.OutcomeKind, ops ...sink.Op) {
	t.Helper()
	for i, o := range s.Write(t.Context(), ops) {
		if o.Kind != want {
			t.Fatalf("op %d: %s (%s), want %s", i, o.Kind, o.Reason, want)
		}
	}
}
