// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
)

// Invalid says that a field of an event is missing or wrong. The problem says what is allowed.
// Quote a value with [event.Quote], and only if the value identifies something, because problems
// are logged.
func Invalid(field, format string, args ...any) *event.Invalid {
	return &event.Invalid{Reason: event.Contract, Field: field, Problem: fmt.Sprintf(format, args...)}
}

// TypeName returns the type of a value in words, for problems.
func TypeName(v gjson.Result) string { return event.TypeName(v) }

// Object returns nil if a body can be an event of a source that reads JSON objects. Otherwise it
// returns the reason.
func Object(b event.Body) *event.Invalid {
	if b.Shape != event.Plain {
		return Invalid("", "the message is a notification of S3: it needs a source of kind s3, named by the attribute "+
			"lull-source or as defaultSource")
	}
	if b.Text[0] != '{' {
		return Invalid("", "the body is %s: send a JSON object", TypeName(gjson.Parse(b.Text)))
	}
	return nil
}

// Identity reads a text or number that identifies a document. It refuses half a surrogate pair.
// Each such half is read as U+FFFD, so two different ids would become one document.
func Identity(field string, v gjson.Result) (string, *event.Invalid) {
	switch v.Type {
	case gjson.String:
		if strings.ContainsRune(v.Str, '\uFFFD') && strings.Contains(strings.ToLower(v.Raw), `\ud`) {
			return "", Invalid(field, "%s holds half a surrogate pair: send whole characters", field)
		}
		return v.Str, nil
	case gjson.Number:
		return v.Raw, nil
	case gjson.Null:
		return "", Invalid(field, "%s is missing: send the document's id, 1 to %d bytes", field, event.MaxIDBytes)
	}
	return "", Invalid(field, "%s is %s: send the document's id as text", field, TypeName(v))
}

// TextIdentity is Identity for a field that must be text.
func TextIdentity(field string, v gjson.Result) (string, *event.Invalid) {
	if v.Type == gjson.Number {
		return "", Invalid(field, "%s is a number: send the document's id as text", field)
	}
	return Identity(field, v)
}

// Optional reads a text that may be left out or null.
func Optional(field string, v gjson.Result) (string, *event.Invalid) {
	switch v.Type {
	case gjson.String:
		return v.Str, nil
	case gjson.Null:
		return "", nil
	}
	return "", Invalid(field, "%s is %s: send text or omit the field", field, TypeName(v))
}

// ResyncRun reads the run of an event in mode resync. Without a run, an event with an equal version
// would count as a duplicate.
func ResyncRun(v gjson.Result) (event.Run, *event.Invalid) {
	if v.Type != gjson.String || v.Str == "" {
		return event.Run{}, Invalid(runField, "resyncrun is missing: with mode resync, send the run's ULID, e.g. "+
			"\"resyncrun\":\"01JD2V6Y5T3KQ8Z4M7N9P0R1S2\"")
	}
	run, err := shard.ParseRun(v.Str)
	if err != nil {
		return event.Run{}, Invalid(runField, "%s is not a ULID: send 26 characters of Crockford's base 32, not all zero",
			event.Quote(v.Str))
	}
	return run, nil
}

// Instant reads a time in RFC 3339. If digits is true, the value may also be a number of
// milliseconds since 1970. The units are smaller if the field's name ends in _us or _ns, as in
// Debezium. A missing value and null give the zero time.
func Instant(field string, v gjson.Result, digits bool) (t time.Time, f *event.Invalid) {
	var err error
	sent := v.Str
	switch {
	case v.Type == gjson.Null:
		return t, nil
	case v.Type == gjson.String:
		t, err = time.Parse(time.RFC3339Nano, sent)
	case digits && v.Type == gjson.Number && digitsOnly(v.Raw):
		sent = v.Raw
		t, err = fromDigits(field, sent)
	default:
		return t, Invalid(field, "%s is %s: send an RFC 3339 time such as 2026-11-20T16:00:00Z", field, TypeName(v))
	}
	if err != nil {
		return time.Time{}, Invalid(field, "%s %s is not an RFC 3339 time: send one such as 2026-11-20T16:00:00Z", field,
			event.Quote(sent))
	}
	return t.UTC(), nil
}

var escapeKey = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

// MaxColumns is how many columns a key may have. PostgreSQL allows half as many.
const MaxColumns = 64

// JoinKey makes one text from a key of several columns: the values in the order of the columns'
// names, joined by |. Inside a value, | and \ are escaped by \, so that two keys never become one
// id.
func JoinKey(columns map[string]string) string {
	values := make([]string, 0, len(columns))
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		values = append(values, escapeKey.Replace(columns[name]))
	}
	// The separators after empty values at the beginning are removed. Existing ids depend on this.
	return strings.TrimLeft(strings.Join(values, "|"), "|")
}
