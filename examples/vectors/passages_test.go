// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	_ "github.com/lullhq/lull/source/builtin"
)

// called calls the example's enricher without a network.
type called struct{}

func (called) Call(_ context.Context, body []byte) ([]byte, error) {
	w := httptest.NewRecorder()
	passageHandler(w, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
	return w.Body.Bytes(), nil
}

// article is a message with a version of an article that has this many passages. Each passage names
// the version and its place.
func article(version, passages int) string {
	parts := make([]string, passages)
	for i := range parts {
		parts[i] = fmt.Sprintf("version%d passage%d", version, i)
	}
	body, _ := json.Marshal(strings.Join(parts, "\n\n")) // cannot fail: a text
	return fmt.Sprintf(`{"type":"doc.changed","subject":"a","sequence":"%d","data":{"title":"A","body":%s}}`, version, body)
}

// An article shrinks from five passages to two. Its versions arrive out of order and twice, and no
// passage of an older version stays.
func TestNoPassageOfAnOlderVersionStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg, versions := config.Default(), true
		cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
		cfg.Collections = map[string]config.Collection{"content": {Enrich: &config.Enrich{
			Kind: config.EnrichHTTP, URL: "https://embed.example.org/", Inputs: []string{"/body"},
		}}}
		cfg.Complete()
		index := memorysink.New(clock.System{}, memorysink.Settings{Versions: true})
		e, err := dev.New(dev.Options{
			Config: &cfg, Clock: clock.System{}, Sinks: map[string]sink.Sink{"search": index},
			Enrichers: map[shard.Collection]enrich.Caller{"content": called{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		e.Start(ctx)
		send := func(version, passages int) {
			t.Helper()
			if err := e.Publish(ctx, queue.Outgoing{Body: article(version, passages)}); err != nil {
				t.Fatal(err)
			}
		}
		// want checks the passages of the document, and that a search finds these alone.
		want := func(version, passages int) {
			t.Helper()
			time.Sleep(time.Minute)
			var got struct {
				Passages []passage `json:"passages"`
			}
			d, _, err := index.Get(ctx, "content#a")
			if err != nil || json.Unmarshal(d.Document, &got) != nil || len(got.Passages) != passages {
				t.Fatalf("got %s, %v, want %d passages", d.Document, err, passages)
			}
			for i, p := range got.Passages {
				if p.Text != fmt.Sprintf("version%d passage%d", version, i) || len(p.Vector) != dimensions {
					t.Errorf("passage %d: got %q with %d numbers", i, p.Text, len(p.Vector))
				}
			}
			for older := 1; older <= version; older++ {
				found, err := index.Search(ctx, sink.Query{Text: fmt.Sprintf("version%d", older), Limit: 1})
				if err != nil || (len(found) == 1) != (older == version && passages > 0) {
					t.Errorf("version %d: a search finds %d documents, %v", older, len(found), err)
				}
			}
		}
		send(1, 5)
		want(1, 5)
		for _, v := range []int{3, 2, 3, 1, 2} {
			send(v, map[int]int{1: 5, 2: 4, 3: 2}[v])
			time.Sleep(time.Second)
		}
		want(3, 2)
		send(2, 4) // long after the newer version
		send(1, 5)
		want(3, 2)
		send(4, 0)
		want(4, 0)
		cancel()
		e.Stop()
	})
}

// A search asks in the words of each engine, and names the passage that is nearest.
func TestTheNearestPassageIsNamed(t *testing.T) {
	enricher := httptest.NewServer(http.HandlerFunc(passageHandler))
	defer enricher.Close()
	asked := ""
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		asked = b.String()
		var hits []map[string]any
		for title, body := range map[string]string{"Austria": "The rivers.\n\nThe history of Vienna.", "Bread": "Flour.\n\nWater."} {
			all := passagesOf(map[string]string{"/body": body})
			inner := map[string]any{"hits": map[string]any{"hits": []any{map[string]any{"_source": all[1]}}}}
			hits = append(hits, map[string]any{
				"_source": map[string]any{"title": title, "passages": all}, "inner_hits": map[string]any{"passages": inner},
			})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"hits": map[string]any{"hits": hits}})
	}))
	defer index.Close()
	for engine, says := range map[string]string{
		"": `"match_all"`, "elasticsearch": `"query_vector"`, "opensearch": `"passages.vector":{`,
	} {
		found, err := searchPassages(enricher.URL, index.URL, "history of viennas", engine)
		if err != nil || len(found) != 2 || found[0].title != "Austria" ||
			found[0].passage != "The history of Vienna." || !strings.Contains(asked, says) || !strings.Contains(asked, `"nested"`) {
			t.Errorf("%s: got %v, %v, asked for %s", engine, found, err, asked)
		}
	}
	for text, engine := range map[string]string{"...": "", "one\n\ntwo": "", "one": "lucene"} {
		if _, err := searchPassages(enricher.URL, index.URL, text, engine); err == nil {
			t.Errorf("%q on %q: no error", text, engine)
		}
	}
}

// A document with too many passages is refused, because lull accepts a megabyte of fields.
func TestADocumentWithTooManyPassagesIsRefused(t *testing.T) {
	t.Parallel()
	for n, refused := range map[int]bool{mostPassages: false, mostPassages + 1: true} {
		inputs, err := json.Marshal(map[string]string{"/body": strings.Repeat("word\n\n", n)})
		if err != nil {
			t.Fatal(err)
		}
		a, failure := enrich.Ask(t.Context(), called{}, []enrich.Document{{ID: "a", Inputs: inputs}})
		if failure != nil || (a.Outcomes[0].Kind == enrich.Rejected) != refused {
			t.Errorf("%d passages: got %+v, %v", n, a.Outcomes, failure)
		}
	}
}
