package blevesink

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/index/scorch"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/sink"
)

// indexName is the folder of Bleve's own files inside ours.
const indexName = "index"

// lockWait is how long Open waits for the lock of another process, in Bleve's terms. It must exceed one poll of the lock, 50 ms.
const lockWait = "200ms"

// Index is a Bleve index in a folder. It is safe for concurrent use.
type Index struct {
	dir      string
	bleve    bleve.Index
	analyzer analysis.Analyzer
	locks    locks

	mu      sync.Mutex
	closed  bool
	writing sync.WaitGroup // batches under way, also those that nobody waits for any more
}

var (
	_ sink.Sink   = (*Index)(nil)
	_ sink.Reader = (*Index)(nil)
)

// Open opens the index in dir, which is made if it does not exist. The error is a *ForeignFolderError where the folder
// holds something else, and an *InUseError where somebody has it open. Close it after use.
func Open(dir string) (*Index, error) {
	marked, err := claimFolder(dir)
	if err != nil {
		return nil, err
	}
	m, err := newMapping()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, indexName)
	config := map[string]any{
		"bolt_timeout": lockWait,
		// One snapshot: nobody rolls back.
		"numSnapshotsToKeep": 1,
	}
	var b bleve.Index
	if marked {
		b, err = bleve.OpenUsing(path, config)
	}
	if !marked || errors.Is(err, bleve.ErrorIndexPathDoesNotExist) {
		b, err = bleve.NewUsing(path, m, scorch.Name, scorch.Name, config)
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout), errors.Is(err, bleve.ErrorIndexPathExists):
		return nil, &InUseError{Dir: dir}
	case err != nil:
		return nil, fmt.Errorf("open index in %s: %w", dir, err)
	}
	return &Index{dir: dir, bleve: b, analyzer: m.AnalyzerNamed(analyzerName), locks: locks{busy: make(map[shard.DocID]struct{})}}, nil
}

// Close waits for the batches under way and closes the index. Write answers Throttled afterwards, readers get an error.
func (x *Index) Close() error {
	x.mu.Lock()
	closed := x.closed
	x.closed = true
	x.mu.Unlock()
	x.writing.Wait()
	if closed {
		return nil
	}
	if err := x.bleve.Close(); err != nil {
		return fmt.Errorf("close index in %s: %w", x.dir, err)
	}
	return nil
}

// begin reports whether the index is open, and keeps it open until writing is done.
func (x *Index) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.writing.Add(1)
	}
	return !x.closed
}
