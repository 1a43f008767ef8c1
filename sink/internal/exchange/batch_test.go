// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

// puts returns n ops that put documents of one collection.
func puts(n int) []sink.Op {
	ops := make([]sink.Op, n)
	for i := range ops {
		ops[i] = sink.Op{Doc: event.DocID(fmt.Sprintf("c#%d", i)), Kind: event.Put, Document: []byte(`{}`)}
	}
	return ops
}

// counts returns how many ops have each outcome.
func counts(b *Batch) map[sink.Outcome]int {
	counts := map[sink.Outcome]int{}
	for _, o := range b.Outcomes {
		counts[o]++
	}
	return counts
}

// Push must find the document to blame with a bounded number of requests. If Push cannot find the
// document, the remaining documents are Throttled, which does not count as a refusal. No op may be
// applied twice.
func TestTheDocumentToBlameIsFound(t *testing.T) {
	t.Parallel()
	refused := sink.Outcome{Kind: sink.Refused, Apart: true, Reason: "bad"}
	large := sink.Outcome{Kind: sink.Rejected, Apart: true, Reason: sink.TooLarge}
	ops := puts(500)
	ops[300].Document = fmt.Appendf(nil, `{"long":"%060000d"}`, 0)
	is300 := func(e Entry) bool { return e.Position == 300 }
	size := func(part []Entry) (n int) {
		for _, e := range part {
			n += 1_000 + len(e.Plain)
		}
		return n
	}
	for name, tt := range map[string]struct {
		bulk, requests  int
		refuses         func(part []Entry) bool
		o               sink.Outcome
		blamed, applied int
	}{
		"one":           {500, 30, func(part []Entry) bool { return slices.ContainsFunc(part, is300) }, refused, 1, 499},
		"too large":     {500, 30, func(part []Entry) bool { return size(part) > 50_000 }, large, 1, 499},
		"all":           {500, maxRefusals + 1, func([]Entry) bool { return true }, refused, 0, 0},
		"all too large": {500, maxRefusals + 1, func([]Entry) bool { return true }, large, 0, 0},
		"each is alone": {1, 500, func([]Entry) bool { return true }, refused, 500, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, requests := Batch{}, 0
			entries := b.Prepare(t.Context(), ops, sink.Names{}, nil)
			b.Push(t.Context(), entries, NewBounds(tt.bulk, 0), func(part []Entry) (*sink.Outcome, bool) {
				requests++
				if tt.refuses(part) {
					return &tt.o, true
				}
				for _, e := range part {
					if b.Outcomes[e.Position] != Late {
						t.Errorf("%s is sent again after %+v", e.Doc, b.Outcomes[e.Position])
					}
				}
				b.All(part, sink.Outcome{Kind: sink.Applied})
				return nil, false
			})
			got := counts(&b)
			waiting := sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: "not_narrowed"}
			if requests > tt.requests || got[tt.o] < tt.blamed || got[sink.Outcome{}] != tt.applied ||
				got[tt.o]+got[sink.Outcome{}]+got[waiting] != 500 {
				t.Errorf("%d requests, outcomes %v", requests, got)
			}
		})
	}
}

// If an answer says that the engine accepts nothing, Batch does not send the remaining ops. If an
// answer is about one document, one index or the current moment, Batch continues.
func TestWhatHoldsTheRestBack(t *testing.T) {
	t.Parallel()
	wait := sink.Outcome{Kind: sink.Throttled, RetryAfter: time.Second, Status: 429, Reason: "busy"}
	held := sink.Outcome{Kind: sink.Throttled, RetryAfter: time.Second, Status: 429, Reason: "not_sent"}
	apart := wait
	apart.Apart = true
	for _, tt := range []struct {
		same       bool
		says, rest sink.Outcome
	}{
		{false, wait, held},
		{true, wait, wait},
		{false, sink.Outcome{Kind: sink.Configuration}, sink.Outcome{Kind: sink.Throttled, Reason: "not_sent"}},
		{false, apart, apart},
		{false, sink.Outcome{Kind: sink.Unknown}, sink.Outcome{Kind: sink.Unknown}},
	} {
		pushed, each := Batch{Same: tt.same}, Batch{Same: tt.same}
		pushed.Push(t.Context(), pushed.Prepare(t.Context(), puts(2), sink.Names{}, nil), NewBounds(1, 0),
			func([]Entry) (*sink.Outcome, bool) { return &tt.says, false })
		each.Each(t.Context(), 1, each.Prepare(t.Context(), puts(2), sink.Names{}, nil),
			func(Entry) sink.Outcome { return tt.says })
		for _, got := range [][]sink.Outcome{pushed.Outcomes, each.Outcomes} {
			if want := []sink.Outcome{tt.says, tt.rest}; !slices.Equal(got, want) {
				t.Errorf("after %+v: got %+v, want %+v", tt.says, got, want)
			}
		}
	}
}

