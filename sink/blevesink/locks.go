package blevesink

import (
	"context"
	"slices"
	"sync"

	"github.com/lullhq/lull/internal/shard"
)

// locks lets batches with different documents run side by side, and those that share one after
// another: between reading a fence and writing a greater one nobody else may write the document.
type locks struct {
	mu    sync.Mutex
	busy  map[shard.DocID]struct{}
	freed chan struct{} // closed at the next release; nil while nobody waits
}

// acquire takes all of docs at once, so that two callers never wait for each other. It returns
// ctx's error when that ends first.
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
