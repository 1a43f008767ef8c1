// SPDX-License-Identifier: Apache-2.0

package sinktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Sink is a sink whose documents the suite can read. lull does not need Get and All of a sink, but
// the suite has no other way to see the written documents.
type Sink interface {
	sink.Sink
	// Get and All are the methods of sink.Reader.
	Get(ctx context.Context, doc event.DocID) (sink.Stored, bool, error)
	All(ctx context.Context, f func(sink.Stored) error) error
}

// Options describes the sink under test, and so selects the tests that it must pass.
type Options struct {
	// New returns a sink without documents, for one test. New must register a t.Cleanup that
	// releases the resources of the sink. Several tests run at the same time.
	New func(t *testing.T) Sink
	// Capabilities are the capabilities of the sinks that New returns. These capabilities select
	// which tests run.
	Capabilities sink.Capabilities
	// NoSearch skips the tests of Search, for an engine that has its own rules for words.
	NoSearch bool
	// ForgetsDeletes allows a sink with versions to apply a write that is older than a delete.
	ForgetsDeletes bool
	// NoHugeNumbers says that the sink rejects a document with a number that is too large for a
	// float64. If NoHugeNumbers is not set, the sink must store such a document.
	NoHugeNumbers bool
	// Recreate deletes the indices of a sink and creates them again under the same names, as an
	// administrator could without lull. Recreate returns the sink. Recreate is required if
	// Capabilities.Generation is set.
	Recreate func(t *testing.T, s Sink) Sink
	// Rebuilds says that New returns a sink.Rebuilder.
	Rebuilds bool
	// Refresh makes written documents visible to All and Search. Nil means that written documents
	// are visible at once.
	Refresh func(t *testing.T, s Sink)
}

// duty is one test of the suite.
type duty struct {
	name    string
	applies func(Options) bool
	test    func(*testing.T, *bundle)
}

func always(Options) bool            { return true }
func withVersions(o Options) bool    { return o.Capabilities.Versions }
func withoutVersions(o Options) bool { return !o.Capabilities.Versions }
func remembers(o Options) bool       { return o.Capabilities.Versions && !o.ForgetsDeletes }
func searches(o Options) bool        { return !o.NoSearch && !o.Capabilities.WriteOnly }
func generations(o Options) bool     { return o.Capabilities.Generation }

// Run tests a sink against every duty that applies to it.
func Run(t *testing.T, o Options) {
	t.Helper()
	for _, duties := range [][]duty{writing, fences, reading, searching, recognising, rebuilding} {
		for _, d := range duties {
			if !d.applies(o) {
				continue
			}
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				d.test(t, &bundle{Options: o, sink: o.New(t)})
			})
		}
	}
}

// bundle is a sink under test, with helper methods for the tests.
type bundle struct {
	Options
	sink Sink
}

// instant is the base of the times at which documents were indexed. put adds the fence, in seconds.
var instant = time.Date(2026, 11, 20, 16, 4, 5, 123456000, time.UTC)

func docID(collection, id string) event.DocID {
	return event.DocID(collection + "#" + id)
}

// put returns an op that writes a document. The version, order key and time of the document depend
// on the fence.
func put(doc event.DocID, fence event.Fence, document string) sink.Op {
	version, err := shard.ParseVersion(event.ClassInt, fmt.Sprint(fence))
	if err != nil {
		panic(err) // fences of the suite are small positive numbers
	}
	key, err := shard.NewOrderKey(shard.Parts{Version: version})
	if err != nil {
		panic(err)
	}
	return sink.Op{
		Doc: doc, Kind: event.Put, Fence: fence, Key: key, Version: fmt.Sprintf("%03d", fence),
		At: instant.Add(time.Duration(fence) * time.Second), Document: []byte(document),
	}
}

func del(doc event.DocID, fence event.Fence) sink.Op {
	op := put(doc, fence, "")
	op.Kind, op.Document = event.Delete, nil
	return op
}

// must ends the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// outcomes writes ops in one call, which must return one outcome for each op.
func outcomes(ctx context.Context, t *testing.T, s sink.Sink, ops []sink.Op) []sink.Outcome {
	t.Helper()
	got := s.Write(ctx, ops)
	if len(got) != len(ops) {
		t.Fatalf("%d outcomes for %d ops: %+v", len(got), len(ops), got)
	}
	return got
}

// write sends ops in one call and checks the outcomes. If want has one kind, every op must have
// that kind.
func (b *bundle) write(t *testing.T, ops []sink.Op, want ...sink.OutcomeKind) []sink.Outcome {
	t.Helper()
	got := outcomes(t.Context(), t, b.sink, ops)
	checkKinds(t, got, want...)
	return got
}

