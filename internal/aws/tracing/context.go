// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/oklog/ulid/v2"
)

// A spanContext identifies a span. The ids are hexadecimal and lower case, as in OTLP's JSON and in
// a traceparent.
type spanContext struct{ trace, span string }

// parse reads a traceparent (W3C Trace Context, level 1: version, trace id, parent id, flags). ok
// is false if the traceparent is malformed or the sender does not sample the trace. A traceparent
// of a version after 00 may be longer.
func parse(traceparent string) (c spanContext, ok bool) {
	const length = 55
	if len(traceparent) < length || len(traceparent) > 4*length {
		return c, false
	}
	parts := strings.SplitN(traceparent, "-", 5)
	if len(parts) < 4 || len(parts) == 5 && parts[0] == "00" {
		return c, false
	}
	for i, n := range []int{2, 32, 16, 2} {
		if len(parts[i]) != n || !isHex(parts[i]) {
			return c, false
		}
	}
	if parts[0] == "ff" || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return c, false
	}
	flags, _ := hex.DecodeString(parts[3]) // cannot fail: isHex has checked the text
	return spanContext{parts[1], parts[2]}, flags[0]&1 == 1
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

// launchOf returns the span of the invocation of receive that launched a flight. The ids of the
// span are computed from the id of the flight, so that index knows them, too.
func launchOf(flight string) spanContext {
	id, err := ulid.ParseStrict(flight)
	if err != nil { // not a ULID: only flights in tests have such ids
		sum := sha256.Sum256([]byte(flight))
		copy(id[:], sum[:])
	}
	sum := sha256.Sum256([]byte("launch " + flight))
	return spanContext{hex.EncodeToString(id[:]), hex.EncodeToString(sum[:8])}
}

// randomHex returns n random bytes in hexadecimal.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // rand.Read never fails
	return hex.EncodeToString(b)
}
