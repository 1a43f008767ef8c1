// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
)

// contentStore is a CMS from which lull fetches documents. It answers from a replica that may lag
// or be down.
type contentStore struct {
	url string

	mu   sync.Mutex
	docs map[string]*content
}

type content struct {
	version      int
	behind, down int // how often the CMS answers with the version before, and how often with an error
	asked        int
}

var cms = sync.OnceValue(func() *contentStore {
	s := &contentStore{docs: make(map[string]*content)}
	s.url = httptest.NewServer(s).URL // the server runs until the tests end
	return s
})

func (s *contentStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.docs[r.URL.Path]
	if d == nil {
		http.NotFound(w, r)
		return
	}
	d.asked++
	version := d.version
	switch {
	case d.down > 0:
		d.down--
		http.Error(w, "deploying", http.StatusServiceUnavailable)
		return
	case d.behind > 0:
		d.behind--
		version--
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"payload_version": %d, "title": "state %d"}`, version, version)
}

func (s *contentStore) set(id string, c content) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.docs["/content/"+id] = &c
}

func (s *contentStore) asked(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.docs["/content/"+id].asked
}

// An event says only that a document changed. lull writes only the newest state of the document,
// even if a replica lags or is down for a moment.
func TestTheNewestStateIsFetched(t *testing.T) {
	s := withDefaults(t)
	s.NeedServers(t) // the functions must be able to call this process
	const c = "pages"
	for id, d := range map[string]content{
		"lagging": {version: 3, behind: 2}, "down": {version: 3, down: 2}, "well": {version: 3},
	} {
		cms().set(id, d)
		var thin []string
		for v := range 3 {
			thin = append(thin, fmt.Sprintf(`{"type":"doc.touched","collection":%q,"subject":%q,"sequence":"%d"}`, c, id, v+1))
		}
		s.Wrapped(t, "cms", thin...)
	}
	want := map[string]int{"lagging": 3, "down": 3, "well": 3}
	for id, version := range want {
		s.Committed(t, ground.Key(c, id), version)
	}
	s.Holds(t, c, want)
	for id, loads := range map[string]int{"lagging": 3, "down": 3, "well": 1} {
		if got := s.Search.Documents(t, s.Index(c))[id].Fields["title"]; got != "state 3" {
			t.Errorf("%s: the sink holds %v, want state 3", id, got)
		}
		if got := cms().asked(id); got < loads {
			t.Errorf("%s: the CMS was asked %d times, want %d or more", id, got, loads)
		}
		t.Logf("%s: the CMS was asked %d times for 3 events", id, cms().asked(id))
	}
}
