// SPDX-License-Identifier: Apache-2.0

//go:build e2eiam

package iam

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
)

// grant is one action in a statement of a function's role.
type grant struct {
	function          names.Function
	statement, action string
}

func (o grant) String() string { return fmt.Sprintf("%s %s %s", o.function, o.statement, o.action) }

// lullMetric is the prefix of a metric of the functions, as Stack.Watches needs it.
const lullMetric = "lull "

// notTakenAway lists the actions that TestOneActionLess does not remove, with the reason: another
// test removes the action, or the emulator does not require it.
var notTakenAway = map[grant]string{
	{names.Index, "ContinueFlights", "s3:PutObject"}:              "TestAFlightThatOutlivesItsExecution",
	{names.Index, "StartFlights", "states:StartExecution"}:        "TestAFlightThatOutlivesItsExecution",
	{names.Index, "HoldAndDelete", "sqs:ChangeMessageVisibility"}: "TestAFlightThatOutlivesItsExecution",

	{names.Receive, "MissReferences", "s3:ListBucket"}: missing,
	{names.Index, "MissReferences", "s3:ListBucket"}:   missing,
	{names.DLQ, "MissReferences", "s3:ListBucket"}:     missing,
	{names.Index, "List", "s3:ListBucket"}:             missing,
}

const (
	missing = "the emulator tells every caller that an object is missing"
	service = "the emulator makes this call in its own name"
)

func init() {
	for _, f := range names.Functions() {
		notTakenAway[grant{f, "Log", "logs:CreateLogStream"}] = service
		notTakenAway[grant{f, "Log", "logs:PutLogEvents"}] = service
	}
	for _, f := range []names.Function{names.Receive, names.DLQ} {
		for _, action := range []string{"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"} {
			notTakenAway[grant{f, "Consume", action}] = service
		}
	}
}

// withheld is a test of a function without one action. The function must say that it cannot do the
// work, and must lose nothing. It must do the work when the action is restored.
type withheld struct {
	grant
	also  string         // another action to remove, without which the function does not need the first
	send  func(c string) // sends work that the function cannot do without the action
	sees  string         // the metric that the function counts
	alarm string         // the alarm that watches the metric; "" if the pipeline does not stop
	after func(c string) // waits until the work is done, after the action was restored
}

