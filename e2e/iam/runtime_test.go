// SPDX-License-Identifier: Apache-2.0

//go:build e2eiam

package iam

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/commitfeed"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// Amazon's own runtime runs the deployed program of every function, with the events that AWS sends
// it: messages of SNS, EventBridge and SQS, a state of the state machine, the events of prune's two
// rules, and the table's stream.
func TestEveryProgramUnderAmazonsRuntime(t *testing.T) {
	s := stack
	s.PruneRule(t, false)
	c := s.Collection("runtime")
	t.Run("receive and index", func(t *testing.T) {
		live := s.Queue(t, "runtime-live")
		// No execution starts, so index takes its turns below, and not behind the state machine.
		changed := map[string]string{
			lambda.EnvLiveQueue: live,
			lambda.EnvExpress:   "arn:aws:states:us-east-1:" + ground.EmulatorAccount + ":stateMachine:none",
		}
		receive, index := s.Emulate(t, names.Receive, changed), s.Emulate(t, names.Index, changed)
		body := func(id string) string { return ground.Event{Collection: c, ID: id, Version: 1}.Body() }
		msgs := s.Taken(t, live, body("by-queue"), byTopic(t, body("by-topic")), byBus(t, body("by-bus")),
			"{no json "+c)
		if kept := receive.Batch(t, s, live, msgs); kept != 3 {
			t.Errorf("receive keeps %d of 4 messages, want 3: one is not an event", kept)
		}
		if l := deadLetterOf(t, s, c); l.Reason != deadletter.Undecodable {
			t.Errorf("the dead letter's reason is %s, want %s", l.Reason, deadletter.Undecodable)
		}
		m, err := s.Flights.Get(t.Context(), flight.ID(s.Row(t, ground.Key(c, "by-queue")).Flight))
		ground.Must(t, err)
		state := flight.State{
			Schema: m.Schema, Flight: m.Flight, Remaining: flight.AllRemaining(m.Items()),
			VisibleUntil: shard.MicrosOf(m.Received.Add(s.Config.Queues.Visibility)),
			WakeAt:       flight.WakeText(m.Received), Kind: s.Config.Flight.Kind,
		}
		began := time.Now()
		ground.Until(t, "index says that the flight is done", func() (bool, string) {
			text, err := index.Invoke(t, asTheMachineDoes(t, state, began))
			ground.Must(t, err)
			ground.Must(t, json.Unmarshal(text, &state))
			return state.Done, string(text)
		})
		s.Settled(t, c, map[string]int{"by-topic": 1, "by-bus": 1, "by-queue": 1})
		if d := s.Depth(t, live); d != (ground.Depth{}) {
			t.Errorf("index is done, and the queue has %+v", d)
		}
	})
	t.Run("dlq", func(t *testing.T) {
		dead := s.Queue(t, "runtime-dead")
		dlq := s.Emulate(t, names.DLQ, map[string]string{lambda.EnvDeadQueue: dead})
		undelivered := ground.Event{Collection: c, ID: "undelivered", Version: 1}
		msgs := s.Taken(t, dead, undelivered.Body(), "{no json either "+c)
		if kept := dlq.Batch(t, s, dead, msgs); kept != 0 {
			t.Errorf("dlq keeps %d messages, want none", kept)
		}
		s.Committed(t, ground.Key(c, "undelivered"), 1) // dlq returned it to the live queue
		deadLetterOf(t, s, "either "+c)
	})
	t.Run("prune", func(t *testing.T) {
		prune := s.Emulate(t, names.Prune, nil)
		for _, event := range []map[string]any{
			{"detail-type": "Scheduled Event", "source": "aws.events", "detail": map[string]any{}},
			{
				"detail-type": "CloudFormation Stack Status Change", "source": "aws.cloudformation",
				"detail": map[string]any{"status-details": map[string]string{"status": "UPDATE_COMPLETE"}},
			},
		} {
			s.Forget(t, shard.RunRow("prune-"+ground.Sink))
			event["version"], event["id"], event["time"] = "0", "1", time.Now().UTC().Format(time.RFC3339)
			if answer, err := prune.Invoke(t, []byte(encoded(t, event))); err != nil || string(answer) != "{}" {
				t.Errorf("prune answers %s to %v: %v", answer, event, err)
			}
		}
	})
	t.Run("feed", func(t *testing.T) {
		feed := s.EmulateFeed(t)
		var told []commitfeed.Event
		answer, err := feed.Invoke(t, s.Inserted(t, ground.Key(c, "undelivered"), shard.RunRow("jobs")))
		ground.Must(t, err)
		if err := json.Unmarshal(answer, &told); err != nil || len(told) != 1 || told[0].ID != "undelivered" {
			t.Errorf("feed answers %s, want the commit alone: %v", answer, err)
		}
	})
	t.Run("job", func(t *testing.T) {
		job := s.EmulateJob(t)
		for range 2 { // a round trip may take longer than a run
			if answer, err := job.Invoke(t, []byte(`{"work":"canary"}`)); err != nil || string(answer) != "{}" {
				t.Errorf("job answers %s: %v", answer, err)
			}
		}
		s.Says(t, 0, "canary-"+ground.Sink, "jobs")
		if _, err := job.Invoke(t, []byte(`{"work":"sweep"}`)); err == nil ||
			!strings.Contains(err.Error(), "no work of this function") {
			t.Errorf("an unknown work: got %v", err)
		}
	})
	// Faults that are planted: the runtime must hand on what the program says about them.
	t.Run("faults", func(t *testing.T) {
		longer := map[string]string{"AWS_LAMBDA_FUNCTION_TIMEOUT": "60"}
		for f, changed := range map[names.Function]map[string]string{
			names.Receive: nil, names.DLQ: nil, names.Index: longer,
		} {
			event, says := []byte(`{"Records":{}}`), "not a batch of SQS messages"
			if f == names.Index {
				event = asTheMachineDoes(t, flight.State{Schema: flight.SchemaVersion, Flight: "none"}, time.Now())
				says = "deploy both with the same number"
			}
			answer, err := s.Emulate(t, f, changed).Invoke(t, event)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s answers %s, %v, want an error that says %q", f, answer, err, says)
			}
		}
	})
}

