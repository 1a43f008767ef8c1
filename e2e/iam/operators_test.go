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

	if a := s.LullAs(t, reader, body, "publish"); a.Code != 1 || !strings.Contains(a.Errors, "AccessDenied") {
		t.Errorf("reader publishes: exit %d, want 1: %s%s", a.Code, a.Out, a.Errors)
	}
	if a := s.LullAs(t, publisher, body, "publish"); a.Code != 0 {
		t.Fatalf("publisher publishes: exit %d: %s%s", a.Code, a.Out, a.Errors)
	}
	if a := s.LullAs(t, publisher, "", "explain", key); a.Code != 1 || !strings.Contains(a.Errors, "AccessDenied") {
		t.Errorf("publisher explains: exit %d, want 1: %s%s", a.Code, a.Out, a.Errors)
	}
	for _, args := range [][]string{
		{"wait", key, "--version", "1", "--timeout", "2m"},
		{"status"},
		{"get", key},
		{"explain", key},
		{"dead", "list"},
	} {
		if a := s.LullAs(t, reader, "", args...); a.Code != 0 {
			t.Errorf("reader: lull %s: exit %d: %s%s", strings.Join(args, " "), a.Code, a.Out, a.Errors)
		}
	}
	s.Drained(t)

	s.DirectBodies(t, "{no json "+c)
	id := letterOf(t, s, c).ID
	if a := s.LullAs(t, reader, "", "dead", "drop", id); a.Code == 0 ||
		!strings.Contains(a.Out+a.Errors, "AccessDenied") {
		t.Errorf("reader drops a letter: exit %d: %s%s", a.Code, a.Out, a.Errors)
	}
	if a := s.LullAs(t, reader, "", "dead", "show", id); a.Code != 0 {
		t.Errorf("reader shows the letter: exit %d: %s%s", a.Code, a.Out, a.Errors)
	}
	if a := s.LullAs(t, repairer, "", "dead", "redrive", id); a.Code != 0 || !strings.Contains(a.Out, "sent: 1") {
		t.Errorf("operator redrives the letter: exit %d: %s%s", a.Code, a.Out, a.Errors)
	}
	s.Drained(t)
	if a := s.LullAs(t, repairer, "", "dead", "drop", id); a.Code != 0 || !strings.Contains(a.Out, "dropped: 1") {
		t.Errorf("operator drops the letter: exit %d: %s%s", a.Code, a.Out, a.Errors)
	}
	if a := s.LullAs(t, repairer, "", "dead", "show", id); a.Code != 4 {
		t.Errorf("the dropped letter: exit %d, want 4: %s%s", a.Code, a.Out, a.Errors)
	}

	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 2})
	s.Pending(t, ground.Key(c, "doc"), 2)
	if a := s.LullAs(t, reader, "", "cancel", key); a.Code == 0 {
		t.Errorf("reader cancels: exit 0: %s", a.Out)
	}
	s.Committed(t, ground.Key(c, "doc"), 2)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 3})
	s.Pending(t, ground.Key(c, "doc"), 3)
	if a := s.LullAs(t, repairer, "", "cancel", key); a.Code != 0 {
		t.Errorf("operator cancels: exit %d: %s%s", a.Code, a.Out, a.Errors)
	}
	s.Drained(t)
	s.Holds(t, c, map[string]int{"doc": 2})
}