// The test removes each action of the deployed roles of receive, index and dlq in turn.
// TestPruneWithOneActionLess does the same for prune.
func TestOneActionLess(t *testing.T) {
	s := stack
	s.PruneRule(t, false)
	setDeadVisibility(t, s, 5*time.Second)

	change := func(c string) { s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1}) }
	written := func(c string) { s.Committed(t, ground.Key(c, "doc"), 1) }
	broken := func(c string) { s.DirectBodies(t, "{no json "+c) }
	parked := func(reason deadletter.Reason) func(c string) {
		return func(c string) {
			if l := deadLetterOf(t, s, c); l.Reason != reason {
				t.Errorf("the dead letter's reason is %s, want %s", l.Reason, reason)
			}
		}
	}
	undecodable, rejected := parked(deadletter.Undecodable), parked(deadletter.RejectedBySink)
	// poison sends a document that the sink refuses permanently: a text in a field for numbers.
	poison := func(c string) {
		s.Search.Must(t, "PUT", "/"+s.Index(c), map[string]any{
			"mappings": map[string]any{"properties": map[string]any{"n": map[string]any{"type": "long"}}},
		})
		s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1, Data: map[string]any{"n": "no number"}})
	}
	soon := func(c string) {
		s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1, NotBefore: time.Now().Add(45 * time.Second)})
	}
	undelivered := func(c string) { s.Undeliverable(t, ground.Event{Collection: c, ID: "doc", Version: 1}.Body()) }
	body := ground.Event{ID: "doc", Version: 1}
	inBucket := func(c string) string {
		e := body
		e.Collection = c
		return pointerBody(s.Object(t, "bodies/"+c, e.Body()))
	}
	pointed := func(c string) { s.DirectBodies(t, inBucket(c)) }
	pointedUndelivered := func(c string) { s.Undeliverable(t, inBucket(c)) }
	referred := func(c string) {
		ref := s.Object(t, "bodies/"+c, `{"title":"by reference"}`)
		s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1, Ref: ref})
	}
	// leased sends a dead letter of a document that is leased.
	leased := func(c string) {
		change(c)
		written(c)
		s.Lease(t, ground.Key(c, "doc"), 5*time.Second)
		s.Undeliverable(t, ground.Event{Collection: c, ID: "doc", Version: 2}.Body())
	}
	second := func(c string) { s.Committed(t, ground.Key(c, "doc"), 2) }

	cases := []withheld{
		{
			grant: grant{names.Receive, "WriteRows", "dynamodb:UpdateItem"}, send: change, sees: "Unreachable",
			alarm: "table-unreachable", after: written,
		},
		// receive reads the health of the sink with this action, and works without the answer.
		{grant: grant{names.Receive, "Rows", "dynamodb:BatchGetItem"}, send: change, sees: "CallFailed", after: written},
		{
			grant: grant{names.Receive, "Consume", "sqs:ChangeMessageVisibility"}, also: "dynamodb:UpdateItem", send: change,
			sees: "CallFailed", after: written,
		},
		{
			grant: grant{names.Receive, "Consume", "sqs:SendMessage"}, send: soon, sees: "Failed", alarm: "failing",
			after: written,
		},
		{
			grant: grant{names.Receive, "PutFlights", "s3:PutObject"}, send: change, sees: "LaunchLost", alarm: "launch-lost",
			after: written,
		},
		{
			grant: grant{names.Receive, "StartFlights", "states:StartExecution"}, send: change, sees: "LaunchLost",
			alarm: "launch-lost", after: written,
		},
		{
			grant: grant{names.Receive, "SendDeadLetters", "sqs:SendMessage"}, send: broken, sees: "Failed", alarm: "failing",
			after: undecodable,
		},
		{
			grant: grant{names.Receive, "LoadReferences", "s3:GetObject"}, send: pointed, sees: "Failed", alarm: "failing",
			after: written,
		},

		{
			grant: grant{names.Index, "Flights", "s3:GetObject"}, send: change, sees: "TurnsLost", alarm: "function-errors",
			after: written,
		},
		// Without this action, the manifest remains, and prune deletes it later.
		{grant: grant{names.Index, "Flights", "s3:DeleteObject"}, send: change, sees: "CallFailed", after: written},
		{grant: grant{names.Index, "Rows", "dynamodb:BatchGetItem"}, send: change, sees: "CallFailed", after: written},
		{grant: grant{names.Index, "WriteRows", "dynamodb:UpdateItem"}, send: change, sees: "CallFailed", after: written},
		// Without this action, the message is received again, as a duplicate.
		{grant: grant{names.Index, "HoldAndDelete", "sqs:DeleteMessage"}, send: change, sees: "DeleteLost", after: written},
		{grant: grant{names.Index, "SendDeadLetters", "sqs:SendMessage"}, send: poison, sees: "Released", after: rejected},
		{grant: grant{names.Index, "LoadReferences", "s3:GetObject"}, send: referred, sees: "Released", after: written},

		{
			grant: grant{names.DLQ, "WriteRows", "dynamodb:UpdateItem"}, send: broken, sees: "DeadKept", alarm: "dead-kept",
			after: undecodable,
		},
		{
			grant: grant{names.DLQ, "Rows", "dynamodb:GetItem"}, send: broken, sees: "DeadKept", alarm: "dead-kept",
			after: undecodable,
		},
		{
			grant: grant{names.DLQ, "Park", "s3:PutObject"}, send: broken, sees: "DeadKept", alarm: "dead-kept",
			after: undecodable,
		},
		{
			grant: grant{names.DLQ, "Rows", "dynamodb:BatchGetItem"}, send: poison, sees: "DeadKept", alarm: "dead-kept",
			after: rejected,
		},
		{
			grant: grant{names.DLQ, "Return", "sqs:SendMessage"}, send: undelivered, sees: "DeadKept", alarm: "dead-kept",
			after: written,
		},
		{
			grant: grant{names.DLQ, "LoadReferences", "s3:GetObject"}, send: pointedUndelivered, sees: "DeadKept",
			alarm: "dead-kept", after: written,
		},
		{grant: grant{names.DLQ, "Consume", "sqs:ChangeMessageVisibility"}, send: leased, sees: "CallFailed", after: second},
	}
	asked := make([]grant, len(cases))
	for i, w := range cases {
		asked[i] = w.grant
	}
	checkEveryAction(t, asked, names.Receive, names.Index, names.DLQ)

	var later []func()
	for _, w := range cases {
		t.Run(w.String(), func(t *testing.T) {
			c := s.Collection(string(w.function))
			before := s.Counts(t)
			rights := []ground.Right{{Statement: w.statement, Action: w.action}}
			if w.also != "" {
				rights = append(rights, ground.Right{Statement: "WriteRows", Action: w.also})
			}
			giveBack := s.TakeAway(t, w.function, rights...)
			w.send(c)
			s.Grows(t, before, w.sees)
			switch {
			case w.sees == "TurnsLost": // the alarm watches a metric of AWS, which the emulator does not count
				s.Watches(t, w.alarm, "AWS/Lambda Errors")
			case w.alarm != "":
				s.Watches(t, w.alarm, lullMetric+w.sees)
			}
			giveBack()
			later = append(later, func() { w.after(c) })
		})
	}
	t.Run("given back", func(t *testing.T) {
		for _, holds := range later {
			holds()
		}
		s.Drained(t)
	})
}

