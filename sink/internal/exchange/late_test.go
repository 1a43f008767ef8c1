// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/clock/clocktest"
)

// A timer does not run while a machine is suspended. So the context has not ended when the machine
// resumes, although its deadline has passed. A request that is sent then would be too late.
func TestNothingIsSentAfterItsDeadlineByTheTimeOfDay(t *testing.T) {
	t.Parallel()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer server.Close()
	c, err := Client{}.Open(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, tt := range []struct {
		asleep time.Duration
		sent   int
	}{{0, 1}, {50 * time.Second, 1}, {2 * time.Minute, 0}} {
		requests = 0
		slept := clocktest.Suspended(ctx, tt.asleep)
		a := c.Do(slept, http.MethodPost, "/", TypeJSON, []byte(`{}`), MaxAnswer)
		if requests != tt.sent || a.Sent != (tt.sent == 1) {
			t.Errorf("suspended for %s: %d requests, answer %+v; want %d", tt.asleep, requests, a, tt.sent)
		}
		if o, _ := Undelivered(slept, a); tt.sent == 0 && o != Late {
			t.Errorf("suspended for %s: the outcome is %+v, want %+v", tt.asleep, o, Late)
		}
	}
}
