// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source/sourcetest"
)

func TestNoEventLeavesEveryLaterOneBehind(t *testing.T) {
	t.Parallel()
	const bounded = `
sources:
  int: {kind: native, maxVersion: "1000000"}
  time: {kind: native, class: time}
  week: {kind: native, class: time, maxAhead: 7d, maxVersion: "2027-01-01T00:00:00Z"}
  lex: {kind: native, class: lex, maxVersion: 7ZZZZZZZ}
  free: {kind: native}
defaultSource: free
`
	set := sourcetest.New(t, bounded)
	ahead := func(d time.Duration) string { return sourcetest.Sent.Add(d).Format(time.RFC3339Nano) }
	run := func(d time.Duration) string {
		id := ulid.MustNew(ulid.Timestamp(sourcetest.Sent.Add(d)), strings.NewReader(strings.Repeat("x", 16)))
		return `,"mode":"resync","resyncrun":"` + id.String() + `"`
	}
	const far, day = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", 24 * time.Hour
	for _, tt := range []struct{ name, source, version, more, want string }{
		{"the greatest version", "int", "1000000", "", ""},
		{"one above it", "int", "1000001", "", "sequence: version \"1000001\" is above sources.int.maxVersion (1000000)"},
		{"40 nines", "int", strings.Repeat("9", 40), "", "is above sources.int.maxVersion"},
		{"40 nines without a bound", "free", strings.Repeat("9", 40), "", ""},
		{"a text above it", "lex", "7ZZZZZZZZ", "", "is above sources.lex.maxVersion"},
		{"a time a day ahead", "time", ahead(day), "", ""},
		{"a time more than a day ahead", "time", ahead(day + time.Millisecond), "", "than sources.time.maxAhead (1d)"},
		{"the last time that there is", "time", "4253-05-31T22:20:37Z", "", "than sources.time.maxAhead (1d)"},
		{"a time within the setting", "week", ahead(7 * day), "", ""},
		{"a time beyond the setting", "week", ahead(8 * day), "", "than sources.week.maxAhead (7d)"},
		{"a time above the greatest", "week", "2027-01-01T00:00:01Z", "", "is above sources.week.maxVersion"},
		{"a run of this hour", "free", "1", run(time.Hour), ""},
		{"a run of later", "free", "1", run(time.Hour + time.Second), "resyncrun: the resync run began at"},
		{"the last run that there is", "free", "1", `,"mode":"resync","resyncrun":"` + far + `"`, "create the ULID of a run"},
	} {
		body := `{"type":"doc.deleted","subject":"a","sequence":"` + tt.version + `"` + tt.more + `}`
		m := sourcetest.Message(tt.source, body)
		r := set.Decode(m)[0]
		switch {
		case tt.want == "":
			if r.Invalid != nil {
				t.Errorf("%s: got %v, want an event", tt.name, r.Invalid)
			}
			continue
		case r.Invalid == nil || r.Invalid.Reason != event.VersionInvalid ||
			!strings.Contains(r.Invalid.Error(), tt.want):
			t.Errorf("%s: got %v, want %s", tt.name, r.Invalid, tt.want)
			continue
		case r.Invalid.Doc != "content#a":
			t.Errorf("%s: got document %q, want the dead letter to name it", tt.name, r.Invalid.Doc)
		}
		// A copy that is sent later, for example by a redrive, is compared with the copy's own send
		// time.
		m.Sent = m.Sent.AddDate(9000, 0, 0)
		if late := set.Decode(m)[0]; (late.Invalid == nil) != !strings.Contains(tt.want, "maxVersion") {
			t.Errorf("%s: sent when its time has come: got %v", tt.name, late.Invalid)
		}
	}
}
