// SPDX-License-Identifier: Apache-2.0

//go:build e2eiam

package iam

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/infra"
	"github.com/lullhq/lull/internal/seam/deadletter"
)

// Every command that reads or changes a deployed stack works with the role for this command. With
// another role, the command names the missing right and changes nothing.
func TestEveryCommandUnderItsRole(t *testing.T) {
	s := stack
	s.PruneRule(t, false)
	s.Says(t, 0, "", "dead", "drop", "--all", "--yes") // doctor would report the dead letters of other tests
	c := s.Collection("operators")
	key := func(id string) string { return string(ground.Key(c, id)) }
	event := func(id string, version int) string {
		return ground.Event{Collection: c, ID: id, Version: version}.Body() + "\n"
	}
	publisher, reader, repairer := s.Role(t, infra.Publisher), s.Role(t, infra.Reader), s.Role(t, infra.Repairer)
	refuse := func(who ground.Who, input string, args ...string) {
		t.Helper()
		if a := s.LullAs(t, who, input, args...); a.Code == 0 || !strings.Contains(a.Out+a.Errors, "AccessDenied") {
			t.Errorf("lull %s with the wrong role: exit %d: %s%s", strings.Join(args, " "), a.Code, a.Out, a.Errors)
		}
	}
	// run runs a command with a role for which it must fail, and then with a role for which it must
	// succeed.
	run := func(refused, may ground.Who, input, says string, args ...string) {
		t.Helper()
		refuse(refused, input, args...)
		s.SaysTo(t, may, input, 0, says, args...)
	}
	// index does the same with index check or index repair. It repeats the command while documents
	// are in motion.
	index := func(refused, may ground.Who, says, verb string) {
		t.Helper()
		args := []string{"index", verb, c}
		refuse(refused, "", args...)
		var said string
		ground.Until(t, "nothing is in motion", func() (bool, string) {
			a := s.LullAs(t, may, "", args...)
			said += a.Out + a.Errors
			return a.Code == 0 && !strings.Contains(a.Out, "are in motion"), said
		})
		if !strings.Contains(said, says) {
			t.Errorf("lull %s says %s, want %q", strings.Join(args, " "), said, says)
		}
	}

	run(reader, publisher, event("doc", 1), "1 messages with 1 events sent", "publish")
	run(publisher, reader, "", "It is fresh", "wait", key("doc"), "--version", "1", "--timeout", "2m")
	s.Drained(t)
	for _, args := range [][]string{
		{"status"},
		{"explain", key("doc")},
		{"explain", key("doc"), "--logs", "15m"},
		{"dead", "list"},
	} {
		run(publisher, reader, "", "", args...)
	}
	index(publisher, reader, "no drift", "check")
	s.SaysTo(t, reader, "", 0, "version 1", "get", key("doc")) // reads only the sink, which needs no right of AWS
	file := ground.File(t, "all.ndjson", event("doc", 1)+event("resynced", 1))
	both := s.Both(t, infra.Publisher, infra.Reader) // a resync also needs reader, which may write rows of jobs
	run(publisher, both, "", "2 messages sent in resync run", "resync", file)
	s.Committed(t, ground.Key(c, "resynced"), 1)
	s.Drained(t)
	run(publisher, both, "", "the delete is committed", "doctor", "--collection", c)
	s.Drained(t)

	s.DirectBodies(t, "{no json "+c)
	id := deadLetterOf(t, s, c).ID
	run(publisher, reader, "", id, "dead", "show", id)
	run(reader, repairer, "", "sent: 1", "dead", "redrive", id)
	s.Drained(t)
	run(reader, repairer, "", "dropped: 1", "dead", "drop", id)
	s.SaysTo(t, repairer, "", 4, "", "dead", "show", id)

	// After the rescue, two flights have the same manifest. The row allows only one of them to
	// write.
	s.Direct(t, ground.Event{Collection: c, ID: "rescued", Version: 1})
	s.Pending(t, ground.Key(c, "rescued"), 1)
	run(reader, repairer, "", "", "rescue", s.Row(t, ground.Key(c, "rescued")).Flight)
	s.Committed(t, ground.Key(c, "rescued"), 1)
	s.Drained(t)

	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1000})
	s.Committed(t, ground.Key(c, "doc"), 1000)
	s.Drained(t)
	run(reader, repairer, "", "version 1000 was committed", "reset", key("doc"), "--to", "2", "--yes")
	s.SaysTo(t, publisher, event("doc", 2), 0, "", "publish")
	s.Committed(t, ground.Key(c, "doc"), 2)
	s.Drained(t)

	// The table loses a row.
	s.Forget(t, ground.Key(c, "resynced"))
	index(reader, repairer, "raised", "repair")
	s.Committed(t, ground.Key(c, "resynced"), 1)

	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 3})
	s.Pending(t, ground.Key(c, "doc"), 3)
	run(reader, repairer, "", "is a dead letter now", "cancel", key("doc"))
	s.Direct(t, ground.Event{Collection: c, ID: "later", Version: 1, NotBefore: time.Now().Add(7 * 24 * time.Hour)})
	s.Drained(t)
	run(reader, repairer, "", "is a dead letter now", "cancel", key("later"), "--scheduled")
	if l := deadLetterOf(t, s, "later"); l.Reason != deadletter.Cancelled {
		t.Errorf("the scheduled event is a dead letter for %s, want %s", l.Reason, deadletter.Cancelled)
	}
	s.Settled(t, c, map[string]int{"doc": 2, "resynced": 1, "rescued": 1})
}
