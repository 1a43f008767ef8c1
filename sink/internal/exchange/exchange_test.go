// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/sink"
)

// A key that cannot be sent in a header, for example because it contains a line break, counts as
// missing credentials. A retry would not help.
func TestACredentialThatNoHeaderCanHold(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	defer server.Close()
	transport := NewTransport()
	defer transport.CloseIdleConnections()
	for _, key := range []string{"hid\nden", "hid\x00den", "hid\x7fden"} {
		c := Client{Address: server.URL, Transport: transport, Authenticate: func(r *http.Request) error {
			r.Header.Set("X-Key", key)
			return nil
		}}
		a := c.Do(t.Context(), http.MethodGet, "/", "", nil, 1)
		if a.Err == nil || a.Sent || !a.Unauthenticated() || strings.Contains(a.Err.Error(), "den") ||
			!strings.Contains(a.Err.Error(), "X-Key") {
			t.Errorf("%q: %+v", key, a)
		}
	}
}

func TestWhatAStatusSaysOfTheSink(t *testing.T) {
	t.Parallel()
	away := []int{425, 429, 500, 502, 503, 504}
	denied := []int{401, 403}
	for _, status := range append([]int{0, 400, 404, 409, 501}, append(away, denied...)...) {
		err := fmt.Errorf("ping: %w", &Error{Kind: "test", Status: status})
		if got := errors.Is(err, sink.ErrAway); got != slices.Contains(away, status) {
			t.Errorf("HTTP %d is away: %t", status, got)
		}
		if got := errors.Is(err, sink.ErrDenied); got != slices.Contains(denied, status) {
			t.Errorf("HTTP %d is denied: %t", status, got)
		}
	}
}
