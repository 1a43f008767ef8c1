// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/console"
	"github.com/lullhq/lull/internal/local/server"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
)

func TestSearchableSaysWhatIsWrongWithAKey(t *testing.T) {
	t.Parallel()
	e, _ := serve(t, func(*config.Config) {})
	api := e.Operator(nil).API()
	h := server.Handler(e, console.Options{API: api, Config: new(config.Config), Clock: clock.System{}})
	for query, want := range map[string]struct {
		status int
		says   string
	}{
		"key=content%23a": {http.StatusOK, `"searchable":"no"`},
		"key=content":     {http.StatusBadRequest, "key: "},
		"":                {http.StatusBadRequest, "key: "},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/searchable?"+query, nil))
		if body := strings.ReplaceAll(w.Body.String(), " ", ""); w.Code != want.status || !strings.Contains(body, strings.TrimSpace(want.says)) {
			t.Errorf("%q: got %d %s, want %d with %s", query, w.Code, w.Body, want.status, want.says)
		}
	}
}

// A faulty message is the sender's fault, and a stack that does not take a message is not.
func TestPublishTellsAFaultyMessageFromAStackThatFails(t *testing.T) {
	t.Parallel()
	e, _ := serve(t, func(*config.Config) {})
	api := e.Operator(nil).API()
	publish := func(message string) *httptest.ResponseRecorder {
		t.Helper()
		h := server.Handler(e, console.Options{API: api, Config: new(config.Config), Clock: clock.System{}})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/publish", strings.NewReader(message))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := publish(`{"type":"doc.changed","subject":"a"}`); w.Code != http.StatusBadRequest {
		t.Errorf("a message without a version: got %d %s", w.Code, w.Body)
	}
	api.Publish = func(context.Context, operate.Publication) (operate.Published, error) {
		return operate.Published{}, errors.New("the queue is away")
	}
	w := publish(`{"type":"doc.changed","subject":"a","sequence":"1","data":{}}`)
	if w.Code < http.StatusInternalServerError || !strings.Contains(w.Body.String(), "the queue is away") {
		t.Errorf("a stack that fails: got %d %s", w.Code, w.Body)
	}
}
