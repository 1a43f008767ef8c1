// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

// cms returns a loader with a source "cms" on this machine, and the base of the source's addresses.
func cms(t *testing.T, h http.HandlerFunc, change func(*source.Fetch)) (*Loader, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	f := source.Fetch{
		URL: s.URL + "/{id}", Timeout: 5 * time.Second, MaxBytes: limit, AllowPrivate: []string{"127.0.0.1"},
	}
	if change != nil {
		change(&f)
	}
	l, err := New(nil, nil, limit).Pulling(map[string]source.Settings{"cms": {Fetch: &f}, "plain": {}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.pullers["cms"].client.CloseIdleConnections)
	return l, s.URL
}

func TestWhatASourceAnswers(t *testing.T) {
	t.Parallel()
	const (
		good   = iota
		fault  // permanent, about the document
		absent // the document does not exist
		away   // the source cannot be reached now
	)
	tests := []struct {
		path string
		kind int
		says string
	}{
		{"/200", good, "{}"},
		{"/limit", good, strings.Repeat("1", limit)},
		{"/charset", good, "{}"},
		{"/problem", good, "{}"},
		{"/packed", good, "{}"},
		{"/large", fault, "more than the 100B of fetch.maxBytes"},
		{"/unannounced", fault, "more than the 100B"},
		{"/bomb", fault, "more than the 100B"},
		{"/400", fault, "answered 400"},
		{"/414", fault, "answered 414"},
		{"/404", absent, "answered 404"},
		{"/410", absent, "answered 410"},
		{"/html", away, "something other than JSON"},
		{"/untyped", away, "something other than JSON"},
		{"/page", away, "something other than JSON"},
		{"/empty", away, "something other than JSON"},
		{"/half", away, "something other than JSON"},
		{"/204", away, "answered 204"},
		{"/302", away, "redirects are not followed"},
		{"/307", away, "redirects are not followed"},
		{"/401", away, "fetch.headers"},
		{"/403", away, "fetch.headers"},
		{"/408", away, "answered 408"},
		{"/429", away, "answered 429"},
		{"/500", away, "answered 500"},
		{"/503", away, "answered 503"},
		{"/cut", away, "broke"},
		{"/closed", away, "broke"},
	}
	l, base := cms(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "application/json" || len(r.Cookies()) > 0 {
			t.Error("the request does not ask for JSON, or has cookies")
		}
		header, status := w.Header(), 200
		header.Set("Content-Type", "application/json")
		body := "{}"
		switch r.URL.Path {
		case "/limit":
			body = strings.Repeat("1", limit)
		case "/charset":
			header.Set("Content-Type", "Application/JSON; charset=utf-8")
		case "/problem":
			header.Set("Content-Type", "application/hal+json")
		case "/html":
			header.Set("Content-Type", "text/html")
		case "/page":
			body = "<html>We are back soon</html>"
		case "/empty":
			body = ""
		case "/half": // the answer is cut off with the connection
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = fmt.Fprint(c, "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\":\"b")
				_ = c.Close()
			}
			return
		case "/untyped":
			header["Content-Type"] = nil
		case "/packed", "/bomb":
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				t.Error("the request does not accept gzip")
			}
			header.Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			if _, _ = z.Write([]byte(body)); r.URL.Path == "/bomb" {
				for range 1 << 10 {
					_, _ = z.Write(make([]byte, 1<<10))
				}
			}
			_ = z.Close()
			return
		case "/large":
			body = strings.Repeat("1", limit+1)
		case "/unannounced":
			for range limit + 1 {
				_, _ = w.Write([]byte("1"))
				_ = http.NewResponseController(w).Flush()
			}
			return
		case "/cut":
			header.Set("Content-Length", "90")
		case "/closed":
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = c.Close()
			}
			return
		case "/followed":
			t.Error("a redirect was followed")
		default:
			if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err != nil {
				t.Errorf("unknown path %s", r.URL.Path)
			}
			header.Set("Location", "/followed")
			header.Set("Set-Cookie", "a=b")
		}
		if w.WriteHeader(status); status != http.StatusNoContent {
			_, _ = w.Write([]byte(body))
		}
	}, nil)
	for _, tt := range tests {
		body, err := l.Fetch(t.Context(), "cms", base+tt.path)
		var bad *event.Invalid
		var unavailable *source.Unavailable
		kind := good
		switch {
		case errors.As(err, &unavailable):
			kind = away
		case errors.As(err, &bad) && bad.Missing:
			kind = absent
		case errors.As(err, &bad):
			kind = fault
		case err != nil:
			kind = -1
		}
		switch {
		case kind != tt.kind:
			t.Errorf("%s: got %v, want kind %d", tt.path, err, tt.kind)
		case kind == good && string(body) != tt.says:
			t.Errorf("%s: got %q, want %q", tt.path, body, tt.says)
		case kind != good && (!strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), base)):
			t.Errorf("%s: got %q, want %q and no address", tt.path, err, tt.says)
		case bad != nil && bad.Field != "fetch":
			t.Errorf("%s: got field %s", tt.path, bad.Field)
		}
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "100000": time.Hour, "-1": 0, "soon": 0, "Fri, 20 Nov 2026 16:00:30 GMT": 30 * time.Second,
		"Fri, 20 Nov 2026 15:00:00 GMT": 0,
	} {
		l, base := cms(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", text)
			w.Header().Set("Date", "Fri, 20 Nov 2026 16:00:00 GMT")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, nil)
		_, err := l.Fetch(t.Context(), "cms", base+"/a")
		var away *source.Unavailable
		if !errors.As(err, &away) || away.RetryAfter != want {
			t.Errorf("%q: got %v, %+v, want %s", text, err, away, want)
		}
	}
}