// byTopic returns the body of a message in which SNS delivers a text without raw delivery.
func byTopic(t *testing.T, text string) string {
	t.Helper()
	return encoded(t, map[string]any{
		"Type": "Notification", "MessageId": "6f4c9d0e-0b3c-5e0a-9a55-2f1f0d6f2a11",
		"TopicArn": "arn:aws:sns:us-east-1:" + ground.EmulatorAccount + ":changes", "Message": text,
		"Timestamp": time.Now().UTC().Format(time.RFC3339Nano), "SignatureVersion": "1", "Signature": "c2lnbmF0dXJl",
		"SigningCertURL": "https://sns.us-east-1.amazonaws.com/cert.pem",
		"UnsubscribeURL": "https://sns.us-east-1.amazonaws.com/",
	})
}

// byBus returns the body of a message in which EventBridge delivers an event.
func byBus(t *testing.T, detail string) string {
	t.Helper()
	return encoded(t, map[string]any{
		"version": "0", "id": "7bf73129-1428-4cd3-a780-95db273d1602", "detail-type": "changed",
		"source": ground.EventSource, "account": ground.EmulatorAccount, "time": time.Now().UTC().Format(time.RFC3339),
		"region": "us-east-1", "resources": []string{},
		"detail": json.RawMessage(detail),
	})
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	ground.Must(t, err)
	return string(text)
}

// asTheMachineDoes returns a state as the state machine hands it to index.
func asTheMachineDoes(t *testing.T, s flight.State, began time.Time) []byte {
	t.Helper()
	var all map[string]any
	ground.Must(t, json.Unmarshal([]byte(encoded(t, s)), &all))
	all["startedAt"], all["enteredAt"] = began.UTC().Format(time.RFC3339Nano), time.Now().UTC().Format(time.RFC3339Nano)
	return []byte(encoded(t, all))
}
