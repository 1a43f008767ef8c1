// SPDX-License-Identifier: Apache-2.0

package searchability_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/searchability"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/searchable"
)

// asked returns a handler of a stack with an empty table.
func asked() http.Handler {
	c := config.Default()
	c.Collections = map[string]config.Collection{"content": {}}
	s := searchability.Service{Shards: memory.NewShards(), Config: &c, Clock: clock.System{}}
	return searchability.Handler(s.Answer, func(error) {})
}

func get(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "/", http.NoBody)
	r.URL.Path, r.URL.RawQuery, _ = strings.Cut(target, "?")
	h.ServeHTTP(w, r)
	return w
}

// A caller is told which parameter is wrong, whatever it sends.
func TestABadQuestionNamesItsParameter(t *testing.T) {
	t.Parallel()
	h := asked()
	long := strings.Repeat("a", 513)
	for target, want := range map[string]struct {
		status int
		says   string
	}{
		"/searchable?key=content%23a":                                 {200, `"searchable":"no"`},
		"/searchable?key=content%23a&version=7&wait=0s":               {200, `"version":"7"`},
		"/searchable?key=content%23%00%E2%80%AE%F0%9F%92%A9%22%3C":    {200, `"place":"unseen"`},
		"/searchable?key=content%40search%23a":                        {200, `"sink":"search"`},
		"/searchable?key=content%23" + long[1:]:                       {200, `"searchable":"no"`},
		"/searchable":                                                 {400, "key: say which document"},
		"/searchable?key=":                                            {400, "key: say which document"},
		"/searchable?key=content":                                     {400, "key: "},
		"/searchable?key=content%23":                                  {400, "key: document id is empty"},
		"/searchable?key=content%23" + long:                           {400, "key: document id has 513 bytes"},
		"/searchable?key=content%23%ff":                               {400, "key: the id is not valid UTF-8"},
		"/searchable?key=!health%23search":                            {400, "key: collection"},
		"/searchable?key=other%23a":                                   {400, "key: the settings name no collection"},
		"/searchable?key=content%40else%23a":                          {400, "key: collection content is not written to a sink"},
		"/searchable?key=content%23a&key=content%23b":                 {400, "key: give it once"},
		"/searchable?key=content%23a&version=seven":                   {400, "version: "},
		"/searchable?key=content%23a&version=-1":                      {400, "version: "},
		"/searchable?key=content%23a&version=" + long:                 {400, "version: it has 513 bytes"},
		"/searchable?key=content%23a&version=e010,i011,-,0,83af3a6fc": {400, "version: "},
		"/searchable?key=content%23a&wait=5":                          {400, "wait: want a duration"},
		"/searchable?key=content%23a&wait=-1s":                        {400, "wait: want 0s to 20s"},
		"/searchable?key=content%23a&wait=21s":                        {400, "wait: want 0s to 20s"},
		"/searchable?key=content%23a&wait=9999999h":                   {400, "wait: "},
		"/searchable?key=content%23a&body=x":                          {400, `query: "body" is not`},
		"/searchable?key=%zz":                                         {400, "query: "},
		"/searchable?key=content%23a&" + strings.Repeat("x", 5000):    {400, "query: it has 5016 bytes"},
		"/other?key=content%23a":                                      {404, "/searchable"},
		"//searchable?key=content%23a":                                {404, "/searchable"},
	} {
		w := get(h, http.MethodGet, target)
		said := w.Body.String()
		var plain struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &plain); err != nil {
			t.Errorf("%s: %v in %s", target, err, said)
		}
		if w.Code != want.status || !strings.Contains(said+plain.Error, want.says) {
			t.Errorf("%.60s: got %d %s, want %d with %s", target, w.Code, said, want.status, want.says)
		}
	}
	if w := get(h, http.MethodPost, "/searchable?key=content%23a"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d", w.Code)
	}
}

// An error of the stack is logged, and the caller learns no details.
func TestAnErrorOfTheStackIsLogged(t *testing.T) {
	t.Parallel()
	secret, logged := errors.New("AccessDenied: arn:aws:iam::1:role/x"), error(nil)
	h := searchability.Handler(func(context.Context, searchable.Question) (searchable.Answer, error) {
		return searchable.Answer{}, secret
	}, func(err error) { logged = err })
	w := get(h, http.MethodGet, "/searchable?key=content%23a")
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "arn") ||
		!errors.Is(logged, secret) {
		t.Errorf("got %d %s, logged %v", w.Code, w.Body, logged)
	}
}

// Whatever the query is, the answer is JSON with status 200 or 400.
func FuzzAQuestionIsAnsweredOrRefused(f *testing.F) {
	h := asked()
	for _, query := range []string{"key=content%23a&version=7&wait=0s", "key=%zz", "wait=1e9", "version=%00&key=content%23%ff"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if v, err := url.ParseQuery(query); err == nil && v.Get("wait") != "" {
			return // it would wait
		}
		w := get(h, http.MethodGet, "/searchable?"+query)
		if !json.Valid(w.Body.Bytes()) || !utf8.Valid(w.Body.Bytes()) || w.Code != 200 && w.Code != 400 {
			t.Errorf("got %d %q", w.Code, w.Body)
		}
	})
}
