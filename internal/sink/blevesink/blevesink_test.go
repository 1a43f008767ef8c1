package blevesink_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/sink/blevesink"
	"github.com/lullhq/lull/internal/sink/sinktest"
)

// Bleve starts four analysis workers for the whole process when the package is loaded.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}

func open(t testing.TB, dir string) *blevesink.Index {
	t.Helper()
	x, err := blevesink.Open(dir)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return x
}

func TestSink(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, sinktest.Options{
		New:      func(t *testing.T) sinktest.Sink { return open(t, t.TempDir()) },
		Versions: true,
	})
}
