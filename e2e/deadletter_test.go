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

// strict makes the index of a collection, where the sink refuses every field but title.
func strict(t *testing.T, s *ground.Stack, c string) {
	t.Helper()
	s.Search.Must(t, "PUT", "/"+s.Index(c), map[string]any{"mappings": map[string]any{
		"dynamic": "strict",
		"properties": map[string]any{
			"title": map[string]any{"type": "text"},
			"_lull": map[string]any{"dynamic": "true", "type": "object"},
		},
	}})
}

// deadLetters waits until that many dead letters of a collection are parked, and returns them.
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

// A version that the sink refuses for good is parked with its reason. What else was in its burst,
// its batch and its bulk request is written: the newest good version too. When the mapping is fixed
// the command line redrives the dead letter, and it is written. Then prune, by its rule, removes
// the dead letter.
func TestPoisonIsParkedFixedAndRedriven(t *testing.T) {
	s := express(t)
	c := s.Collection("poison")
	key := ground.Key(c, "bad")
	strict(t, s, c)
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
		t.Errorf("what the functions logged does not tell that version 3 was rejected: %+v", told.Decisions)
	}
	s.Says(t, 3, "", "wait", string(key), "--version", "3", "--timeout", "5s")

	// Redriven into the same mapping it is refused again, and nothing is lost.
	var result operate.LetterResult
	s.JSON(t, &result, "dead", "redrive", "--key", string(key), "--dry-run")
	if result.Outcomes["would_send"] != 1 {
		t.Errorf("a dry run says %v, want one that would be sent", result.Outcomes)
	}
	s.JSON(t, &result, "dead", "redrive", "--key", string(key))
	s.Counted(t, before, "Parked", 2)
	if again := deadLetters(t, s, c, 1)[0]; again.State != deadletter.Parked || again.Redrives != 1 {
		t.Errorf("after a redrive in vain the dead letter is %s with %d redrives, want parked with 1", again.State,
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

// A dead letter that is redriven after a newer version was committed is dropped, and the sink never
// goes back.
func TestRedriveAfterANewerCommitIsDropped(t *testing.T) {
	s := express(t)
	s.PruneRule(t, false) // or prune may be first
	c := s.Collection("old-dead-letter")
	key := ground.Key(c, "doc")
	strict(t, s, c)
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

// What cannot be read is parked byte for byte, beside good messages of its batch, and can be
// dropped.
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

// A message may reach the dead-letter queue without ever having been tried, as when SNS could not
// deliver it. It is sent to the live queue and written.
func TestAMessageThatNeverRanIsReturned(t *testing.T) {
	s := express(t)
	c := s.Collection("never-ran")
	before := s.Counts(t)
	s.Undeliverable(t, ground.Event{Collection: c, ID: "doc", Version: 1}.Body())
	s.Settled(t, c, map[string]int{"doc": 1})
	s.Counted(t, before, "Returned", 1)
	deadLetters(t, s, c, 0)
}
