// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// door is a proxy between one sink and OpenSearch. While the door is closed, it answers 503.
type door struct {
	url    string
	closed atomic.Bool
	turned atomic.Int64 // the number of requests that the door answered with 503
}

var front = sync.OnceValue(func() *door {
	d := new(door)
	to, err := url.Parse(os.Getenv("OPENSEARCH_URL"))
	if err != nil {
		panic(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	d.url = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.closed.Load() {
			d.turned.Add(1)
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	})).URL // the proxy runs until the tests end
	return d
})

var fannedOutStack = sync.OnceValues(func() (*ground.Stack, error) {
	return deploy(ground.Settings{Stack: "lull-fanout", First: front().url})
})

// A topic sends every event to the queues of both sinks of a collection. While one sink is down,
// the other sink gets all documents. When the first sink is up again, it also gets all documents.
func TestOneOfTwoSinksIsDownAndTheOtherIsFresh(t *testing.T) {
	ground.Long(t)
	s, err := fannedOutStack()
	ground.Must(t, err)
	const c, documents = "pages", 5
	id := func(i int) string { return fmt.Sprintf("doc-%d", i) }
	vectors := func(i int) shard.DocID { return ground.Key(c, id(i)).In("vectors") }
	publish := func(version int) {
		var events []ground.Event
		for i := range documents {
			events = append(events, ground.Event{Collection: c, ID: id(i), Version: version})
		}
		s.Publish(t, events...)
	}
	publish(1)
	for i := range documents {
		s.Committed(t, ground.Key(c, id(i)), 1)
		s.Committed(t, vectors(i), 1)
	}

	front().closed.Store(true)
	defer front().closed.Store(false)
	publish(2)
	for i := range documents {
		s.Committed(t, vectors(i), 2)
		if row := s.Row(t, ground.Key(c, id(i))); row.Committed.VersionText() != "1" {
			t.Errorf("%s: version %s is committed in the sink that is down", id(i), row.Committed.VersionText())
		}
	}
	ground.Until(t, "the sink that is down is asked", func() (bool, string) {
		return front().turned.Load() > 0, "no request came"
	})
	s.Says(t, 0, "IN SINK vectors", "explain", string(ground.Key(c, id(0))))

	front().closed.Store(false)
	want := map[string]int{}
	for i := range documents {
		s.Committed(t, ground.Key(c, id(i)), 2)
		want[id(i)] = 2
	}
	s.Holds(t, c, want)
	for i := range documents {
		if got := s.Search.Documents(t, "vectors-of-"+s.Index(c))[id(i)].Fields["title"]; got != "version 2" {
			t.Errorf("%s: the second sink holds %v", id(i), got)
		}
	}

	// If a collection has only one sink, its events are skipped in the queue of the other sink.
	// They do not become dead letters.
	s.Publish(t, ground.Event{Collection: "news", ID: "n", Version: 1})
	s.Committed(t, ground.Key("news", "n"), 1)
	s.Drained(t)
	letters, _, err := s.Letters.List(t.Context(), deadletter.Filter{}, "", 10)
	if err != nil || len(letters) > 0 {
		t.Errorf("dead letters %+v, %v: want none", letters, err)
	}
	if got := s.Search.Documents(t, "vectors-of-"+s.Index("news")); len(got) > 0 {
		t.Errorf("the second sink holds %v of a collection that is not its own", got)
	}
}