// A document that no sink can store gets its outcome at once. Such a document is not part of a
// request.
func TestADocumentThatCannotBeSentIsNotEncoded(t *testing.T) {
	t.Parallel()
	ops := puts(3)
	ops[1].Document = []byte(`{"_lull":1}`)
	var b Batch
	entries := b.Prepare(t.Context(), ops, sink.Names{}, func(e *Entry) *sink.DocumentError {
		if e.Plain == nil {
			t.Errorf("%s is encoded without a document", e.Doc)
		}
		e.Text = slices.Clone(e.Plain)
		return nil
	})
	fault := sink.DocumentError{Class: sink.ReservedField, Field: sink.MetaField}
	want := []sink.Outcome{Late, fault.Outcome(), Late}
	if len(entries) != 2 || !slices.Equal(b.Outcomes, want) {
		t.Errorf("%d entries, outcomes %+v, want %+v", len(entries), b.Outcomes, want)
	}
	for _, e := range entries {
		if e.Plain != nil || string(e.Text) != "{}" {
			t.Errorf("%s is held as %s beside %s", e.Doc, e.Plain, e.Text)
		}
	}
}

// The test checks the outcome of a request without a complete answer.
func TestUndelivered(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "much too much")
	}))
	defer server.Close()
	for name, tt := range map[string]struct {
		address string
		ends    bool // whether the context ends before the request is sent
		auth    error
		want    sink.Outcome
	}{
		"while it connects":          {server.URL, true, nil, Late},
		"while credentials are read": {server.URL, true, errors.New("late"), Late},
		"without credentials":        {server.URL, false, errors.New("no"), sink.Outcome{Kind: sink.Configuration, Reason: "no_credentials"}},
		"nobody is there":            {"http://127.0.0.1:1", false, nil, sink.Outcome{Kind: sink.Throttled, Reason: "unreachable"}},
		"a part of an answer":        {server.URL, false, nil, sink.Outcome{Kind: sink.Unknown, Status: 200, Reason: "interrupted"}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		c, err := Client{Authenticate: func(*http.Request) error {
			if tt.ends {
				cancel()
			}
			return tt.auth
		}}.Open(tt.address)
		if err != nil {
			t.Fatal(err)
		}
		got, failed := Undelivered(ctx, c.Do(ctx, http.MethodGet, "/", "", nil, 1))
		if got != tt.want || !failed {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
		cancel()
		_ = c.Close()
	}
	if _, failed := Undelivered(t.Context(), Answer{Status: 500}); failed {
		t.Error("an answer is none")
	}
}

// A request stays within its bounds. After the context has ended, no op is encoded or sent.
func TestWhatARequestHas(t *testing.T) {
	t.Parallel()
	names, err := sink.NewNames("x-{collection}", nil)
	if err != nil {
		t.Fatal(err)
	}
	ops := puts(5)
	ops[3].Doc, ops[4].Doc = "d#3", "d#4"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var b Batch
	var sizes []int
	entries := b.Prepare(ctx, ops, names, nil)
	b.Push(ctx, entries, Bounds{Documents: 2, Bytes: 100, OneIndex: true}, func(part []Entry) (*sink.Outcome, bool) {
		if sizes = append(sizes, len(part)); len(sizes) == 3 {
			cancel()
		}
		return &sink.Outcome{Status: len(sizes)}, false
	})
	if want := []int{2, 1, 2}; !slices.Equal(sizes, want) {
		t.Errorf("requests of %v documents, want %v", sizes, want)
	}
	b.Each(ctx, 1, entries, func(Entry) sink.Outcome { return sink.Outcome{} })
	if got := counts(&b); got[Late] != len(ops) {
		t.Errorf("sent after the end: %v", got)
	}
	if entries := b.Prepare(ctx, ops, names, nil); len(entries) > 0 || counts(&b)[Late] != len(ops) {
		t.Errorf("%d entries after the end, outcomes %v", len(entries), b.Outcomes)
	}
}
