// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// all reads every row in memory, and all documents without a row. It counts them, and keeps those
// of this page in the order of their keys.
func (l *lister) all(ctx context.Context) error {
	if _, err := shard.ParseDocID(l.f.Cursor); l.f.Cursor != "" && err != nil {
		return inputf("cursor %q: want the cursor that an earlier list printed", l.f.Cursor)
	}
	rowless, err := l.rest(ctx)
	if err != nil {
		return err
	}
	l.page.Counts = map[State]int{}
	found := make([]shard.Row, 0, l.limit+2) // one more row says that there is a next page
	see := func(r shard.Row) {
		if !l.wants(r.Doc) || !l.grouped(r) {
			return
		}
		var e evidence
		l.look(r, &e)
		state := e.listed()
		if state == StateNobody {
			return
		}
		l.page.Counts[state]++
		if string(r.Doc) <= l.f.Cursor || l.f.State != "" && l.f.State != state ||
			len(found) > l.limit && r.Doc > found[l.limit].Doc {
			return
		}
		at, _ := slices.BinarySearchFunc(found, r, func(a, b shard.Row) int { return cmp.Compare(a.Doc, b.Doc) })
		if found = slices.Insert(found, at, r); len(found) > l.limit+1 {
			found = found[:l.limit+1]
		}
	}
	for r := range l.o.Rows {
		delete(rowless, r.Doc)
		see(r)
	}
	for doc := range rowless {
		see(shard.Row{Doc: doc})
	}
	if len(found) > l.limit {
		found = found[:l.limit]
		l.page.Next = string(found[l.limit-1].Doc)
	}
	for _, r := range found {
		l.add(r)
	}
	return ctx.Err()
}

// rest reads the dead letters and the schedule. It returns the documents that they name.
func (l *lister) rest(ctx context.Context) (docs map[shard.DocID]bool, err error) {
	docs = map[shard.DocID]bool{}
	var capped bool
	for cursor, n := "", 0; ; {
		facts, next, err := l.o.Dead.List(ctx, deadletter.Filter{Collection: l.f.Collection}, cursor, maxPageSize)
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		l.keep(facts)
		n += len(facts)
		if cursor = next; next == "" || n >= maxCount {
			capped = next != ""
			break
		}
	}
	for cursor, n := "", 0; ; {
		items, next, err := l.o.Schedule.List(ctx, "", cursor, maxPageSize)
		if err != nil {
			return nil, fmt.Errorf("list scheduled events: %w", err)
		}
		l.plan(items)
		n += len(items)
		if cursor = next; next == "" || n >= maxCount {
			capped = capped || next != ""
			break
		}
	}
	if capped {
		l.page.Notes = append(l.page.Notes, fmt.Sprintf("Documents without a row are listed by the first %d dead letters "+
			"and scheduled events.", maxCount))
	}
	for doc := range l.letters {
		docs[doc] = true
	}
	for doc := range l.planned {
		docs[doc] = true
	}
	return docs, nil
}

// keep keeps the dead letters of documents.
func (l *lister) keep(facts []deadletter.Facts) (docs []shard.DocID) {
	for _, f := range facts {
		if f.Doc == "" || !l.wants(f.Doc) {
			continue
		}
		if len(l.letters[f.Doc]) == 0 {
			docs = append(docs, f.Doc)
		}
		l.letters[f.Doc] = append(l.letters[f.Doc], asLetter(f))
	}
	return docs
}

// plan keeps the scheduled events of documents.
func (l *lister) plan(items []schedule.Item) (docs []shard.DocID) {
	for _, it := range items {
		if !l.wants(it.Doc) {
			continue
		}
		if len(l.planned[it.Doc]) == 0 {
			docs = append(docs, it.Doc)
		}
		l.planned[it.Doc] = append(l.planned[it.Doc], asScheduled(it))
	}
	return docs
}
