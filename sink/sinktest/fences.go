// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"fmt"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/storetest"
	"github.com/lullhq/lull/sink"
)

// fences contains the tests that depend on whether a sink compares fences.
var fences = []duty{
	{"a smaller fence is refused as newer", withVersions, func(t *testing.T, b *bundle) {
		op := put(docID("content", "a"), 10, `{"n":10}`)
		b.apply(t, op)
		b.write(t, []sink.Op{put(op.Doc, 9, `{"n":9}`)}, sink.Newer)
		b.write(t, []sink.Op{del(op.Doc, 9)}, sink.Newer)
		b.holds(t, op)
	}},
	{"an equal fence is applied again", withVersions, func(t *testing.T, b *bundle) {
		b.apply(t, put(docID("content", "a"), 10, `{"n":1}`))
		again := put(docID("content", "a"), 10, `{"n":2}`)
		b.stores(t, again)
		b.stores(t, del(again.Doc, 10))
	}},
	{"fences are compared as 63-bit numbers", withVersions, func(t *testing.T, b *bundle) {
		op := put(docID("content", "a"), 1<<62+1, `{"n":1}`)
		b.apply(t, put(op.Doc, 9, `{}`), put(docID("content", "b"), 1<<53+1, `{}`))
		b.apply(t, put(op.Doc, 10, `{}`))
		b.apply(t, op)
		b.write(t, []sink.Op{put(op.Doc, 1<<62, `{}`), put(docID("content", "b"), 1<<53, `{}`)}, sink.Newer)
		b.holds(t, op)
	}},
	{"a refused fence does not affect other documents", withVersions, func(t *testing.T, b *bundle) {
		b.apply(t, put(docID("content", "b"), 10, `{}`))
		ops := []sink.Op{
			put(docID("content", "a"), 1, `{}`), put(docID("content", "b"), 1, `{}`),
			put(docID("content", "c"), 1, `{}`),
		}
		b.write(t, ops, sink.Applied, sink.Newer, sink.Applied)
		b.holds(t, ops[0])
		b.holds(t, ops[2])
	}},
	{"the same batch again is applied again", withVersions, func(t *testing.T, b *bundle) {
		ops := []sink.Op{put(docID("content", "a"), 1, `{"n":1}`), del(docID("content", "b"), 1)}
		b.apply(t, ops...)
		b.apply(t, ops...)
		b.holds(t, ops[0])
		b.holds(t, ops[1])
	}},
	{"nothing older than a delete is applied", remembers, func(t *testing.T, b *bundle) {
		present, missing := docID("content", "present"), docID("content", "missing")
		b.apply(t, put(present, 5, `{}`))
		b.apply(t, del(present, 10), del(missing, 10))
		b.write(t, []sink.Op{put(present, 9, `{}`), put(missing, 9, `{}`)}, sink.Newer)
		b.write(t, []sink.Op{del(present, 9), del(missing, 9)}, sink.Newer)
		b.holds(t, del(present, 10))
		b.holds(t, del(missing, 10))
		again := put(present, 11, `{"back":true}`)
		b.stores(t, again)
	}},
	{"of concurrent writers, the greatest fence wins", withVersions, greatestFenceStays},
	{"without versions the last write wins", withoutVersions, func(t *testing.T, b *bundle) {
		b.apply(t, put(docID("content", "a"), 10, `{"n":10}`))
		last := put(docID("content", "a"), 9, `{"n":9}`)
		b.stores(t, last)
		b.stores(t, del(last.Doc, 8))
	}},
}

// greatestFenceStays writes the same documents with different fences from several goroutines. In
// any order, each write must be Applied or Newer. In the end, the sink must have the greatest fence
// of each document.
func greatestFenceStays(t *testing.T, b *bundle) {
	const writers, documents = 8, 5
	storetest.AtOnce(writers, func(w int) {
		ops := make([]sink.Op, documents)
		for d := range ops {
			fence := event.Fence(1 + (w*3+d)%writers)
			ops[d] = put(docID("content", fmt.Sprint(d)), fence, fmt.Sprintf(`{"fence":%d}`, fence))
		}
		outcomes := b.sink.Write(t.Context(), ops)
		if len(outcomes) != len(ops) {
			t.Errorf("%d outcomes for %d ops: %+v", len(outcomes), len(ops), outcomes)
			return
		}
		for i, o := range outcomes {
			if o.Kind != sink.Applied && (o.Kind != sink.Newer || ops[i].Fence == writers) {
				t.Errorf("fence %d of %s: %s (%s)", ops[i].Fence, ops[i].Doc, o.Kind, o.Reason)
			}
		}
	})
	for d := range documents {
		b.holds(t, put(docID("content", fmt.Sprint(d)), writers, fmt.Sprintf(`{"fence":%d}`, writers)))
	}
}
