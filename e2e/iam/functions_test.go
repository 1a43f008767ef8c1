//go:build e2eiam

package iam

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/operate"
)

// check is what a case leaves behind, to be checked once its action was given back: nothing was
// lost.
type check func(t *testing.T, s *ground.Stack)

// For each function, one action after the other is taken away. Then the function cannot do what it
// is for, says so, and loses nothing: when the action is given back, what was sent meanwhile is
// done.
func TestOneActionLessBreaksAFunction(t *testing.T) {
	s := stack
	s.PruneRule(t, false)
	s.LettersReturnAfter(t, 5*time.Second)
	var later []check

	change := func(c string) { s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1}) }
	written := func(c string) check {
		return func(t *testing.T, s *ground.Stack) { s.Committed(t, ground.Key(c, "doc"), 1) }
	}
	broken := func(c string) { s.DirectBodies(t, "{no json "+c) }
	// poison is what the sink refuses for good: text where the mapping says a number.
	poison := func(c string) {
		s.Search.Must(t, "PUT", "/"+s.Index(c), map[string]any{
			"mappings": map[string]any{"properties": map[string]any{"n": map[string]any{"type": "long"}}},
		})
		s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1, Data: map[string]any{"n": "no number"}})
	}
	parked := func(reason deadletter.Reason) func(c string) check {
		return func(c string) check {
			return func(t *testing.T, s *ground.Stack) {
				if l := deadLetterOf(t, s, c); l.Reason != reason {
					t.Errorf("the dead letter's reason is %s, want %s", l.Reason, reason)
				}
			}
		}
	}

	for _, withheld := range []struct {
		from   names.Function
		action string
		send   func(c string)
		metric string // what the function counts instead of its work
		after  func(c string) check
	}{
		{names.Receive, "dynamodb:UpdateItem", change, "Unreachable", written},
		{names.Receive, "s3:PutObject", change, "LaunchLost", written},
		{names.Receive, "states:StartExecution", change, "LaunchLost", written},
		{names.Receive, "sqs:SendMessage", broken, "Failed", parked(deadletter.Undecodable)},
		{names.Index, "s3:GetObject", change, "TurnsLost", written},
		{names.Index, "dynamodb:UpdateItem", change, "Waiting", written},
		{names.Index, "sqs:DeleteMessage", change, "DeleteLost", written},
		{names.Index, "sqs:SendMessage", poison, "Released", parked(deadletter.RejectedBySink)},
		{names.DLQ, "dynamodb:UpdateItem", broken, "Failed", parked(deadletter.Undecodable)},
		{names.DLQ, "dynamodb:GetItem", broken, "Failed", parked(deadletter.Undecodable)},
		{names.DLQ, "s3:PutObject", broken, "Failed", parked(deadletter.Undecodable)},
		{names.DLQ, "dynamodb:BatchGetItem", poison, "Failed", parked(deadletter.RejectedBySink)},
		{names.DLQ, "sqs:SendMessage", func(c string) {
			s.Undeliverable(t, ground.Event{Collection: c, ID: "doc", Version: 1})
		}, "Failed", written},
	} {
		name := string(withheld.from) + " without " + withheld.action
		t.Run(name, func(t *testing.T) {
			c := s.Collection(string(withheld.from))
			before := s.Counts(t)
			giveBack := s.TakeAway(t, withheld.from, withheld.action)
			withheld.send(c)
			ground.Until(t, withheld.metric+" is counted", func() (bool, string) {
				got := s.Counts(t).Since(before)
				return got[withheld.metric] > 0, fmt.Sprint(got)
			})
			if row := s.Row(t, ground.Key(c, "doc")); row.Committed != "" && withheld.action != "sqs:DeleteMessage" {
				t.Errorf("its document was committed all the same: version %s", ground.Version(row.Committed))
			}
			giveBack()
			later = append(later, withheld.after(c))
		})
	}
	t.Run("given back", func(t *testing.T) {
		for _, holds := range later {
			holds(t, s)
		}
		s.Drained(t)
	})
}

// prune says which of its parts failed, and does the others.
func TestPruneNeedsItsActions(t *testing.T) {
	s := stack
	s.PruneRule(t, false)
	if err := s.Prune(t); err != nil {
		t.Fatalf("with all its actions: %v", err)
	}
	for action, part := range map[string]string{
		"dynamodb:UpdateItem": "start a run", "dynamodb:BatchGetItem": "read the sink's health",
		"dynamodb:Query": "scheduled events", "dynamodb:Scan": "rows", "s3:ListBucket": "flights",
	} {
		t.Run(action, func(t *testing.T) {
			giveBack := s.TakeAway(t, names.Prune, action)
			err := s.Prune(t)
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("without %s: %v, want an error of %s", action, err, part)
			}
			giveBack()
			if err := s.Prune(t); err != nil {
				t.Errorf("given back: %v", err)
			}
		})
	}
}

// deadLetterOf waits until a dead letter is parked whose body names the collection.
func deadLetterOf(t *testing.T, s *ground.Stack, c string) operate.Letter {
	t.Helper()
	var found operate.Letter
	ground.Until(t, "a dead letter of "+c+" is parked", func() (bool, string) {
		var list []operate.Letter
		s.JSON(t, &list, "dead", "list", "--after", "1h")
		for _, l := range list {
			s.JSON(t, &found, "dead", "show", l.ID)
			if strings.Contains(found.Body, c) {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d others", len(list))
	})
	return found
}
