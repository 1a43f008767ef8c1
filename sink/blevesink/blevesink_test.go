// SPDX-License-Identifier: Apache-2.0

package blevesink_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/blevesink"
	"github.com/lullhq/lull/sink/sinktest"
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
		New:          func(t *testing.T) sinktest.Sink { return open(t, t.TempDir()) },
		Capabilities: sink.Capabilities{Versions: true, Generation: true},
		Recreate: func(t *testing.T, s sinktest.Sink) sinktest.Sink {
			index, _ := s.(*blevesink.Index)
			if err := index.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, t.TempDir()) // an index in a new folder, as if the user had removed the old one
		},
	})
}

func TestAnIndexKeepsItsGenerationWhenItIsOpenedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, dir)
	first, _ := x.Generation(t.Context(), "content")
	if other, _ := open(t, t.TempDir()).Generation(t.Context(), "content"); other == first {
		t.Errorf("two indices are generation %q", first)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if again, _ := open(t, dir).Generation(t.Context(), "content"); first == "" || again != first {
		t.Errorf("generation %q, opened again %q", first, again)
	}
}

func put(id string, fence shard.Fence, document string) sink.Op {
	return sink.Op{
		Doc: shard.DocID("content#" + id), Kind: shard.Put, Fence: fence, Version: fmt.Sprint(fence),
		At: time.UnixMicro(int64(fence)), Document: []byte(document),
	}
}

func del(id string, fence shard.Fence) sink.Op {
	op := put(id, fence, "")
	op.Kind, op.Document = shard.Delete, nil
	return op
}

func write(t *testing.T, x *blevesink.Index, want sink.OutcomeKind, ops ...sink.Op) {
	t.Helper()
	for i, o := range x.Write(t.Context(), ops) {
		if o.Kind != want {
			t.Fatalf("op %d: %s (%s), want %s", i, o.Kind, o.Reason, want)
		}
	}
}

// remembered checks the documents, fences and tombstones of the three ops that the tests below
// write.
func remembered(t *testing.T, x *blevesink.Index) {
	t.Helper()
	s, ok, err := x.Get(t.Context(), "content#a")
	if err != nil || !ok || string(s.Document) != `{"n":1.10}` || s.Fence != 7 {
		t.Errorf("read back %+v, %t, %v", s, ok, err)
	}
	write(t, x, sink.Newer, put("a", 6, `{}`), put("gone", 6, `{}`), del("missing", 6))
	write(t, x, sink.Applied, put("a", 7, `{"n":1.10}`), put("gone", 8, `{}`))
}

func TestFencesAndTombstonesOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, dir)
	write(t, x, sink.Applied, put("a", 7, `{"n":1.10}`), put("gone", 6, `{}`))
	write(t, x, sink.Applied, del("gone", 7), del("missing", 7))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	remembered(t, open(t, dir))
}

// The test copies the folder while the index is still open. Every document with the outcome Applied
// must be in the copy.
func TestWhatWasAppliedIsOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, dir)
	write(t, x, sink.Applied, put("a", 7, `{"n":1.10}`), del("gone", 7), del("missing", 7))
	remembered(t, open(t, copyFolder(t, dir)))
}