// rejects writes an op that must be rejected. The reason must not quote the document.
func (b *bundle) rejects(t *testing.T, op sink.Op) {
	t.Helper()
	o := b.write(t, []sink.Op{op}, sink.Rejected)[0]
	if o.Reason == "" || strings.Contains(o.Reason, Secret) {
		t.Errorf("reason for %q: %q", op.Document, o.Reason)
	}
}

// checkKinds checks the kinds of outcomes. If want has one kind, every outcome must have that kind.
func checkKinds(t *testing.T, got []sink.Outcome, want ...sink.OutcomeKind) {
	t.Helper()
	if len(want) > 1 && len(got) != len(want) {
		t.Fatalf("%d outcomes, want %v", len(got), want)
	}
	for i, o := range got {
		if w := want[min(i, len(want)-1)]; o.Kind != w {
			t.Fatalf("outcome %d of %d is %s (%s), want %s", i, len(got), o.Kind, o.Reason, w)
		}
	}
}

// apply writes ops that must be applied.
func (b *bundle) apply(t *testing.T, ops ...sink.Op) {
	t.Helper()
	b.write(t, ops, sink.Applied)
}

// holds checks that the sink has the document that op wrote, or that it has none if op is a delete.
func (b *bundle) holds(t *testing.T, op sink.Op) {
	t.Helper()
	got, ok, err := b.sink.Get(t.Context(), op.Doc)
	must(t, err)
	if ok != (op.Kind == event.Put) {
		t.Fatalf("get %s: found %t after a %s with fence %d (%+v)", op.Doc, ok, op.Kind, op.Fence, got)
	}
	if ok {
		equal(t, got, op)
	}
}

// stores applies an op and then checks the document in the sink.
func (b *bundle) stores(t *testing.T, op sink.Op) {
	t.Helper()
	b.apply(t, op)
	b.holds(t, op)
}

// equal compares a stored document with the op that wrote it.
func equal(t *testing.T, got sink.Stored, op sink.Op) {
	t.Helper()
	if g, w := compact(t, got.Document), compact(t, op.Document); !bytes.Equal(g, w) {
		t.Errorf("%s: document\n got %.500s\nwant %.500s", op.Doc, g, w)
	}
	g, w := got, op.Meta().Stored(op.Doc, nil)
	g.Document = nil
	if g.Doc != w.Doc || g.Version != w.Version || g.Key != w.Key || g.Fence != w.Fence || !g.Indexed.Equal(w.Indexed) {
		t.Errorf("%s: metadata\n got %+v\nwant %+v", op.Doc, g, w)
	}
}

func compact(t *testing.T, document []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, document); err != nil {
		t.Fatalf("read %.100q: %v", document, err)
	}
	return b.Bytes()
}

func (b *bundle) refresh(t *testing.T) {
	t.Helper()
	if b.Refresh != nil {
		b.Refresh(t, b.sink)
	}
}

// all reads all documents, in the order in which the sink returns them.
func (b *bundle) all(t *testing.T) []sink.Stored {
	t.Helper()
	b.refresh(t)
	return read(t, func(f func(sink.Stored) error) error { return b.sink.All(t.Context(), f) })
}

// read returns all values with which each calls its function.
func read[T any](t *testing.T, each func(func(T) error) error) (got []T) {
	t.Helper()
	must(t, each(func(v T) error {
		got = append(got, v)
		return nil
	}))
	return got
}

// found runs a search and returns the documents, best first.
func (b *bundle) found(t *testing.T, q sink.Query) []sink.Stored {
	t.Helper()
	r, ok := b.sink.(sink.Reader)
	if !ok {
		t.Fatal("the sink is not a sink.Reader: set Capabilities.WriteOnly if that is intended")
	}
	found, err := r.Search(t.Context(), q)
	must(t, err)
	return found
}

// search runs a search and returns the ids of the documents, best first.
func (b *bundle) search(t *testing.T, q sink.Query) (docs []event.DocID) {
	t.Helper()
	for _, s := range b.found(t, q) {
		docs = append(docs, s.Doc)
	}
	return docs
}

// finds checks which documents a search finds, in any order. want must be sorted.
func (b *bundle) finds(t *testing.T, q sink.Query, want ...event.DocID) {
	t.Helper()
	if got := slices.Sorted(slices.Values(b.search(t, q))); !slices.Equal(got, want) {
		t.Errorf("search %+v: got %q, want %q", q, got, want)
	}
}
