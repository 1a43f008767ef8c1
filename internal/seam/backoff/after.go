// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxAfter bounds the wait that a service may ask for. A service with a wrong clock must not stop
// indexing for a day.
const maxAfter = time.Hour

// After parses the header Retry-After and returns the wait. The wait is 0 if the header has none,
// and at most an hour. The header holds seconds or an HTTP date. A date is relative to the date of
// the answer, if the answer has one.
func After(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxAfter)
}