// If the settings do not name a host as private, its address must be public when lull connects. An
// earlier address of the name does not count.
func TestAPrivateHostMustBeNamed(t *testing.T) {
	t.Parallel()
	l, base := cms(t, func(http.ResponseWriter, *http.Request) { t.Error("the private host was connected to") },
		func(f *source.Fetch) { f.AllowPrivate = []string{"cms.internal"} })
	_, err := l.Fetch(t.Context(), "cms", base+"/a")
	if err == nil || !strings.Contains(err.Error(), "fetch.allowPrivate") {
		t.Errorf("got %v, want an error that names the setting", err)
	}
}

// Even a host that the settings name as private must not lead to a machine's own credentials.
func TestNoHostMayBeLinkLocal(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"169.254.169.254", "[fe80::1]", "0.0.0.0", "224.0.0.1", "[::ffff:169.254.169.254]"} {
		f := source.Fetch{
			URL: "http://" + host + "/{id}", Timeout: time.Second, MaxBytes: limit,
			AllowPrivate: []string{strings.Trim(host, "[]")},
		}
		l, err := New(nil, nil, limit).Pulling(map[string]source.Settings{"cms": {Fetch: &f}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !f.Private() {
			t.Errorf("%s is not named as private", host)
		}
		_, err = l.Fetch(t.Context(), "cms", "http://"+host+"/latest")
		if err == nil || !strings.Contains(err.Error(), "private address") {
			t.Errorf("%s: got %v, want the address refused", host, err)
		}
	}
}

func TestOnlyTheAddressOfTheSettingsIsAsked(t *testing.T) {
	t.Parallel()
	l, base := cms(t, func(http.ResponseWriter, *http.Request) { t.Error("the source got a request") }, nil)
	for _, ref := range []string{
		"", "http://other.example.org/a", "s3://bucket/key", strings.Replace(base, "http://", "http://me:pw@", 1) + "/a", "::",
	} {
		_, err := l.Fetch(t.Context(), "cms", ref)
		var bad *event.Invalid
		if !errors.As(err, &bad) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: got %v, want a fault", ref, err)
		}
	}
	for _, name := range []string{"plain", "unknown", ""} {
		if _, err := l.Fetch(t.Context(), name, base+"/a"); err == nil {
			t.Errorf("source %q: got no error", name)
		}
	}
}

func TestASlowSourceIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	l, base := cms(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}, func(f *source.Fetch) { f.Timeout = 20 * time.Millisecond })
	defer close(release)
	_, err := l.Fetch(t.Context(), "cms", base+"/a")
	if err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("got %v, want an error about an answer that did not come in time", err)
	}
}

func TestASourceGetsABoundedNumberOfRequestsAtATime(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	all := make(chan struct{})
	l, base := cms(t, func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == maxFetches {
			close(all)
		}
		<-all
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}, nil)
	errs := make(chan error)
	for range 3 * maxFetches {
		go func() {
			_, err := l.Fetch(t.Context(), "cms", base+"/a")
			errs <- err
		}()
	}
	for range 3 * maxFetches {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > maxFetches {
		t.Errorf("%d requests in parallel, want at most %d", most.Load(), maxFetches)
	}
}

func TestHeadersAreThoseOfTheSettings(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"got":%q}`, r.Header.Get("Authorization")) //nolint:gosec // a header of this test's own
	}))
	t.Cleanup(s.Close)
	f := source.Fetch{
		URL: s.URL + "/{id}", Timeout: time.Second, MaxBytes: limit, AllowPrivate: []string{"127.0.0.1"},
		Headers: source.Headers{Env: "CMS"},
	}
	var failure error
	l, err := New(nil, nil, limit).Pulling(map[string]source.Settings{"cms": {Fetch: &f}},
		func(h source.Headers) (HeadersOf, error) {
			if h.Env != "CMS" {
				t.Errorf("the headers were read for %+v, want the settings of the source", h)
			}
			return func(context.Context) (map[string]string, error) {
				return map[string]string{"Authorization": "Bearer secret"}, failure
			}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.pullers["cms"].client.CloseIdleConnections)
	if got, err := l.Fetch(t.Context(), "cms", s.URL+"/a"); err != nil || string(got) != `{"got":"Bearer secret"}` {
		t.Errorf("got %s, %v", got, err)
	}
	failure = errors.New("secret is not there")
	_, err = l.Fetch(t.Context(), "cms", s.URL+"/a")
	var away *source.Unavailable
	if !errors.As(err, &away) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want the source unavailable, and no secret in the error", err)
	}
	if _, err := New(nil, nil, limit).Pulling(map[string]source.Settings{"cms": {Fetch: &f}},
		func(source.Headers) (HeadersOf, error) { return nil, failure }); err == nil ||
		!strings.Contains(err.Error(), "sources.cms.fetch.headers: ") {
		t.Errorf("got %v, want the setting named", err)
	}
}

func TestAnObjectIsFetchedFromTheBucketOfTheSettings(t *testing.T) {
	t.Parallel()
	f := source.Fetch{URL: "s3://content-bucket/{id}.json", Timeout: time.Second, MaxBytes: 3 * setting.Size(1)}
	l, err := New(func(_ context.Context, bucket, key string) ([]byte, error) {
		switch key {
		case "gone.json":
			return nil, Missing()
		case "denied.json":
			return nil, errors.New("denied")
		case "large.json":
			return []byte("1234"), nil
		}
		return []byte(bucket[:1] + key[:1]), nil
	}, nil, limit).Pulling(map[string]source.Settings{"cms": {Fetch: &f}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"a.json": "", "gone.json": "not there", "denied.json": "cannot be read", "large.json": "more than the 3B",
	} {
		got, err := l.Fetch(t.Context(), "cms", "s3://content-bucket/"+key)
		if want == "" && (err != nil || string(got) != "ca") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %s, %v, want %s", key, got, err, want)
		}
	}
	if _, err := l.Fetch(t.Context(), "cms", "s3://other-bucket/a.json"); err == nil {
		t.Error("another bucket was read")
	}
}
