// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
)

// strictIndex creates the index of a collection with a mapping that refuses every field except
// title.
func strictIndex(t *testing.T, s *ground.Stack, c string) {
	t.Helper()
	s.Search.Must(t, "PUT", "/"+s.Index(c), map[string]any{"mappings": map[string]any{
		"dynamic": "strict",
		"properties": map[string]any{
			"title": map[string]any{"type": "text"},
			"_lull": map[string]any{"dynamic": "true", "type": "object"},
		},
	}})
}

// deadLetters waits until a collection has this number of parked dead letters, and returns them.
func deadLetters(t *testing.T, s *ground.Stack, c string, want int) []operate.Letter {
	t.Helper()
	var list []operate.Letter
	ground.Until(t, fmt.Sprintf("%d dead letters of %s", want, c),
		func() (bool, string) {
			s.JSON(t, &list, "dead", "list", "--collection", c)
			return len(list) == want, fmt.Sprint(len(list))
		})
	return list
}

// A version that the sink refuses permanently is parked with the reason. lull writes the other
// events of the same burst, batch and bulk request, among them the newest valid version. When the
// mapping is fixed, the command line redrives the dead letter, and lull writes the version. The
// next scheduled run of prune removes the dead letter.
func TestPoisonIsParkedFixedAndRedriven(t *testing.T) {
	s := express(t)
	c := s.Collection("poison")
	key := ground.Key(c, "bad")
	strictIndex(t, s, c)
	before := s.Counts(t)
	poison := ground.Event{
		Collection: c, ID: "bad", Version: 3,
		Data: map[string]any{"title": "three", "secret": "not to be logged"},
	}
	s.Direct(t,
		ground.Event{Collection: c, ID: "bad", Version: 1},
		ground.Event{Collection: c, ID: "bad", Version: 2},
		poison,
		ground.Event{Collection: c, ID: "good", Version: 1},
	)
	parked := deadLetters(t, s, c, 1)[0]
	s.Settled(t, c, map[string]int{"bad": 2, "good": 1})
	s.Counted(t, before, "Parked", 1)
	s.Done(t, before, 4)
	if parked.Reason != deadletter.RejectedBySink || parked.Key != key || parked.Version != "3" ||
		parked.State != deadletter.Parked {
		t.Errorf("got dead letter %+v", parked)
	}
	if strings.Contains(parked.Detail+parked.LastError, "not to be logged") {
		t.Errorf("the dead letter's facts hold the document's content: %q", parked.Detail)
	}
	var shown operate.Letter
	s.JSON(t, &shown, "dead", "show", parked.ID)
	if !s.SameBody(shown.Body, poison.Body()) {
		t.Errorf("the dead letter's body is %q, want what was sent: %q", shown.Body, poison.Body())
	}
	s.Says(t, 3, "Version 2 is in the sink; the newer version 3 is a dead letter (rejected)", "explain", string(key))
	var told operate.Explanation
	s.JSON(t, &told, "explain", string(key), "--logs", "15m")
	if !slices.ContainsFunc(told.Decisions, func(d operate.Decision) bool {
		return d.Step == string(journal.Rejected) && strings.Contains(d.Text, "version 3")
	}) {
		t.Errorf("the decision log does not show that version 3 was rejected: %+v", told.Decisions)
	}
	s.Says(t, 3, "", "wait", string(key), "--version", "3", "--timeout", "5s")

	// The sink refuses a redriven version again if the mapping is the same. The dead letter is not
	// lost.
	var result operate.LetterResult
	s.JSON(t, &result, "dead", "redrive", "--key", string(key), "--dry-run")
	if result.Outcomes["would_send"] != 1 {
		t.Errorf("a dry run says %v, want one that would be sent", result.Outcomes)
	}
	s.JSON(t, &result, "dead", "redrive", "--key", string(key))
	s.Counted(t, before, "Parked", 2)
	if again := deadLetters(t, s, c, 1)[0]; again.State != deadletter.Parked || again.Redrives != 1 {
		t.Errorf("after a failed redrive the dead letter is %s with %d redrives, want parked with 1", again.State,
			again.Redrives)
	}
	s.Drained(t)

	s.Search.Must(t, "PUT", "/"+s.Index(c)+"/_mapping",
		map[string]any{"properties": map[string]any{"secret": map[string]any{"type": "keyword"}}})
	result = operate.LetterResult{}
	s.JSON(t, &result, "dead", "redrive", "--reason", "rejected", "--collection", c)
	if result.Outcomes["sent"] != 1 {
		t.Errorf("redrive says %v, want one sent", result.Outcomes)
	}
	s.Settled(t, c, map[string]int{"bad": 3, "good": 1})
	deadLetters(t, s, c, 0)
	s.Says(t, 0, "It is fresh: version 3", "explain", string(key))
}

