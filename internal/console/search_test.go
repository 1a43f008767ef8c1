// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// write writes a document to the sink.
func (s *stack) write(id, document string) {
	s.Helper()
	doc := usecasetest.Must(shard.NewDocID("content", id))(s)
	out := s.index.Write(s.Context(), []sink.Op{{
		Doc: doc, Kind: shard.Put, Fence: 7, Key: "", Version: "3", At: time.Now(), Document: []byte(document),
	}})
	if out[0].Kind != sink.Applied {
		s.Fatalf("write: %+v", out)
	}
}

// found is the answer to a request of the view Search.
type found struct {
	Hits          []hit
	More          bool
	Notes, Fields []string
}

func searchPath(query string, more ...string) string {
	return "/console/search?q=" + url.QueryEscape(query) + strings.Join(more, "")
}

func TestSearchShowsMarksAndWhereTheWordsStand(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	var got found
	if s.into(&got, searchPath("vienna"), ""); got.Hits == nil || len(got.Hits) != 0 || got.More {
		t.Errorf("an empty stack: got %+v, want no hit", got)
	}
	s.write("vienna", `{"title":"British Embassy <b>Vienna</b>","n":7,"details":{"body":"`+
		strings.Repeat("long ago ", 40)+
		`Vienna was 😀 far from Viennese `+strings.Repeat("waltzes ", 40)+`"}}`)
	s.into(&got, searchPath("embassy vien", "&prefix=true"), "")
	if len(got.Hits) != 1 || got.Hits[0].Key != "content#vienna" || got.Hits[0].Version != "3" ||
		got.Hits[0].Fence != 7 ||
		got.Hits[0].Indexed.IsZero() || got.Hits[0].Title != "British Embassy <b>Vienna</b>" {
		t.Fatalf("got %+v, want the document with its mark", got)
	}
	text := func(e excerpt) (text string, marked []string) {
		for _, p := range e.Parts {
			if text += p.Text; p.Hit {
				marked = append(marked, p.Text)
			}
		}
		return text, marked
	}
	title, marked := text(got.Hits[0].Fragments[0])
	if title != "British Embassy <b>Vienna</b>" || fmt.Sprint(marked) != "[Embassy Vienna]" {
		t.Errorf("title %q, marked %q", title, marked)
	}
	body, marked := text(got.Hits[0].Fragments[1])
	if len(got.Hits[0].Fragments) != 2 || fmt.Sprint(marked) != "[Vienna Viennese]" || len(body) > 400 ||
		!strings.HasPrefix(body, "…") || !strings.HasSuffix(body, "…") {
		t.Errorf("%d fragments, body %q, marked %q", len(got.Hits[0].Fragments), body, marked)
	}
	if fmt.Sprint(got.Fields) != "[details.body n title]" {
		t.Errorf("fields %q", got.Fields)
	}
	if s.into(&got, searchPath("vienna", "&field=title"), ""); len(got.Hits[0].Fragments) != 1 {
		t.Errorf("in one field: %+v", got.Hits[0].Fragments)
	}
}

func TestSearchIsBoundedAndSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	huge := `{"title":"` + strings.Repeat("word ", 15_000) + `","list":[` +
		strings.Repeat(`"word",`, 2_500) + `"word"]}`
	for i := range 30 {
		s.write(fmt.Sprint("<script>", i), huge)
	}
	w := s.ask(searchPath("word"), "")
	size := w.Body.Len()
	var got found
	usecasetest.OK(t, json.Unmarshal(w.Body.Bytes(), &got))
	if size > 100<<10 || len(got.Hits) != 25 || !got.More {
		t.Errorf("got %d bytes, %d hits, more %t; want a bounded answer of 25", size, len(got.Hits), got.More)
	}
	s.refused(http.StatusBadRequest, "say what to search for", "/console/search", "")
	s.refused(http.StatusBadRequest, "limit", searchPath("x", "&limit=101"), "")
	s.refused(http.StatusBadRequest, "collection", searchPath("x", "&collection=%3Cb%3E"), "")
	s.refused(http.StatusBadRequest, "1001 bytes", searchPath(strings.Repeat("x", 1001)), "")
	s.Readers = map[string]sink.Reader{}
	s.refused(http.StatusBadGateway, "sink search was not searched: it cannot be read from here", searchPath("x"), "")
	s.options.API = deniedAPI
	s.refused(http.StatusForbidden, "dynamodb:Query", searchPath("x"), "")
}
