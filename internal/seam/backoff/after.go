package backoff

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxAfter bounds what a service may ask for: a slip in its clock must not stop indexing for a day.
const maxAfter = time.Hour

// After reads the header Retry-After, 0 for none: seconds, or an HTTP date, which is relative to
// the answer's own date where it has one. It is an hour at most.
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
