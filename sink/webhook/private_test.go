// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lullhq/lull/internal/seam/outbound"
)

// A host name may resolve to a private address only if the settings allow that. A private IP
// address in the url is always allowed.
func TestPrivateAddressesAreConnectedToOnlyWhereNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, tt := range []struct {
		o  Options
		ok bool
	}{
		{Options{URL: "https://hooks.example.org"}, false},
		{Options{URL: "https://8.8.8.8"}, false},
		{Options{URL: "http://169.254.169.254"}, false},
		{Options{URL: "https://hooks.example.org", Private: true}, true},
		{Options{URL: "http://localhost:8091"}, true},
		{Options{URL: "http://10.0.0.8"}, true},
	} {
		s, err := New(tt.o)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := s.transport.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if ok := err == nil; ok != tt.ok || !ok && !errors.Is(err, outbound.ErrForbidden) {
			t.Errorf("%+v: got %v, want connected %t", tt.o, err, tt.ok)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
}
