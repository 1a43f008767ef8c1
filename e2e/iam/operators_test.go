//go:build e2eiam

package iam

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/infra"
)

// The command line's roles do what their commands need, and no other's: what is missing is named,
// and nothing is changed.
func TestOperatorsRoles(t *testing.T) {
	s := stack
	c := s.Collection("operators")
	key := string(ground.Key(c, "doc"))
	body := ground.Event{Collection: c, ID: "doc", Version: 1}.Body() + "\n"
	publisher, reader, repairer := s.Role(t, infra.Publisher), s.Role(t, infra.Reader), s.Role(t, infra.Repairer)

	s.SaysTo(t, reader, body, 1, "AccessDenied", "publish")
	s.SaysTo(t, publisher, body, 0, "", "publish")
	s.SaysTo(t, publisher, "", 1, "AccessDenied", "explain", key)
	for _, args := range [][]string{
		{"wait", key, "--version", "1", "--timeout", "2m"},
		{"status"},
		{"get", key},
		{"explain", key},
		{"dead", "list"},
	} {
		s.SaysTo(t, reader, "", 0, "", args...)
	}
	s.Drained(t)

	s.DirectBodies(t, "{no json "+c)
	id := deadLetterOf(t, s, c).ID
	if a := s.LullAs(t, reader, "", "dead", "drop", id); a.Code == 0 ||
		!strings.Contains(a.Out+a.Errors, "AccessDenied") {
		t.Errorf("reader drops a dead letter: exit %d: %s%s", a.Code, a.Out, a.Errors)
	}
	s.SaysTo(t, reader, "", 0, "", "dead", "show", id)
	s.SaysTo(t, repairer, "", 0, "sent: 1", "dead", "redrive", id)
	s.Drained(t)
	s.SaysTo(t, repairer, "", 0, "dropped: 1", "dead", "drop", id)
	s.SaysTo(t, repairer, "", 4, "", "dead", "show", id)

	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 2})
	s.Pending(t, ground.Key(c, "doc"), 2)
	if a := s.LullAs(t, reader, "", "cancel", key); a.Code == 0 {
		t.Errorf("reader cancels: exit 0: %s", a.Out)
	}
	s.Committed(t, ground.Key(c, "doc"), 2)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 3})
	s.Pending(t, ground.Key(c, "doc"), 3)
	s.SaysTo(t, repairer, "", 0, "", "cancel", key)
	s.Drained(t)
	s.Holds(t, c, map[string]int{"doc": 2})
}
