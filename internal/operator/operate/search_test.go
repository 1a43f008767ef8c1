// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/sink"
)

// noSearch is a sink that is away.
type noSearch struct{ sink.Reader }

func (noSearch) Search(context.Context, sink.Query) ([]sink.Stored, error) {
	return nil, errors.New("connection refused")
}

func TestSearchAsksEverySinkAndNamesThoseThatDoNotAnswer(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		for i := range 30 {
			id := flight.ID(fmt.Sprint("f-", i))
			g.commit(g.hold(id, put(fmt.Sprint("a-", i), 1)), `{"title":"v1"}`)
		}
		got, err := api.Search(t.Context(), operate.Search{Text: "v1"})
		if err != nil || len(got.Hits) != 10 || !got.More || len(got.Notes) != 1 ||
			!strings.Contains(got.Notes[0], "sink remote was not searched: it cannot be read from here") {
			t.Fatalf("got %d hits, more %t, notes %q, error %v; want 10 of more, and a note of the other sink", len(got.Hits),
				got.More, got.Notes, err)
		}
		if h := got.Hits[0]; h.Version != "1" || h.Fence == 0 || h.Indexed.IsZero() || len(h.Document) == 0 {
			t.Errorf("hit %+v, want the document and its mark", h)
		}
		for name, tt := range map[string]struct {
			q    operate.Search
			want int
		}{
			"a prefix":              {operate.Search{Text: "v", Prefix: true, Limit: 100}, 30},
			"no prefix":             {operate.Search{Text: "v", Limit: 100}, 0},
			"a field":               {operate.Search{Text: "v1", Field: "title", Limit: 5}, 5},
			"a collection":          {operate.Search{Text: "v1", Collection: "content", Limit: 30}, 30},
			"an unknown one":        {operate.Search{Text: "v1", Collection: "elsewhere"}, 0},
			"control characters":    {operate.Search{Text: "\x00\x1b[31m<script>"}, 0},
			"nothing but operators": {operate.Search{Text: `"*|()-+~\`, Prefix: true}, 0},
		} {
			got, err := api.Search(t.Context(), tt.q)
			if err != nil || len(got.Hits) != tt.want || got.Hits == nil || got.More && tt.want != 5 {
				t.Errorf("%s: got %d hits, more %t, error %v; want %d", name, len(got.Hits), got.More, err, tt.want)
			}
		}
		for name, q := range map[string]operate.Search{
			"no text": {}, "blanks": {Text: " \t"}, "a long text": {Text: strings.Repeat("x", 1001)},
			"a long field": {Text: "x", Field: strings.Repeat("x", 1025)}, "limit": {Text: "x", Limit: 1001},
			"negative": {Text: "x", Limit: -1}, "collection": {Text: "x", Collection: "<b>"},
		} {
			if _, err := api.Search(t.Context(), q); !errors.Is(err, operate.ErrInput) {
				t.Errorf("%s: %v, want ErrInput", name, err)
			}
		}
		g.Hint = "try from inside"
		g.Readers["search"] = noSearch{}
		if _, err := api.Search(t.Context(), operate.Search{Text: "v1"}); err == nil ||
			!strings.Contains(err.Error(), "connection refused; try from inside") {
			t.Errorf("no sink answers: %v, want an error that says so", err)
		}
		g.Readers, g.Unread = nil, map[string]error{"search": operate.ErrWriteOnly}
		if _, err := api.Search(t.Context(), operate.Search{Text: "v1", Collection: "content"}); err == nil ||
			strings.Contains(err.Error(), "try from inside") {
			t.Errorf("a sink that nobody can read: %v, want no hint", err)
		}
	})
}
