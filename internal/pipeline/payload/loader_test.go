// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 100

func anywhere(netip.Addr) bool { return true }

// loader returns a loader that trusts only the certificate of this server.
func loader(t *testing.T, h http.HandlerFunc, allowed func(netip.Addr) bool) (*Loader, string) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	l := newLoader(nil, []string{u.Hostname()}, limit, allowed)
	transport, ok := l.client.Transport.(*http.Transport)
	if !ok {
		t.Fatal("the client has another transport")
	}
	client, ok := s.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the test server's client has another transport")
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: client.TLSClientConfig.RootCAs, MinVersion: tls.VersionTLS12}
	t.Cleanup(transport.CloseIdleConnections)
	return l, s.URL
}

func TestWhatAHostAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		path  string
		good  string
		fault string // part of a permanent error
	}{
		{path: "/200", good: "{}"},
		{path: "/limit", good: strings.Repeat("x", limit)},
		{path: "/large", fault: "more than 100 bytes"},
		{path: "/large/unannounced", fault: "more than 100 bytes"},
		{path: "/204", fault: "answered 204"},
		{path: "/301", fault: "redirects are not followed"},
		{path: "/401", fault: "answered 401"},
		{path: "/404", fault: "answered 404"},
		{path: "/410", fault: "answered 410"},
		{path: "/408"},
		{path: "/429"},
		{path: "/500"},
		{path: "/503"},
	}
	l, base := loader(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || len(r.Cookies()) > 0 {
			t.Error("the request has credentials or cookies")
		}
		var status int
		switch r.URL.Path {
		case "/limit":
			_, _ = w.Write([]byte(strings.Repeat("x", limit)))
		case "/large":
			_, _ = w.Write([]byte(strings.Repeat("x", limit+1)))
		case "/large/unannounced":
			for range limit + 1 {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
			}
		case "/followed":
			t.Error("a redirect was followed")
		default:
			if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err != nil {
				t.Errorf("unknown path %s", r.URL.Path)
			}
			w.Header().Set("Location", "/followed")
			w.Header().Set("Set-Cookie", "a=b")
			w.WriteHeader(status)
			if status == 200 {
				_, _ = w.Write([]byte("{}"))
			}
		}
	}, anywhere)
	for _, tt := range tests {
		got, err := l.Load(t.Context(), base+tt.path)
		var f *event.Invalid
		switch isFault := errors.As(err, &f); {
		case string(got) != tt.good:
			t.Errorf("%s: got %q, want %q", tt.path, got, tt.good)
		case (err == nil) != (tt.good != ""), isFault != (tt.fault != ""):
			t.Errorf("%s: got %v, want fault %q", tt.path, err, tt.fault)
		case isFault && !strings.Contains(f.Problem, tt.fault):
			t.Errorf("%s: got %q, want %q", tt.path, f.Problem, tt.fault)
		}
	}
}

func TestAnAddressThatIsNotPublicIsNotConnectedTo(t *testing.T) {
	t.Parallel()
	l, base := loader(t, func(http.ResponseWriter, *http.Request) {
		t.Error("the host was connected to")
	}, outbound.Public)
	_, err := l.Load(t.Context(), base+"/x")
	var f *event.Invalid
	if !errors.As(err, &f) || !strings.Contains(f.Problem, "not public") {
		t.Errorf("got %v, want a fault", err)
	}
}

// The query of a signed address is a secret, and the errors of the HTTP client quote the query.
func TestAnErrorDoesNotQuoteTheAddress(t *testing.T) {
	t.Parallel()
	l, base := loader(t, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Close() // the server gives no answer
	}, anywhere)
	_, err := l.Load(t.Context(), base+"/x?X-Amz-Signature=secret")
	var f *event.Invalid
	if err == nil || errors.As(err, &f) {
		t.Fatalf("got %v, want a temporary error", err)
	}
	if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), base) {
		t.Errorf("got %q, which quotes the address", err)
	}
}

func TestTheConnectionHasNoProxy(t *testing.T) {
	t.Parallel()
	transport, ok := New(nil, nil, limit).client.Transport.(*http.Transport)
	if !ok || transport.Proxy != nil {
		t.Error("the transport has a proxy, which could connect to any address")
	}
}

func TestOnlyWhatTheSettingsListIsLoaded(t *testing.T) {
	t.Parallel()
	l := New(nil, []string{"payloads.example.org"}, limit)
	for _, ref := range []string{
		"", "s3://", "s3://bucket", "s3://bucket/", "s3:///key", "http://payloads.example.org/x", "file:///etc/passwd",
		"gopher://x/",
		"https://other.example.org/x", "https://payloads.example.org.evil.org/x",
		"https://user:pw@payloads.example.org/x", "https:///x", "https://169.254.169.254/",
	} {
		_, err := l.Load(t.Context(), ref)
		var f *event.Invalid
		if !errors.As(err, &f) {
			t.Errorf("%s: got %v, want a fault", ref, err)
		} else if strings.Contains(f.Problem, "pw") {
			t.Errorf("%s: the fault quotes a password", ref)
		}
	}
}

func TestAnObjectIsLoadedByItsPlace(t *testing.T) {
	t.Parallel()
	l := New(func(_ context.Context, bucket, key string) ([]byte, error) { return []byte(bucket + " " + key), nil },
		nil, limit)
	if got, err := l.Load(t.Context(), "s3://payloads/a/b?c#d"); err != nil || string(got) != "payloads a/b?c#d" {
		t.Errorf("got %q, %v", got, err)
	}
}
