// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
)

// render returns the results of decoding a message as text.
func (s *suite) render(m event.Message) string {
	var out strings.Builder
	for i, r := range s.Decode(m) {
		e := r.Event
		switch {
		case r.Invalid != nil:
			transient := ""
			if r.Invalid.Transient() {
				transient = " transient"
			}
			fmt.Fprintf(&out, "%d invalid%s %s field=%q doc=%q\n  %s\n", i, transient, r.Invalid.Reason, r.Invalid.Field,
				r.Invalid.Doc, r.Invalid.Problem)
		case r.Skip != "":
			fmt.Fprintf(&out, "%d skip: %s\n", i, r.Skip)
		default:
			fmt.Fprintf(&out, "%d %s %q version=%s class=%s%s\n  key %s\n", i, e.Op, string(e.Doc), e.Version, e.Class,
				optionalFields(e), e.Key)
			if e.DataRef != "" {
				fmt.Fprintf(&out, "  ref %s\n", e.DataRef)
			} else if e.Op == event.Put {
				doc, err := s.Document(m, e)
				if err != nil {
					fmt.Fprintf(&out, "  no document: %v\n", err)
				} else {
					fmt.Fprintf(&out, "  document %s\n", doc)
				}
			}
		}
	}
	return out.String()
}

// optionalFields renders the fields that only some events have.
func optionalFields(e event.Event) string {
	s := ""
	if e.Resync {
		s += " resync"
	}
	if !e.Time.IsZero() {
		s += " time=" + e.Time.Format(time.RFC3339Nano)
	}
	if !e.NotBefore.IsZero() {
		s += " notbefore=" + e.NotBefore.Format(time.RFC3339Nano)
	}
	return s
}
