// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
)

// advice says for each class what is allowed, with an example.
var advice = map[event.Class]struct{ allowed, example string }{
	event.ClassInt:  {"send 1 to 40 digits, as text or as a number", "12"},
	event.ClassSeq:  {"send up to 32 hexadecimal digits", "0055AED6DCD90281E5"},
	event.ClassTime: {"send an RFC 3339 time or milliseconds since 1970; for days set class: lex", "2026-11-20T16:00:00Z"},
	event.ClassLSN:  {"send 16/B374D848 or the same as a decimal number", "16/B374D848"},
	event.ClassLex:  {"send 1 to 64 of 0-9, A-Z, a-z, _ and -", "01JD2V6Y5T3KQ8Z4M7N9P0R1S2"},
}

// judge reads a version, and returns the version, its class and its text. Only null and a version
// that does not exist count as missing. A version that cannot be read is invalid under every policy
// of NoVersion.
func (r *Rules) judge(sent time.Time, d *Draft) (shard.Version, event.Class, string, *event.Invalid) {
	v := d.Version
	if v.Value.Type == gjson.Null && r.Settings.NoVersion == NoVersionPosition && d.position != "" {
		v = positionVersion(r.class, d.position)
		d.Version = v // later problems then name the field position
	}
	bad := func(format string, args ...any) (shard.Version, event.Class, string, *event.Invalid) {
		return shard.Version{}, 0, "", VersionInvalid(v.Field, format, args...)
	}
	var text string
	switch v.Value.Type {
	case gjson.Null:
		switch r.Settings.NoVersion {
		case NoVersionPosition:
			v.Field = "position"
			return bad("the message has neither a version nor a position in a stream: noVersion: position needs records of " +
				"Kafka or Kinesis, sent by EventBridge Pipes")
		case NoVersionArrival:
		default:
			name := v.Field[strings.LastIndexByte(v.Field, '/')+1:] // if Field is a JSON pointer, its last part
			return bad("%s is missing: send the version of the document, deletes included, e.g. %q:%q", v.Field, name,
				advice[r.class].example)
		}
		parsed, err := shard.TimeVersion(sent)
		if err != nil {
			return bad("the sending time cannot be a version: %s: %s", err, advice[r.class].allowed)
		}
		return parsed, event.ClassTime, sent.UTC().Format(time.RFC3339Nano), nil
	case gjson.String, gjson.Number:
		if text = event.Text(v.Value); text == "" {
			return bad("%s is empty: %s", v.Field, advice[r.class].allowed)
		}
	default:
		return bad("%s is %s: %s", v.Field, TypeName(v.Value), advice[r.class].allowed)
	}
	parsed, err := parse(r.class, v.Field, text)
	if v.Field == "position" && err == nil && (!digitsOnly(text) || r.class == event.ClassLex && len(text) > placeDigits) {
		return bad("position %s is not a number of at most %d digits", event.Quote(text), placeDigits)
	}
	if err != nil && v.Field == "position" {
		return bad("position: %s: Kafka's offsets have the class int; Kinesis's sequence numbers, with %d digits, have "+
			"the class lex: set sources.%s.class", err, placeDigits, r.Name)
	}
	if err != nil {
		return bad("%s: %s%s", err, advice[r.class].allowed, r.otherClass(text))
	}
	return parsed, r.class, text, nil
}

// placeDigits is the number of digits of a sequence number of Kinesis.
const placeDigits = 56

// positionVersion returns a record's position in its stream as a version. For the class lex, the
// digits are padded, so that the texts compare in the same way as the numbers.
func positionVersion(class event.Class, digits string) Version {
	if class == event.ClassLex && len(digits) < placeDigits {
		digits = strings.Repeat("0", placeDigits-len(digits)) + digits
	}
	return Version{Field: "position", Value: gjson.Result{Type: gjson.String, Str: digits}}
}

// otherClass suggests another class if the version is valid in that class. When people try a source
// for the first time, the version is often a time, but the default class is int.
func (r *Rules) otherClass(text string) string {
	for class, name := range map[event.Class]Class{event.ClassTime: ClassTime, event.ClassLSN: ClassLSN} {
		if _, err := shard.ParseVersion(class, text); err == nil && class != r.class && !digitsOnly(text) {
			return fmt.Sprintf("; or, if all versions have this form, set sources.%s.class to %s", r.Name, name)
		}
	}
	return ""
}

// runField is the name of the field with the resync run in messages.
const runField = "resyncrun"

// maxRunAhead is how much later than its message a resync run may appear to have started, because
// the clocks of two machines differ.
const maxRunAhead = time.Hour

// isAhead reports whether a version of the class time is too far in the future, compared with the
// time at which its message was sent.
func (r *Rules) isAhead(sent time.Time, v shard.Version) bool {
	latest, err := shard.TimeVersion(sent.Add(r.Settings.MaxAhead))
	return err == nil && v.Compare(latest) > 0
}

// checkBounds refuses an event that would make every later event of its document stale. It refuses
// a version above maxVersion. It also refuses a time or a resync run that is far later than the
// time at which this copy of the message was sent. If that time is unknown, it accepts the event.
// It accepts a copy that is sent when the time of the version has come.
func (r *Rules) checkBounds(sent time.Time, v shard.Version, d *Draft) *event.Invalid {
	if r.greatest != (shard.Version{}) && v.Compare(r.greatest) > 0 {
		return VersionInvalid(d.Version.Field, "version %s is above sources.%s.maxVersion (%s): "+
			"correct the sender; or raise the setting, then redrive the dead letter", event.Quote(v.Text()), r.Name,
			r.Settings.MaxVersion)
	}
	if sent.IsZero() {
		return nil
	}
	if v.Class() == event.ClassTime && r.isAhead(sent, v) {
		return VersionInvalid(d.Version.Field, "%s is later than the message, which was sent at %s, by more than "+
			"sources.%s.maxAhead (%s): correct the sender's clock; or raise the setting, then redrive the dead letter",
			v.Text(), sent.UTC().Format(time.RFC3339), r.Name, setting.FormatDuration(r.Settings.MaxAhead))
	}
	if began := d.Run.Time(); began.After(sent.Add(maxRunAhead)) {
		return VersionInvalid(runField, "the resync run began at %s, but the message was sent at %s: "+
			"create the ULID of a run when the run begins", began.Format(time.RFC3339), sent.UTC().Format(time.RFC3339))
	}
	return nil
}

// checkObject checks the version of an object of many documents, and returns nil if it is within
// the bounds. A version that is too great would make every later object stale.
func (r *Rules) checkObject(m *event.Message, d *Draft) *event.Invalid {
	v, err := parse(r.class, d.Version.Field, d.Object.Version)
	if err != nil {
		return VersionInvalid(d.Version.Field, "%s", err)
	}
	return r.checkBounds(m.Sent, v, d)
}

// VersionInvalid is [Invalid] for a field that contains the version, or a part of the version.
func VersionInvalid(field, format string, args ...any) *event.Invalid {
	f := Invalid(field, format, args...)
	f.Reason = event.VersionInvalid
	return f
}

func parse(class event.Class, field, text string) (shard.Version, error) {
	if class != event.ClassTime || !digitsOnly(text) {
		return shard.ParseVersion(class, text)
	}
	t, err := fromDigits(field, text)
	if err != nil {
		return shard.Version{}, err
	}
	return shard.TimeVersion(t)
}

// fromDigits reads a time as a number of units since 1970. The unit is a millisecond, or a smaller
// unit if the name of the field ends in _us or _ns, as in Debezium.
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

func digitsOnly(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