func TestDocumentsBeyondTheLimitsAreRejected(t *testing.T) {
	t.Parallel()
	x := open(t, t.TempDir())
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"f%d":"secret"`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	nested := func(depth int) string {
		return strings.Repeat(`{"a":`, depth) + `"secret"` + strings.Repeat("}", depth)
	}
	name := func(n int) string { return `{"` + strings.Repeat("n", n) + `":"secret"}` }
	size := func(n int) string { return `{"a":"` + strings.Repeat("s", n-len(`{"a":""}`)) + `"}` }
	tests := []struct {
		name, document string
		want           sink.Outcome
	}{
		{"depth", nested(blevesink.MaxDepth), sink.Outcome{}},
		{"too deep", nested(blevesink.MaxDepth + 1), sink.Outcome{Kind: sink.Rejected, Reason: "too_deep"}},
		{"too deep in lists", `{"a":` + strings.Repeat("[", blevesink.MaxDepth) +
			strings.Repeat("]", blevesink.MaxDepth) + "}", sink.Outcome{Kind: sink.Rejected, Reason: "too_deep"}},
		{"fields", fields(blevesink.MaxFields), sink.Outcome{}},
		{
			"too many fields", fields(blevesink.MaxFields + 1),
			sink.Outcome{Kind: sink.Rejected, Reason: "too_many_fields"},
		},
		{"path", name(blevesink.MaxPathBytes), sink.Outcome{}},
		{
			"path too long", name(blevesink.MaxPathBytes + 1),
			sink.Outcome{Kind: sink.Rejected, Reason: "field_name_too_long"},
		},
		{"size", size(blevesink.MaxDocumentBytes), sink.Outcome{}},
		{"too large", size(blevesink.MaxDocumentBytes + 1), sink.Outcome{Kind: sink.Rejected, Reason: "too_large"}},
		{"many values under one path", `{"a":[` + strings.Repeat("1,", 50_000) + `1]}`, sink.Outcome{}},
	}
	for i, tt := range tests {
		if got := x.Write(t.Context(), []sink.Op{put(fmt.Sprint(i), 1, tt.document)})[0]; got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestSearchIsInEnglish(t *testing.T) {
	t.Parallel()
	x := open(t, t.TempDir())
	write(t, x, sink.Applied,
		put("a", 1, `{"title":"Walking the Embassy's dogs","meta":"collie","_id":"label"}`),
		put("b", 1, `{"title":"The walk","body":"`+strings.Repeat("x", 1_000)+` café 東京"}`),
	)
	tests := []struct {
		text, field string
		want        int
	}{
		{"walks", "title", 2},
		{"dog", "", 1},
		{"embassies", "title", 1},
		{"walked dog", "", 1}, // every word
		{"walk cat", "", 0},
		{"the", "", 0}, // a stop word
		{"", "", 0},
		{"CAFÉ", "body", 1},
		{"東京", "", 1},
		{strings.Repeat("x", 1_000), "", 0}, // too long for a word
		{"collie", "meta", 1},               // a field of the document, not lull's field with the same name
		{"label", "_id", 1},
	}
	for _, tt := range tests {
		found, err := x.Search(t.Context(), sink.Query{Text: tt.text, Field: tt.field, Limit: 10})
		if err != nil || len(found) != tt.want {
			t.Errorf("search %.20q in %q: %d documents, %v; want %d", tt.text, tt.field, len(found), err, tt.want)
		}
	}
}

func TestNewestIsTheGreatestFence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x := open(t, dir)
	newest := func(want shard.Fence) {
		t.Helper()
		if got, err := x.Newest(); err != nil || got != want {
			t.Errorf("Newest() = %d, %v; want %d", got, err, want)
		}
	}
	if got, err := x.Newest(); got != 0 || err != nil {
		t.Errorf("Newest() of nothing: %d, %v", got, err)
	}
	const hour = 3_600_000_000
	write(t, x, sink.Applied, put("a", 400*hour+1, `{}`))
	newest(400*hour + 1)
	write(t, x, sink.Applied, put("b", 17, `{}`), del("c", 500*hour))
	newest(500 * hour)
	write(t, x, sink.Applied, put("d", 500*hour+2, `{}`), put("e", 500*hour+1, `{}`))
	newest(500*hour + 2)
	write(t, x, sink.Applied, put("d", 600*hour, `{}`)) // replaces the only newest document
	newest(600 * hour)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = open(t, dir)
	newest(600 * hour)
}

func TestAClosedIndexAppliesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	x := open(t, t.TempDir())
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, x, sink.Throttled, put("a", 1, `{}`))
	_, _, get := x.Get(t.Context(), "content#a")
	_, search := x.Search(t.Context(), sink.Query{Text: "a", Limit: 1})
	all := x.All(t.Context(), func(sink.Stored) error { return nil })
	_, newest := x.Newest()
	for _, err := range []error{get, search, all, newest, x.Ping(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("error %v, want one that says closed", err)
		}
	}
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Errorf("close again: %v", err)
	}
}
