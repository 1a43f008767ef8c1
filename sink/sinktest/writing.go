// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"fmt"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/storetest"
	"github.com/lullhq/lull/sink"
)

// writing contains the tests of Write and Ping that every sink must pass.
var writing = []duty{
	{"answers a ping", always, func(t *testing.T, b *bundle) {
		must(t, b.sink.Ping(t.Context()))
	}},
	{"a write of no ops returns no outcomes", always, func(t *testing.T, b *bundle) {
		b.write(t, nil)
		b.write(t, []sink.Op{})
	}},
	{"put and delete: a put replaces the whole document", always, func(t *testing.T, b *bundle) {
		ops := []sink.Op{
			put(docID("content", "a"), 1, `{"n":1,"gone":true}`), put(docID("content", "a"), 2, `{"n":2}`),
			del(docID("content", "a"), 3), put(docID("content", "a"), 4, `{"n":4}`),
		}
		for _, op := range ops {
			b.stores(t, op)
		}
	}},
	{"one outcome per op, in order", always, oneOutcomePerOp},
	{"a write of as many documents as a turn", always, func(t *testing.T, b *bundle) {
		const n = 2_000
		ops := make([]sink.Op, n)
		for i := range ops {
			ops[i] = put(docID("content", fmt.Sprintf("%04d", i)), 1, fmt.Sprintf(`{"n":%d}`, i))
		}
		b.apply(t, ops...)
		sorted(t, b.all(t), ops)
	}},
	{"a rejected document does not change the stored document", always, func(t *testing.T, b *bundle) {
		op := put(docID("content", "a"), 1, `{"n":1}`)
		b.apply(t, op)
		b.write(t, []sink.Op{put(op.Doc, 2, `{"_lull":{}}`)}, sink.Rejected)
		b.holds(t, op)
	}},
	{
		"a document that no sink can store is rejected, and the reason does not quote it", always,
		func(t *testing.T, b *bundle) {
			for i, document := range []string{
				"", "{", `{"secret":}`, `{} {"secret":1}`, `["secret"]`, `"secret"`, "1",
				"null", "{\"a\":\"secret\xff\"}", `{"_lull":"secret"}`,
			} {
				b.rejects(t, put(docID("content", fmt.Sprint(i)), 1, document))
				b.holds(t, del(docID("content", fmt.Sprint(i)), 1))
			}
		},
	},
	{"after the context has ended, nothing is sent and no op is unknown", always, func(t *testing.T, b *bundle) {
		ops := []sink.Op{put(docID("content", "a"), 1, `{}`), del(docID("content", "b"), 1)}
		for i, o := range outcomes(storetest.Ended(t), t, b.sink, ops) {
			if o.Kind != sink.Throttled || !o.Apart {
				t.Errorf("op %d: %+v, want one that was not sent", i, o)
			}
		}
	}},
	{"a hostile document does not affect other documents", always, hostileDocuments},
	{"one id in two collections is two documents", always, func(t *testing.T, b *bundle) {
		one, two := put(docID("one", "a"), 1, `{"n":1}`), put(docID("two", "a"), 1, `{"n":2}`)
		b.apply(t, one, two)
		b.apply(t, del(two.Doc, 2))
		b.holds(t, one)
		b.holds(t, del(two.Doc, 2))
	}},
}

// oneOutcomePerOp mixes ops with different outcomes in one request. So it notices an outcome at the
// wrong index, and a rejected document that affects other documents. The deletes are of missing
// documents, so they must be applied. The number of ops is not a multiple of the pattern's length,
// so the test also notices a reversed list of outcomes.
func oneOutcomePerOp(t *testing.T, b *bundle) {
	var ops []sink.Op
	var want []sink.OutcomeKind
	for i := range 61 {
		doc := docID([]string{"content", "news"}[i%2], fmt.Sprintf("%02d", i))
		switch i % 5 {
		case 0, 1:
			ops, want = append(ops, put(doc, 1, fmt.Sprintf(`{"n":%d}`, i))), append(want, sink.Applied)
		case 2:
			ops, want = append(ops, put(doc, 1, `"poison"`)), append(want, sink.Rejected)
		default:
			ops, want = append(ops, del(doc, 1)), append(want, sink.Applied)
		}
	}
	b.write(t, ops, want...)
	for i, op := range ops {
		if want[i] == sink.Rejected {
			op.Kind = event.Delete
		}
		b.holds(t, op)
	}
}
