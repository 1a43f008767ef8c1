package source

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// version is a version as a message has it.
type version struct {
	field string // its name, for faults
	value gjson.Result
}

// advice says for each class what is allowed.
var advice = map[shard.Class]string{
	shard.ClassInt:  "send 1 to 40 digits, as text or as a number",
	shard.ClassSeq:  "send up to 32 hexadecimal digits",
	shard.ClassTime: "send an RFC 3339 time, or milliseconds since 1970",
	shard.ClassLSN:  "send 16/B374D848 or the same as a decimal number",
	shard.ClassLex:  "send 1 to 64 of 0-9, A-Z, a-z, _ and -",
}

// example is a version of each class, for faults.
var example = map[shard.Class]string{
	shard.ClassInt:  "12",
	shard.ClassSeq:  "0055AED6DCD90281E5",
	shard.ClassTime: "2026-11-20T16:00:00Z",
	shard.ClassLSN:  "16/B374D848",
	shard.ClassLex:  "01JD2V6Y5T3KQ8Z4M7N9P0R1S2",
}

// judge reads a version and its text as the upstream wrote it. A number is taken digit for digit.
// Only a version that is not there at all, or null, is none: the policy arrival never stands in for
// a broken one.
func (r *rules) judge(o origin, v version) (shard.Version, shard.Class, string, *event.Fault) {
	bad := func(problem string) (shard.Version, shard.Class, string, *event.Fault) {
		return shard.Version{}, 0, "", &event.Fault{
			Reason: deadletter.VersionInvalid, Field: v.field,
			Problem: problem + ": " + advice[r.class],
		}
	}
	var text string
	switch v.value.Type {
	case gjson.Null:
		if !r.arrival {
			return shard.Version{}, 0, "", &event.Fault{
				Reason: deadletter.VersionInvalid, Field: v.field,
				Problem: fmt.Sprintf(
					`%s is missing: send the version of the document, deletes included, e.g. %q:%q`, v.field,
					lastToken(v.field), example[r.class]),
			}
		}
		parsed, err := shard.TimeVersion(o.sent)
		if err != nil {
			return bad("the time at which the message was sent is no version: " + err.Error())
		}
		return parsed, shard.ClassTime, o.sent.UTC().Format(time.RFC3339Nano), nil
	case gjson.String:
		if text = v.value.Str; text == "" {
			return bad(v.field + " is empty")
		}
	case gjson.Number:
		text = v.value.Raw
	default:
		return bad(fmt.Sprintf("%s is %s", v.field, typeName(v.value)))
	}
	if r.class == shard.ClassTime && digitsOnly(text) {
		t, err := fromDigits(v.field, text)
		if err != nil {
			return bad(err.Error())
		}
		parsed, err := shard.TimeVersion(t)
		if err != nil {
			return bad(err.Error())
		}
		return parsed, r.class, text, nil
	}
	parsed, err := shard.ParseVersion(r.class, text)
	if err != nil {
		return bad(err.Error())
	}
	return parsed, r.class, text, nil
}

// instant reads a time: RFC 3339, or digits since 1970 where a source allows them. Nothing and null
// are the zero time.
func instant(field string, v gjson.Result, digits bool) (time.Time, *event.Fault) {
	var err error
	var t time.Time
	switch {
	case v.Type == gjson.Null:
		return time.Time{}, nil
	case digits && v.Type == gjson.Number && digitsOnly(v.Raw):
		if t, err = fromDigits(field, v.Raw); err == nil {
			return t, nil
		}
	case v.Type == gjson.String:
		if t, err = time.Parse(time.RFC3339Nano, v.Str); err == nil {
			return t.UTC(), nil
		}
	default:
		return t, contract(field, "%s is %s: send an RFC 3339 time such as 2026-11-20T16:00:00Z", field, typeName(v))
	}
	return t, contract(field, "%s %s is no RFC 3339 time: send one such as 2026-11-20T16:00:00Z", field,
		event.Quote(v.Str+numberText(v)))
}

// numberText is a number's digits as they were sent.
func numberText(v gjson.Result) string {
	if v.Type == gjson.Number {
		return v.Raw
	}
	return ""
}

// fromDigits reads a count since 1970: milliseconds, unless the field's name says otherwise as
// Debezium's do (ts_us, ts_ns).
func fromDigits(field, text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is too large for a time", event.Quote(text))
	}
	switch {
	case strings.HasSuffix(field, "_us"):
		return time.UnixMicro(n).UTC(), nil
	case strings.HasSuffix(field, "_ns"):
		return time.Unix(n/1e9, n%1e9).UTC(), nil
	}
	return time.UnixMilli(n).UTC(), nil
}

func digitsOnly(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// lastToken is the field's own name where field is a JSON pointer.
func lastToken(field string) string { return field[strings.LastIndexByte(field, '/')+1:] }