// checkEveryAction fails the test if the deployed roles have an action that is neither in asked nor
// in notTakenAway.
func checkEveryAction(t *testing.T, asked []grant, functions ...names.Function) {
	t.Helper()
	have := make(map[grant]bool)
	for _, f := range functions {
		for _, r := range stack.Rights(t, f) {
			have[grant{f, r.Statement, r.Action}] = true
		}
	}
	for _, o := range slices.Concat(asked, slices.Collect(maps.Keys(notTakenAway))) {
		if !have[o] && slices.Contains(functions, o.function) {
			t.Errorf("no role has %s", o)
		}
		delete(have, o)
	}
	for o := range have {
		t.Errorf("no test removes %s: add a case that says what happens without it", o)
	}
}

// pointerBody returns the body of a message whose real body is in S3, in the format of Amazon's
// extended clients.
func pointerBody(address string) string {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(address, "s3://"), "/")
	return fmt.Sprintf(`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":%q,"s3Key":%q}]`, bucket,
		key)
}

// If prune lacks an action, it says which part failed, and does the other parts. When the action is
// restored, prune does the failed part. The alarm of prune goes off if it fails for three
// intervals.
func TestPruneWithOneActionLess(t *testing.T) {
	s := stack
	s.PruneRule(t, false)
	s.Watches(t, "prune-idle", "AWS/Lambda Errors")
	c := s.Collection("prune")
	row := func(id string) { // makes a row that is older than the retention of rows
		key := ground.Key(c, id)
		s.Direct(t, ground.Event{Collection: c, ID: id, Version: 1})
		s.Committed(t, key, 1)
		s.Age(t, key, s.Config.Lifecycle.RowRetention+3*24*time.Hour)
		s.ForgetPass(t)
	}
	event := func(id string) { // stores a scheduled event that is due soon
		s.Store(t, ground.Event{Collection: c, ID: id, Version: 1, NotBefore: time.Now().Add(5 * time.Second)})
	}
	written := func(id string) { s.Committed(t, ground.Key(c, id), 1) }
	tooLarge := func(id string) { // stores a due event so large that its message has no space for lull's attributes
		e := ground.Event{Collection: c, ID: id, Version: 1, NotBefore: time.Now()}
		e.Data = map[string]any{"title": ""}
		e.Data["title"] = strings.Repeat("x", queue.MaxBytes-len(e.Body()))
		s.Store(t, e)
	}
	isParked := func(id string) {
		if l := deadLetterOf(t, s, id); l.Reason != deadletter.Contract {
			t.Errorf("%s: the dead letter's reason is %s, want %s", id, l.Reason, deadletter.Contract)
		}
	}
	collected := func(id string) {
		if r := s.Row(t, ground.Key(c, id)); r.Exists() {
			t.Errorf("%s: its row is there: %+v", id, r)
		}
	}
	var asked []grant
	row("warm")
	if err := runPrune(t, s); err != nil {
		t.Fatalf("with all its actions: %v", err)
	}
	for _, w := range []struct {
		statement, action string
		prepare           func(id string)
		says              string
		after             func(id string)
	}{
		{"Rows", "dynamodb:UpdateItem", nil, "start a run", nil},
		{"Rows", "dynamodb:BatchGetItem", nil, "read the sink's health", nil},
		{"Rows", "dynamodb:Scan", nil, "rows", nil},
		{"Rows", "dynamodb:DeleteItem", row, "rows", collected},
		{"Rows", "dynamodb:GetItem", tooLarge, "scheduled events", isParked},
		{"Waiting", "dynamodb:Query", nil, "scheduled events", nil},
		{"List", "s3:ListBucket", nil, "flights", nil},
		{"Collect", "s3:GetObject", event, "scheduled events", written},
		{"Collect", "s3:DeleteObject", event, "scheduled events", written},
		{"Enqueue", "sqs:SendMessage", event, "scheduled events", written},
		{"Park", "s3:PutObject", tooLarge, "scheduled events", isParked},
		{"StartFlights", "states:StartExecution", nil, "sample", nil},
	} {
		asked = append(asked, grant{names.Prune, w.statement, w.action})
		t.Run(w.statement+" "+w.action, func(t *testing.T) {
			id := strings.ReplaceAll(w.action, ":", "-")
			if w.prepare != nil {
				w.prepare(id)
			}
			errors := platformErrors(t, s, names.Prune)
			giveBack := s.TakeAway(t, names.Prune, ground.Right{Statement: w.statement, Action: w.action})
			err := runPrune(t, s)
			if err == nil || !strings.Contains(err.Error(), w.says) {
				t.Errorf("without %s: %v, want an error of %s", w.action, err, w.says)
			}
			if n := platformErrors(t, s, names.Prune) - errors; n != 1 {
				t.Errorf("the platform counts %d errors, want 1", n)
			}
			giveBack()
			if err := runPrune(t, s); err != nil {
				t.Errorf("given back: %v", err)
			}
			if w.after != nil {
				w.after(id)
			}
		})
	}
	checkEveryAction(t, asked, names.Prune)
	s.Drained(t)
}

// deadLetterOf waits until there is a parked dead letter whose body names the collection, and
// returns it.
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
