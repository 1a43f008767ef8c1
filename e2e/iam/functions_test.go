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

// of is one action of a statement of a function's role.
type of struct {
	function          names.Function
	statement, action string
}

func (o of) String() string { return fmt.Sprintf("%s %s %s", o.function, o.statement, o.action) }

// own is a metric that the functions count, as alarms watch it.
const own = "lull "

// elsewhere are the actions that TestOneActionLess does not take away, and why. Another test does,
// or the emulator does not ask for them.
var elsewhere = map[of]string{
	{names.Index, "ContinueFlights", "s3:PutObject"}:              "TestAFlightThatOutlivesItsExecution",
	{names.Index, "StartFlights", "states:StartExecution"}:        "TestAFlightThatOutlivesItsExecution",
	{names.Index, "HoldAndDelete", "sqs:ChangeMessageVisibility"}: "TestAFlightThatOutlivesItsExecution",

	{names.Receive, "MissReferences", "s3:ListBucket"}: missing,
	{names.Index, "MissReferences", "s3:ListBucket"}:   missing,
	{names.DLQ, "MissReferences", "s3:ListBucket"}:     missing,
	{names.Index, "List", "s3:ListBucket"}:             missing,
}

const (
	missing = "the emulator says that an object is missing to whoever asks"
	service = "the emulator does it in its own name"
)

func init() {
	for _, f := range names.Functions() {
		elsewhere[of{f, "Log", "logs:CreateLogStream"}] = service
		elsewhere[of{f, "Log", "logs:PutLogEvents"}] = service
	}
	for _, f := range []names.Function{names.Receive, names.DLQ} {
		for _, action := range []string{"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"} {
			elsewhere[of{f, "Consume", action}] = service
		}
	}
}

// withheld is what comes of a function without one of its actions. It cannot do what the action is
// for and says so; it loses nothing, and does the work when it has the action again.
type withheld struct {
	of
	also  string         // an action of the same role without which this one is not needed
	send  func(c string) // what the function cannot do then
	sees  string         // what it counts
	alarm string         // which alarm watches that; "" where the pipeline does not stop
	after func(c string) // what comes of it when the action is given back
}

// For each function, one action after the other is taken away: all of those that the deployed roles
// have. TestPruneWithOneActionLess does the same for prune.
func TestOneActionLess(t *testing.T) {
	s := stack
	s.PruneRule(t, false)
	lettersReturnAfter(t, s, 5*time.Second)

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
	// poison is what the sink refuses for good: text where the mapping says a number.
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
		return pointer(s.Object(t, "bodies/"+c, e.Body()))
	}
	pointed := func(c string) { s.DirectBodies(t, inBucket(c)) }
	pointedUndelivered := func(c string) { s.Undeliverable(t, inBucket(c)) }
	referred := func(c string) {
		ref := s.Object(t, "bodies/"+c, `{"title":"by reference"}`)
		s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1, Ref: ref})
	}
	// again is a version that was received before: its row is read before it is judged.
	leased := func(c string) {
		change(c)
		written(c)
		s.Lease(t, ground.Key(c, "doc"), 5*time.Second)
		s.Undeliverable(t, ground.Event{Collection: c, ID: "doc", Version: 2}.Body())
	}
	second := func(c string) { s.Committed(t, ground.Key(c, "doc"), 2) }

	cases := []withheld{
		{
			of: of{names.Receive, "WriteRows", "dynamodb:UpdateItem"}, send: change, sees: "Unreachable",
			alarm: "table-unreachable", after: written,
		},
		// It reads the health of the sink, without which all goes on.
		{of: of{names.Receive, "Rows", "dynamodb:BatchGetItem"}, send: change, sees: "CallFailed", after: written},
		{
			of: of{names.Receive, "Consume", "sqs:ChangeMessageVisibility"}, also: "dynamodb:UpdateItem", send: change,
			sees: "CallFailed", after: written,
		},
		{
			of: of{names.Receive, "Consume", "sqs:SendMessage"}, send: soon, sees: "Failed", alarm: "failing",
			after: written,
		},
		{
			of: of{names.Receive, "PutFlights", "s3:PutObject"}, send: change, sees: "LaunchLost", alarm: "launch-lost",
			after: written,
		},
		{
			of: of{names.Receive, "StartFlights", "states:StartExecution"}, send: change, sees: "LaunchLost",
			alarm: "launch-lost", after: written,
		},
		{
			of: of{names.Receive, "SendDeadLetters", "sqs:SendMessage"}, send: broken, sees: "Failed", alarm: "failing",
			after: undecodable,
		},
		{
			of: of{names.Receive, "LoadReferences", "s3:GetObject"}, send: pointed, sees: "Failed", alarm: "failing",
			after: written,
		},

		{
			of: of{names.Index, "Flights", "s3:GetObject"}, send: change, sees: "TurnsLost", alarm: "function-errors",
			after: written,
		},
		// The manifest stays, for prune.
		{of: of{names.Index, "Flights", "s3:DeleteObject"}, send: change, sees: "CallFailed", after: written},
		{of: of{names.Index, "Rows", "dynamodb:BatchGetItem"}, send: change, sees: "CallFailed", after: written},
		{of: of{names.Index, "WriteRows", "dynamodb:UpdateItem"}, send: change, sees: "CallFailed", after: written},
		// The message is received once more, and is a duplicate.
		{of: of{names.Index, "HoldAndDelete", "sqs:DeleteMessage"}, send: change, sees: "DeleteLost", after: written},
		{of: of{names.Index, "SendDeadLetters", "sqs:SendMessage"}, send: poison, sees: "Released", after: rejected},
		{of: of{names.Index, "LoadReferences", "s3:GetObject"}, send: referred, sees: "Released", after: written},

		{
			of: of{names.DLQ, "WriteRows", "dynamodb:UpdateItem"}, send: broken, sees: "DeadKept", alarm: "dead-kept",
			after: undecodable,
		},
		{
			of: of{names.DLQ, "Rows", "dynamodb:GetItem"}, send: broken, sees: "DeadKept", alarm: "dead-kept",
			after: undecodable,
		},
		{
			of: of{names.DLQ, "Park", "s3:PutObject"}, send: broken, sees: "DeadKept", alarm: "dead-kept",
			after: undecodable,
		},
		{
			of: of{names.DLQ, "Rows", "dynamodb:BatchGetItem"}, send: poison, sees: "DeadKept", alarm: "dead-kept",
			after: rejected,
		},
		{
			of: of{names.DLQ, "Return", "sqs:SendMessage"}, send: undelivered, sees: "DeadKept", alarm: "dead-kept",
			after: written,
		},
		{
			of: of{names.DLQ, "LoadReferences", "s3:GetObject"}, send: pointedUndelivered, sees: "DeadKept",
			alarm: "dead-kept", after: written,
		},
		{of: of{names.DLQ, "Consume", "sqs:ChangeMessageVisibility"}, send: leased, sees: "CallFailed", after: second},
	}
	asked := make([]of, len(cases))
	for i, w := range cases {
		asked[i] = w.of
	}
	every(t, asked, names.Receive, names.Index, names.DLQ)

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
			case w.sees == "TurnsLost": // one that AWS counts: the state machine tells the emulator's Lambda nothing
				s.Watches(t, w.alarm, "AWS/Lambda Errors")
			case w.alarm != "":
				s.Watches(t, w.alarm, own+w.sees)
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

