// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTheGuardRefusesOtherSitesAndStrangers(t *testing.T) {
	t.Parallel()
	const token = "the token of this run"
	for name, tt := range map[string]struct {
		always, remote    bool // always is Guard.Always; remote means that the server is not on loopback
		method, path      string
		host, origin      string
		site, mode, token string
		dest              string
		want              int
	}{
		"the page":         {path: "/", want: 200},
		"its files":        {path: "/assets/app.js", want: 200},
		"curl looks":       {path: "/console/about", want: 200},
		"curl publishes":   {method: "POST", path: "/publish", want: 200},
		"the commands ask": {method: "POST", path: "/operate/drop", want: 200},
		"the page looks":   {path: "/console/about", site: "same-origin", want: 200},
		"the page changes something": {
			method: "POST", path: "/operate/drop", site: "same-origin", token: token, want: 200,
		},
		"the page without its token": {
			method: "POST", path: "/operate/drop", site: "same-origin", want: 403,
		},
		"the page publishes without its token": {
			method: "POST", path: "/publish", origin: "http://localhost:7070", want: 403,
		},
		"a token of an earlier run": {
			method: "POST", path: "/publish", site: "same-origin", token: token + "x", want: 403,
		},
		"a part of the token": {
			method: "POST", path: "/publish", site: "same-origin", token: token[:5], want: 403,
		},
		"a page of another site changes": {
			method: "POST", path: "/publish", site: "cross-site", token: token, want: 403,
		},
		"another origin, without fetch metadata": {
			method: "POST", path: "/publish", origin: "http://evil.example", token: token, want: 403,
		},
		"another port of this machine": {
			method: "POST", path: "/publish", origin: "http://localhost:1", site: "same-site", token: token, want: 403,
		},
		"a page of another site looks": {
			path: "/console/documents", site: "cross-site", mode: "no-cors", want: 403,
		},
		"a stream of another origin, without fetch metadata": {
			path: "/console/events", origin: "http://evil.example", want: 403,
		},
		"a stream of a page without an origin": {path: "/console/events", origin: "null", want: 403},
		"a stream of the page, without fetch metadata": {
			path: "/console/events", origin: "http://localhost:7070", want: 200,
		},
		"an address to which browsers send no fetch metadata": {
			path: "/console/events", host: "0.0.0.0:7070", want: 421,
		},
		"a link of another site": {path: "/search", site: "cross-site", mode: "navigate", dest: "document", want: 200},
		"a link of another site to the page": {
			path: "/", site: "cross-site", mode: "navigate", dest: "document", want: 200,
		},
		"a frame of another site":  {path: "/search", site: "cross-site", mode: "navigate", dest: "iframe", want: 403},
		"a frame of the same site": {path: "/search", site: "same-site", mode: "navigate", dest: "frame", want: 403},
		"the page in a frame":      {path: "/", site: "cross-site", mode: "navigate", dest: "iframe", want: 403},
		"the page in an object":    {path: "/", site: "cross-site", mode: "navigate", dest: "object", want: 403},
		"no destination is named":  {path: "/search", site: "cross-site", mode: "navigate", want: 403},
		"a page of another site loads a file": {
			path: "/assets/app.js", site: "cross-site", mode: "no-cors", want: 200,
		},
		"a foreign name":                      {path: "/console/about", host: "evil.example", want: 421},
		"a foreign name that looks like ours": {path: "/", host: "localhost.evil.example", want: 421},
		"an address":                          {path: "/console/about", host: "[::1]:7070", want: 200},
		"our name with a final dot":           {path: "/console/about", host: "LOCALHOST.:7070", want: 200},
		"a foreign name, not of this machine": {
			remote: true, path: "/console/about", host: "lull.example", want: 200,
		},
		"always: the page":                      {always: true, path: "/", want: 200},
		"always: its files":                     {always: true, path: "/assets/app.js", want: 200},
		"always: curl":                          {always: true, path: "/console/about", want: 403},
		"always: a path that only looks free":   {always: true, path: "/console/assets/app.js", want: 403},
		"always: what is free cannot be posted": {always: true, method: "POST", path: "/", want: 403},
		"always: with the token":                {always: true, path: "/console/about", token: token, want: 200},
		"always: curl changes with the token": {
			always: true, method: "POST", path: "/operate/drop", token: token, want: 200,
		},
		"always: the commands have no token": {always: true, method: "POST", path: "/operate/drop", want: 403},
		"always: another site with a known token": {
			always: true, path: "/console/about", site: "cross-site", token: token, want: 403,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(tt.method, tt.path, nil)
			r.Host = "localhost:7070"
			if tt.host != "" {
				r.Host = tt.host
			}
			for header, value := range map[string]string{
				"Origin": tt.origin, "Sec-Fetch-Site": tt.site, "Sec-Fetch-Mode": tt.mode,
				"Sec-Fetch-Dest": tt.dest, TokenHeader: tt.token,
			} {
				if value != "" {
					r.Header.Set(header, value)
				}
			}
			w := httptest.NewRecorder()
			ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
			Guard{Token: token, Always: tt.always}.Protect(ok, !tt.remote).ServeHTTP(w, r)
			if w.Code != tt.want {
				t.Errorf("got %d, want %d: %s", w.Code, tt.want, w.Body)
			}
			for name := range headers {
				if w.Header().Get(name) == "" {
					t.Errorf("the answer has no %s", name)
				}
			}
		})
	}
}

// A guard without a token allows no page to change anything. In particular, it does not accept an
// empty token.
func TestAGuardWithoutATokenLetsNoPageChangeAnything(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/publish", nil)
	r.Host = "localhost"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set(TokenHeader, "")
	w := httptest.NewRecorder()
	Guard{}.Protect(http.NotFoundHandler(), true).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("got %d, want %d", w.Code, http.StatusForbidden)
	}
}