// A dead letter is dropped if it is redriven after a newer version was committed. The sink never
// returns to the older version.
func TestRedriveAfterANewerCommitIsDropped(t *testing.T) {
	s := express(t)
	s.PruneRule(t, false) // otherwise prune could remove the dead letter first
	c := s.Collection("old-dead-letter")
	key := ground.Key(c, "doc")
	strictIndex(t, s, c)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1, Data: map[string]any{"wrong": 1}})
	deadLetters(t, s, c, 1)
	s.Drained(t)
	s.Search.Must(t, "PUT", "/"+s.Index(c)+"/_mapping",
		map[string]any{"properties": map[string]any{"wrong": map[string]any{"type": "long"}}})
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 2})
	s.Settled(t, c, map[string]int{"doc": 2})
	writes := s.Search.Writes(t, s.Index(c))

	var result operate.LetterResult
	s.JSON(t, &result, "dead", "redrive", "--key", string(key))
	if result.Outcomes["superseded"] != 1 || len(result.Outcomes) != 1 {
		t.Errorf("redrive says %v, want one superseded", result.Outcomes)
	}
	deadLetters(t, s, c, 0)
	s.Settled(t, c, map[string]int{"doc": 2})
	s.Wrote(t, c, writes, 0)
}

// A message that cannot be decoded is parked byte for byte, and an operator can drop it. Valid
// messages of the same batch are written.
func TestUndecodableIsParkedAndDropped(t *testing.T) {
	s := express(t)
	c := s.Collection("undecodable")
	body := "{\"not\": json \u00e9" + c
	noVersion := strings.Replace(ground.Event{Collection: c, ID: "doc", Version: 1}.Body(), `"sequence":"1"`,
		`"sequence":"-1"`, 1)
	s.DirectBodies(t, body, noVersion, ground.Event{Collection: c, ID: "good", Version: 1}.Body())
	s.Committed(t, ground.Key(c, "good"), 1)
	var list []operate.Letter
	ground.Until(t, "both dead letters are parked", func() (bool, string) {
		s.JSON(t, &list, "dead", "list", "--after", "10m")
		return len(list) == 2, fmt.Sprintf("%+v", list)
	})
	s.Drained(t)
	want := map[deadletter.Reason]string{deadletter.Undecodable: body, deadletter.VersionInvalid: noVersion}
	for _, l := range list {
		var shown operate.Letter
		s.JSON(t, &shown, "dead", "show", l.ID)
		if !s.SameBody(shown.Body, want[l.Reason]) {
			t.Errorf("dead letter for %s holds %q, want %q", l.Reason, shown.Body, want[l.Reason])
		}
		delete(want, l.Reason)
		s.Says(t, 0, "dropped: 1", "dead", "drop", l.ID)
	}
	for reason := range want {
		t.Errorf("there is no dead letter for %s", reason)
	}
	s.JSON(t, &list, "dead", "list")
	if len(list) != 0 {
		t.Errorf("%d dead letters remain, want none", len(list))
	}
	s.Holds(t, c, map[string]int{"good": 1})
}

// A message may reach the dead-letter queue before lull has tried it, for example if SNS could not
// deliver it. lull sends such a message to the live queue, and writes its document.
func TestAMessageThatNeverRanIsReturned(t *testing.T) {
	s := express(t)
	c := s.Collection("never-ran")
	before := s.Counts(t)
	s.Undeliverable(t, ground.Event{Collection: c, ID: "doc", Version: 1}.Body())
	s.Settled(t, c, map[string]int{"doc": 1})
	s.Counted(t, before, "Returned", 1)
	deadLetters(t, s, c, 0)
}
