// SPDX-License-Identifier: Apache-2.0

package httpcall

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/pipeline/enrich"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asked posts a request to a server that answers with h. The settings name the server as private.
func asked(t *testing.T, h http.HandlerFunc) (string, *enrich.Failure) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	c := New(s.URL+"/v1", []string{"127.0.0.1"}, func(context.Context) (map[string]string, error) {
		return map[string]string{"Authorization": "Bearer hunter2"}, nil
	})
	defer c.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	text, err := c.Call(ctx, []byte(`{"documents":[]}`))
	var f *enrich.Failure
	if err != nil && !errors.As(err, &f) {
		f = &enrich.Failure{Reason: "?", Smaller: true} // enrich.Ask does the same with any other error
	}
	if f != nil && strings.Contains(f.Reason, "hunter2") {
		t.Errorf("the reason %s contains a header", f.Reason)
	}
	return string(text), f
}

func TestAnAnswerIsRead(t *testing.T) {
	t.Parallel()
	text, f := asked(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1" || r.Header.Get("Authorization") != "Bearer hunter2" ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
		}
		_, _ = w.Write([]byte("yes"))
	})
	if text != "yes" || f != nil {
		t.Errorf("got %s, %v", text, f)
	}
}

// A certificate that is not trusted does not count as Smaller, because a request with fewer
// documents meets the same certificate.
func TestACertificateThatIsNotTrustedIsNamed(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the request was sent")
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // do not log the broken handshake
	s.StartTLS()
	defer s.Close()
	c := New(s.URL, []string{"127.0.0.1"}, func(context.Context) (map[string]string, error) { return nil, nil })
	_, err := c.Call(t.Context(), []byte(`{"documents":[]}`))
	var f *enrich.Failure
	if !errors.As(err, &f) || f.Smaller || !strings.Contains(f.Reason, "certificate") {
		t.Errorf("got %+v, want a failure that names the certificate", err)
	}
}

func TestEachStatusHasItsFailure(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]enrich.Failure{
		429: {Throttled: true, RetryAfter: 7 * time.Second}, 503: {Throttled: true, RetryAfter: 7 * time.Second},
		500: {Smaller: true}, 502: {Smaller: true}, 400: {Smaller: true}, 413: {Smaller: true}, 422: {Smaller: true},
		401: {}, 403: {}, 404: {}, 302: {}, 204: {},
	} {
		_, f := asked(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		})
		if f == nil || f.Throttled != want.Throttled || f.Smaller != want.Smaller || f.RetryAfter != 7*time.Second {
			t.Errorf("%d: got %+v, want %+v", status, f, want)
		}
	}
}

func TestWhatIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			for range enrich.MaxAnswer>>20 + 1 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		},
		"a bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 100 {
				if _, err := z.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
			_ = z.Close()
		},
		"half": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		},
		"nothing": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		text, f := asked(t, h)
		if large := len(text) > enrich.MaxAnswer; f == nil && !large || len(text) > enrich.MaxAnswer+1 {
			t.Errorf("%s: got %d bytes, %v", name, len(text), f)
		}
	}
}

// A host in a private network is called only if the settings name it, whatever its name resolves
// to.
func TestPrivateAddressesAreAskedOnlyWhereNamed(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the private host got a request")
	}))
	defer s.Close()
	named := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	for _, address := range []string{s.URL, named, "http://169.254.169.254/"} {
		c := New(address, []string{"another.example.org", "169.254.169.254"}, nil)
		_, err := c.Call(t.Context(), nil)
		var f *enrich.Failure
		if !errors.As(err, &f) || f.Smaller || !strings.Contains(f.Reason, "allowPrivate") {
			t.Errorf("%s: got %v, want the address refused", address, err)
		}
	}
	c := New("http://127.0.0.1:1/", []string{"127.0.0.1"}, nil)
	_, err := c.Call(t.Context(), nil)
	var f *enrich.Failure
	if !errors.As(err, &f) || f.Smaller || f.Reason != "it cannot be connected to" {
		t.Errorf("got %v, want a failed connection", err)
	}
	c = New(
		"http://127.0.0.1:1/",
		nil,
		func(context.Context) (map[string]string, error) { return nil, errors.New("x") },
	)
	if _, err = c.Call(t.Context(), nil); !errors.As(err, &f) || f.Reason != "its headers cannot be read" {
		t.Errorf("got %v, want an error about the headers", err)
	}
}
