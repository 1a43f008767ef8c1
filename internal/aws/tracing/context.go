package tracing

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/oklog/ulid/v2"
)

// A spanContext names a span: hexadecimal, lower case, as OTLP's JSON and traceparent write it.
type spanContext struct{ trace, span string }

// parse reads a traceparent (W3C Trace Context, level 1: version, trace id, parent id, flags). ok
// is false if it is malformed or its sender does not sample it. A version after 00 may be longer.
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
	flags, _ := hex.DecodeString(parts[3]) // it is hexadecimal
	return spanContext{parts[1], parts[2]}, flags[0]&1 == 1
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

// launchOf is the span of the invocation of receive that launched a flight. Its ids are computed
// from the flight's id, so that index knows them.
func launchOf(flight string) spanContext {
	id, err := ulid.ParseStrict(flight)
	if err != nil { // a flight of a test
		sum := sha256.Sum256([]byte(flight))
		copy(id[:], sum[:])
	}
	sum := sha256.Sum256([]byte("launch " + flight))
	return spanContext{hex.EncodeToString(id[:]), hex.EncodeToString(sum[:8])}
}

// random is n random bytes in hexadecimal.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
