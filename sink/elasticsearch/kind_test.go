// SPDX-License-Identifier: Apache-2.0

package elasticsearch_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/elasticsearch"
	"github.com/lullhq/lull/sink/opensearch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a sink of a kind at an address.
func open(t *testing.T, kind, url string, key func(context.Context) (string, error)) sink.Sink {
	t.Helper()
	k, _ := sink.Lookup(kind)
	s, err := k.Open(t.Context(), sink.Settings{Kind: kind, URL: url, Index: "news-{collection}"},
		sink.Environment{Stack: "news", Name: "search", Key: key, Collections: []event.Collection{"content"}})
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := s.(io.Closer); ok {
		t.Cleanup(func() { _ = c.Close() })
	}
	return s
}

// engine starts a server that answers GET / and writes like a product. asked returns the requests
// so far.
func engine(t *testing.T, headers map[string]string, greeting string) (url string, asked func() []*http.Request) {
	t.Helper()
	var requests []*http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r)
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		switch {
		case r.URL.Path == "/":
			_, _ = io.WriteString(w, greeting)
		case strings.HasPrefix(r.URL.Path, "/_resolve/"):
			_, _ = io.WriteString(w, `{"indices":[{"name":"news-content","attributes":["open"]}]}`)
		case r.URL.Path == "/_bulk":
			_, _ = io.WriteString(w, `{"items":[{"index":{"_index":"news-content","_id":"a","status":201}}]}`)
		default:
			_, _ = io.WriteString(w, `{}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []*http.Request { return requests }
}

// Answers to GET / of several products.
const (
	elastic     = `{"version":{"number":"8.19.0","build_flavor":"default"},"tagline":"You Know, for Search"}`
	elasticless = `{"version":{"number":"8.11.0","build_flavor":"serverless"},"tagline":"You Know, for Search"}`
	amazon      = `{"version":{"distribution":"opensearch","number":"2.19.3"}}`
	legacy      = `{"version":{"number":"7.10.2","build_flavor":"oss"},"tagline":"You Know, for Search"}`
)

// A sink for one product refuses to write to the other product. The error of the sink says which
// kind to set.
func TestAKindRefusesTheOtherProduct(t *testing.T) {
	t.Parallel()
	header := map[string]string{"X-Elastic-Product": "Elasticsearch"}
	for name, tt := range map[string]struct {
		kind, greeting string
		headers        map[string]string
		says           string // a part of the error of Ping; empty if Ping must succeed
		writes         bool
	}{
		"Elasticsearch":               {elasticsearch.Name, elastic, header, "", true},
		"OpenSearch as Elasticsearch": {elasticsearch.Name, amazon, nil, "for OpenSearch, set kind: opensearch", false},
		"OpenSearch":                  {opensearch.Name, amazon, nil, "", true},
		"Elasticsearch as OpenSearch": {
			opensearch.Name, elastic, header, "this is Elasticsearch: set kind: elasticsearch",
			false,
		},
		// Elasticsearch 7.10 at Amazon does not send that header, and accepts the same requests as
		// OpenSearch.
		"Elasticsearch 7.10 as OpenSearch": {opensearch.Name, legacy, nil, "", true},
		"a serverless project":             {elasticsearch.Name, elasticless, header, "serverless project of Elasticsearch is not supported", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, asked := engine(t, tt.headers, tt.greeting)
			s := open(t, tt.kind, url, nil)
			if err := s.Ping(t.Context()); (err == nil) != (tt.says == "") ||
				err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("ping: got %v, want %q", err, tt.says)
			}
			if p, ok := s.(sink.Preparer); !ok {
				t.Error("it cannot be prepared")
			} else if err := p.Prepare(t.Context()); (err == nil) != (tt.says == "") {
				t.Errorf("prepare: got %v", err)
			}
			got := s.Write(t.Context(), []sink.Op{{
				Doc: "content#a", Kind: event.Put, Fence: 1, At: time.UnixMicro(1), Document: []byte(`{"title":"x"}`),
			}})[0]
			want := sink.Outcome{Kind: sink.Configuration, Reason: "another_product"}
			if tt.writes {
				want = sink.Outcome{Kind: sink.Applied, Status: http.StatusCreated}
			}
			if got != want {
				t.Errorf("write: got %+v, want %+v", got, want)
			}
			for _, r := range asked() {
				if !tt.writes && r.Method != http.MethodGet {
					t.Errorf("it was sent %s %s", r.Method, r.URL)
				}
			}
		})
	}
}

func TestAnAPIKeyIsSent(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"aWQ6a2V5":     "ApiKey aWQ6a2V5", // the form that Elasticsearch calls "encoded"
		"VuaCfG:ui2lp": "ApiKey VnVhQ2ZHOnVpMmxw",
	} {
		url, asked := engine(t, map[string]string{"X-Elastic-Product": "Elasticsearch"}, elastic)
		s := open(t, elasticsearch.Name, url, func(context.Context) (string, error) { return key, nil })
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := asked()[0].Header.Get("Authorization"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	url, asked := engine(t, nil, elastic)
	s := open(
		t,
		elasticsearch.Name,
		url,
		func(context.Context) (string, error) { return "", errors.New("no such secret") },
	)
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "get the API key: no such secret") {
		t.Errorf("got %v", err)
	}
	if n := len(asked()); n > 0 {
		t.Errorf("%d requests were sent without a key", n)
	}
}
