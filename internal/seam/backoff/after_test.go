// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"net/http"
	"testing"
	"time"
)

func FuzzAfter(f *testing.F) {
	now := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	for _, s := range []string{
		"", "0", "17", "-1", "99999999999999999999", "1.5", "Fri, 20 Nov 2026 16:00:30 GMT",
		"soon",
	} {
		f.Add(s, "")
		f.Add(s, "Fri, 20 Nov 2026 15:59:00 GMT")
	}
	f.Fuzz(func(t *testing.T, after, date string) {
		h := http.Header{}
		h.Set("Retry-After", after)
		h.Set("Date", date)
		if d := After(h, now); d < 0 || d > maxAfter {
			t.Fatalf("Retry-After %q, Date %q: %s", after, date, d)
		}
	})
}
