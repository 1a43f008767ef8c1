// SPDX-License-Identifier: Apache-2.0

package blevesink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// indexName is the name of the folder with Bleve's own files. This folder is inside lull's own
// folder.
const indexName = "index"

// lockWait is how long Open waits while another process has the lock of the folder. Bleve looks at
// the lock every 50 ms, so lockWait must be longer than that.
const lockWait = "200ms"

// Index is a Bleve index in a folder. An Index is safe for concurrent use.
type Index struct {
	dir      string
	bleve    bleve.Index
	analyzer analysis.Analyzer
	// generation is the random name that the index got when it was created.
	generation string
	locks      locks
	failed     atomic.Pointer[error] // the error of the last batch

	mu      sync.Mutex
	closed  bool
	writing sync.WaitGroup // running batches, also batches whose caller no longer waits
}

var (
	_ sink.Sink   = (*Index)(nil)
	_ sink.Reader = (*Index)(nil)

	_ sink.Generator = (*Index)(nil)
)

// Open opens the index in dir, and makes dir if it does not exist. Open returns a
// *ForeignFolderError if the folder has other contents, and an *InUseError if it is already open.
// Close the Index after use.
func Open(dir string) (*Index, error) {
	marked, err := folderMarker.Claim(dir)
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
		// Keep one snapshot, because lull never returns to an earlier one.
		"numSnapshotsToKeep": 1,
	}
	var b bleve.Index
	if marked {
		b, err = bleve.OpenUsing(path, config)
	}
	if !marked || errors.Is(err, bleve.ErrorIndexPathDoesNotExist) {
		if err = create(dir, path, m); err == nil {
			b, err = bleve.OpenUsing(path, config)
		}
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout), errors.Is(err, fs.ErrExist):
		return nil, &InUseError{Dir: dir}
	case err != nil:
		return nil, fmt.Errorf("open index in %s: %w", dir, err)
	}
	generation, err := generationOf(b)
	if err = errors.Join(err, sweep(dir)); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &Index{
		dir: dir, bleve: b, generation: generation, analyzer: m.AnalyzerNamed(analyzerName),
		locks: locks{busy: make(map[shard.DocID]struct{})},
	}, nil
}

// generationKey is the key under which Bleve stores the generation of the index.
var generationKey = []byte("lull_generation")

// generationOf reads the generation of an index. An index without one is new or was made by an
// older build, and gets a random name. So no row claims to know the documents of an older build.
func generationOf(b bleve.Index) (string, error) {
	name, err := b.GetInternal(generationKey)
	if err == nil && len(name) == 0 {
		name = []byte(rand.Text())
		err = b.SetInternal(generationKey, name)
	}
	if err != nil {
		return "", fmt.Errorf("name the index: %w", err)
	}
	return string(name), nil
}

// Generation returns the random name that the index got when it was created. All collections are in
// one index.
func (x *Index) Generation(context.Context, shard.Collection) (string, error) {
	return x.generation, nil
}

// unfinishedPrefix is the prefix of folders in which create builds an index.
const unfinishedPrefix = "new-"

// create makes an empty index at path. Bleve needs several steps for that, and a crash between two
// steps would leave an index that cannot be opened. So create builds the index in a temporary
// folder and renames the folder when the index is complete. If another process made an index at
// path in the meantime, the error is fs.ErrExist.
func create(dir, path string, m mapping.IndexMapping) error {
	room, err := os.MkdirTemp(dir, unfinishedPrefix)
	if err != nil {
		return fmt.Errorf("make index: %w", err)
	}
	made := filepath.Join(room, indexName)
	b, err := bleve.NewUsing(made, m, scorch.Name, scorch.Name, nil)
	if err == nil {
		err = b.Close()
	}
	if err == nil {
		err = os.Rename(made, path)
	}
	_ = os.RemoveAll(room) // sweep removes what this call cannot
	if _, there := os.Stat(path); err != nil && there == nil {
		return fs.ErrExist
	}
	if err != nil {
		return fmt.Errorf("make index: %w", err)
	}
	return nil
}

// sweep removes the temporary folders that remain if a crash interrupted create. The caller has the
// index open. If another process is still creating an index, that process gets an error.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinishedPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("clear data folder: %w", err)
	}
	return nil
}

// Close waits for the running batches and closes the index. After Close, Write answers Throttled,
// and reads return an error.
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

// begin reports whether the index is open. If the index is open, it stays open until the caller
// calls writing.Done.
func (x *Index) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.writing.Add(1)
	}
	return !x.closed
}
