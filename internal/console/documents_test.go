// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/searchable"
	"github.com/lullhq/lull/sink"
)

// hostile are ids that a sender may choose, and that could break a page or an address.
var hostile = []string{
	"<script>alert(1)</script>", "../../etc/passwd", "a%2fb", "a#b", "a?b=c&d", "\"'`${x}", "javascript:alert(1)",
	strings.Repeat("\U0001f600", 128), // 512 bytes
}

// commit writes a row into the table, as after a write to the sink.
func (s *stack) commit(doc shard.DocID) {
	s.Helper()
	version := usecasetest.Must(shard.ParseVersion(shard.ClassInt, "1"))(s)
	key := usecasetest.Must(shard.NewOrderKey(shard.Parts{Version: version, Digest: shard.Digest{1}}))(s)
	w := shard.Write{Doc: doc, Update: []shard.Action{
		{Verb: shard.Set, Attr: shard.AttrCommitted, Val: shard.Value{Kind: shard.KindBinary, Text: string(key)}},
	}}
	usecasetest.Must(s.Shards.Write(s.Context(), w))(s)
}

type documentPage struct {
	operate.DocumentPage
	States []operate.State
}

func TestTheListOfDocumentsIsBoundedAndSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	var empty documentPage
	s.into(&empty, "/console/documents", "")
	if len(empty.Documents) > 0 || len(empty.States) == 0 || len(empty.Notes) != 1 || empty.Next != "" {
		t.Errorf("an empty stack: %+v", empty)
	}
	const rows = 100_000
	for i := range rows {
		s.commit(shard.DocID(fmt.Sprintf("content#%06d", i)))
	}
	var page documentPage
	s.into(&page, "/console/documents", "") // like on AWS, the list shows no rows
	if len(page.Documents) > 0 {
		t.Errorf("a deployed stack lists %d documents at rest", len(page.Documents))
	}
	s.Rows = s.rig.Shards.All()
	s.into(&page, "/console/documents?limit=200&cursor=content%23000099", "")
	if len(page.Documents) != 200 || page.Documents[0].Key != "content#000100" || page.Next != "content#000299" ||
		page.Counts[operate.StateFresh] != rows {
		t.Errorf("got %d documents from %s, next %q, counts %v", len(page.Documents), page.Documents[0].Key, page.Next,
			page.Counts)
	}
	if w := s.ask("/console/documents?limit=1000", ""); w.Body.Len() > 1<<20 {
		t.Errorf("an answer of %d bytes", w.Body.Len())
	}
	for query, text := range map[string]string{
		"limit=1001": "limit", "limit=0": "limit", "limit=x": "limit", "state=tired": "waiting, claimed",
		"key=x": "key", "collection=..": "collection", "key=content%23a%00b": "NUL",
	} {
		s.refused(http.StatusBadRequest, text, "/console/documents?"+query, "")
	}
}

func TestADocumentWithAHostileIDIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	for _, id := range hostile {
		doc := shard.DocID("content#" + id)
		s.commit(doc)
		key := url.QueryEscape(string(doc))
		var x operate.Explanation
		s.into(&x, "/console/document?key="+key, "")
		if x.Key != doc || !x.Known {
			t.Errorf("%q: explain says %q, %t", doc, x.Key, x.Known)
		}
		var page documentPage
		s.into(&page, "/console/documents?key="+key, "")
		if len(page.Documents) != 1 || page.Documents[0].Key != doc {
			t.Errorf("%q: got %+v", doc, page.Documents)
		}
		var none any = "something"
		for _, path := range []string{"sink", "newest"} {
			if s.into(&none, "/console/document/"+path+"?key="+key, ""); none != nil {
				t.Errorf("%q: %s: got %v", doc, path, none)
			}
		}
	}
	for _, path := range []string{"document", "document/sink", "document/searchable", "document/newest", "documents"} {
		s.refused(http.StatusBadRequest, "NUL", "/console/"+path+"?key=content%23a%00b", "")
		s.refused(http.StatusBadRequest, "key", "/console/"+path+"?key=no-collection", "")
		s.refused(http.StatusBadRequest, "512", "/console/"+path+"?key=content%23"+strings.Repeat("a", 513), "")
	}
}

func TestADocumentIsShownAsItsSinkHoldsIt(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	large := `{"text":"` + strings.Repeat("x", maxDocument) + `"}`
	for id, body := range map[string]string{"small": `{"html":"</script><b>"}`, "large'; id; '": large} {
		op := sink.Op{
			Doc: shard.DocID("content#" + id), Kind: shard.Put, Fence: 1, Version: "1", At: time.Now(),
			Document: []byte(body),
		}
		if out := s.index.Write(t.Context(), []sink.Op{op}); out[0].Kind != sink.Applied {
			t.Fatal(out)
		}
	}
	var d operate.Document
	s.into(&d, "/console/document/sink?key=content%23small", "")
	var got map[string]string
	if err := json.Unmarshal(d.Document, &got); err != nil || got["html"] != "</script><b>" {
		t.Errorf("got %s, %v", d.Document, err)
	}
	// The command is for a shell, and the id in it must not add a command.
	s.refused(http.StatusRequestEntityTooLarge, `lull get 'content#large'\''; id; '\''`,
		"/console/document/sink?key=content%23large%27%3B+id%3B+%27", "")
}

// The console says of each sink whether a search finds the document.
func TestADocumentIsSearchableOrNot(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.options.API.Searchable = func(_ context.Context, q searchable.Question) (searchable.Answer, error) {
		in := searchable.Sink{Sink: "search", Searchable: searchable.No, Why: "it waits"}
		return searchable.Answer{Key: q.Key, Searchable: searchable.No, Sinks: []searchable.Sink{in}}, nil
	}
	var a searchable.Answer
	s.into(&a, "/console/document/searchable?key=content%23a", "")
	if a.Key != "content#a" || len(a.Sinks) != 1 || a.Sinks[0].Why != "it waits" {
		t.Errorf("got %+v", a)
	}
}

func TestADeniedStackNamesTheMissingRight(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.options.API = deniedAPI
	for _, path := range []string{
		"documents", "document?key=content%23a", "document/sink?key=content%23a", "document/newest?key=content%23a",
	} {
		s.refused(http.StatusForbidden, "dynamodb:Query", "/console/"+path, "")
	}
}
