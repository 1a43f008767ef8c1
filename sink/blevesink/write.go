// SPDX-License-Identifier: Apache-2.0

package blevesink

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Reasons of outcomes for which no document is at fault.
const (
	reasonClosed    = "closed"
	reasonRead      = "index_read_failed"
	reasonWrite     = "index_write_failed"
	reasonInterrupt = "interrupted"
	reasonNotSent   = "not_sent"
)

// Ping reports whether the index is open.
func (x *Index) Ping(context.Context) error {
	return x.viewOpen(func(index.IndexReader) error { return nil })
}

// Write writes the ops in one batch; see sink.Sink. If ctx ends first, the batch continues in the
// background and its ops are Unknown.
func (x *Index) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	if ctx.Err() != nil {
		return sameOutcome(ops, sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: reasonNotSent})
	}
	if !x.begin() {
		return sameOutcome(ops, sink.Outcome{Kind: sink.Throttled, Reason: reasonClosed})
	}
	outcomes := make([]sink.Outcome, len(ops))
	work := x.prepare(ops, outcomes)
	answer := make(chan []sink.Outcome, 1)
	go func() {
		defer x.writing.Done()
		answer <- x.apply(ctx, work)
	}()
	var answers []sink.Outcome
	select {
	case answers = <-answer:
	case <-ctx.Done():
		answers = sameOutcome(work, sink.Outcome{Kind: sink.Unknown, Reason: reasonInterrupt})
	}
	for i, w := range work {
		outcomes[w.op] = answers[i]
	}
	return outcomes
}

// item is one op that can be written.
type item struct {
	op    int // the position of the op in the call of Write
	doc   shard.DocID
	fence shard.Fence
	bleve *document.Document
}

// prepare converts the ops into items. An op that cannot be written gets its outcome at once. The
// items share no memory with ops.
func (x *Index) prepare(ops []sink.Op, outcomes []sink.Outcome) []item {
	work := make([]item, 0, len(ops))
	for i, op := range ops {
		d, fault := x.build(op)
		if fault != nil {
			outcomes[i] = fault.Outcome()
			continue
		}
		work = append(work, item{op: i, doc: op.Doc, fence: op.Fence, bleve: d})
	}
	return work
}

// apply compares the fences and writes one batch. While apply runs, no other batch writes the same
// documents.
func (x *Index) apply(ctx context.Context, work []item) []sink.Outcome {
	outcomes := make([]sink.Outcome, len(work))
	docs := make([]shard.DocID, len(work))
	for i, w := range work {
		docs[i] = w.doc
	}
	if err := x.locks.acquire(ctx, docs); err != nil {
		return sameOutcome(work, sink.Outcome{Kind: sink.Unknown, Reason: reasonInterrupt})
	}
	defer x.locks.release(docs)

	batch := x.bleve.NewBatch()
	if err := x.view(func(r index.IndexReader) error { return compare(r, work, batch, outcomes) }); err != nil {
		return sameOutcome(work, sink.Outcome{Kind: sink.Throttled, Reason: reasonRead})
	}
	if batch.Size() == 0 {
		return outcomes
	}
	err := x.bleve.Batch(batch)
	x.failed.Store(&err)
	if err != nil {
		for i := range outcomes {
			if outcomes[i].Kind == sink.Applied {
				outcomes[i] = sink.Outcome{Kind: sink.Unknown, Reason: reasonWrite}
			}
		}
	}
	return outcomes
}

// Fault says why the last batch could not be written, such as a full disk. Fault returns nil if the
// last batch was written. Fault is safe for concurrent use.
func (x *Index) Fault() error {
	if err := x.failed.Load(); err != nil && *err != nil {
		return fmt.Errorf("write to the index in %s: %w", x.dir, *err)
	}
	return nil
}

// compare adds a document to batch unless the index has a greater fence for it. For each other
// document, compare sets the outcome Newer.
func compare(r index.IndexReader, work []item, batch *bleve.Batch, outcomes []sink.Outcome) error {
	for i, w := range work {
		held, ok, err := load(r, w.doc)
		if err != nil {
			return err
		}
		if ok && held.meta.Fence > w.fence {
			outcomes[i] = sink.Outcome{Kind: sink.Newer, Reason: "newer_fence"}
			continue
		}
		if err := batch.IndexAdvanced(w.bleve); err != nil {
			return fmt.Errorf("add to batch: %w", err)
		}
	}
	return nil
}

// sameOutcome returns the outcome o for each of the ops.
func sameOutcome[T any](ops []T, o sink.Outcome) []sink.Outcome {
	return slices.Repeat([]sink.Outcome{o}, len(ops))
}

// record is the entry of the index for one id.
type record struct {
	meta   sink.Meta
	source []byte // nil for a tombstone
}

// load reads a record. The function returns false if the index never had the document.
func load(r index.IndexReader, doc shard.DocID) (record, bool, error) {
	d, err := r.Document(string(doc))
	if err != nil || d == nil {
		return record{}, false, err
	}
	var rec record
	d.VisitFields(func(f index.Field) {
		switch f.Name() {
		case fieldMeta:
			err = json.Unmarshal(f.Value(), &rec.meta)
		case fieldSource:
			rec.source = f.Value()
		}
	})
	if err != nil {
		return record{}, false, fmt.Errorf("read metadata of %s: %w", doc, err)
	}
	rec.meta.Indexed = rec.meta.Indexed.UTC()
	return rec, true, nil
}
