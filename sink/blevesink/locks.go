// SPDX-License-Identifier: Apache-2.0

package blevesink

import (
	"context"
	"slices"
	"sync"

	"github.com/lullhq/lull/internal/shard"
)

// locks lets batches with different documents run at the same time. Batches with a common document
// run one after another. Otherwise two batches could both read the old fence of the document, and
// the batch with the smaller fence could write last.
type locks struct {
	mu    sync.Mutex
	busy  map[shard.DocID]struct{}
	freed chan struct{} // release closes this channel; nil while no batch waits
}

// acquire locks all of docs at once, so that two callers never wait for each other. If ctx ends
// first, acquire returns the error of ctx.
func (l *locks) acquire(ctx context.Context, docs []shard.DocID) error {
	for {
		l.mu.Lock()
		if !slices.ContainsFunc(docs, func(d shard.DocID) bool { _, busy := l.busy[d]; return busy }) {
			for _, d := range docs {
				l.busy[d] = struct{}{}
			}
			l.mu.Unlock()
			return nil
		}
		if l.freed == nil {
			l.freed = make(chan struct{})
		}
		freed := l.freed
		l.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // both may be ready, and select chooses at random
			return ctx.Err()
		}
	}
}

func (l *locks) release(docs []shard.DocID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range docs {
		delete(l.busy, d)
	}
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}