// every fails the test unless each action of the deployed roles is among those that were taken
// away, or is taken away elsewhere.
func every(t *testing.T, asked []of, functions ...names.Function) {
	t.Helper()
	have := make(map[of]bool)
	for _, f := range functions {
		for _, r := range stack.Rights(t, f) {
			have[of{f, r.Statement, r.Action}] = true
		}
	}
	for _, o := range slices.Concat(asked, slices.Collect(maps.Keys(elsewhere))) {
		if !have[o] && slices.Contains(functions, o.function) {
			t.Errorf("no role has %s", o)
		}
		delete(have, o)
	}
	for o := range have {
		t.Errorf("nobody takes away %s: say what comes of it", o)
	}
}

// pointer is the body of a message whose real body is in S3, as Amazon's extended clients write it.
func pointer(address string) string {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(address, "s3://"), "/")
	return fmt.Sprintf(`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":%q,"s3Key":%q}]`, bucket,
		key)
}

// prune says which of its parts failed, does the others, and does the rest of the work when it has
// its action again. Its alarm goes off where it fails for three intervals.
func TestPruneWithOneActionLess(t *testing.T) {
	s := stack
	s.PruneRule(t, false)
	s.Watches(t, "prune-idle", "AWS/Lambda Errors")
	c := s.Collection("prune")
	row := func(id string) { // one that is older than rows are kept
		key := ground.Key(c, id)
		s.Direct(t, ground.Event{Collection: c, ID: id, Version: 1})
		s.Committed(t, key, 1)
		s.Age(t, key, s.Config.Lifecycle.RowRetention+3*24*time.Hour)
		s.ForgetPass(t)
	}
	event := func(id string) { // one that falls due
		s.Store(t, ground.Event{Collection: c, ID: id, Version: 1, NotBefore: time.Now().Add(5 * time.Second)})
	}
	written := func(id string) { s.Committed(t, ground.Key(c, id), 1) }
	tooLarge := func(id string) { // one that is due, and leaves no room for what its copy has to carry
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
	var asked []of
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
		asked = append(asked, of{names.Prune, w.statement, w.action})
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
	every(t, asked, names.Prune)
	s.Drained(t)
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
