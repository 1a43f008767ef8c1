// SPDX-License-Identifier: Apache-2.0

package stepfunctions

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/flight"
)

const arn = "arn:aws:states:us-east-1:123456789012:stateMachine:lull-search"

func TestStartSendsTheStateUnderTheNameOfTheLeg(t *testing.T) {
	t.Parallel()
	state := flight.State{
		Schema: 1, Flight: "01JD0000000000000000000000", WakeAt: "2026-11-20T19:00:05Z",
		VisibleUntil: 1_777_888_800_123_456,
		Remaining:    flight.AllRemaining(1000), Turn: 7, Leg: 3,
	}
	var calls []awstest.Call
	l := New(awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		calls = append(calls, c)
		return awstest.Reply{Body: `{"executionArn":"arn:x","startDate":1}`}
	}), Machines{Express: arn, Standard: arn + "-standard"})
	if err := l.Start(awstest.Context(t), state); err != nil {
		t.Fatalf("Start: %v", err)
	}
	if len(calls) != 1 || calls[0].Operation != "StartExecution" {
		t.Fatalf("got %v, want one StartExecution", calls)
	}
	var in struct{ StateMachineArn, Name, Input string }
	calls[0].Into(t, &in)
	if in.StateMachineArn != arn || in.Name != "01JD0000000000000000000000-3" {
		t.Errorf("got %s named %s", in.StateMachineArn, in.Name)
	}
	var got flight.State
	if err := json.Unmarshal([]byte(in.Input), &got); err != nil || !reflect.DeepEqual(got, state) {
		t.Errorf("got %+v, %v, want %+v", got, err, state)
	}
	state.Kind = "standard"
	if err := l.Start(awstest.Context(t), state); err != nil {
		t.Fatalf("Start: %v", err)
	}
	if calls[1].Into(t, &in); in.StateMachineArn != arn+"-standard" {
		t.Errorf("a state of the kind standard went to the machine %s", in.StateMachineArn)
	}
	if len(in.Input) > 2048 {
		t.Errorf("the state of a full batch has %d bytes, want at most 2048", len(in.Input))
	}
}

func TestErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		reply awstest.Reply
		ok    bool
		final bool
		says  string
	}{
		{name: "the leg runs already", reply: awstest.Failure(400,
			"com.amazonaws.swf.service.v2.model#ExecutionAlreadyExists", "exists"), ok: true},
		{name: "the leg runs already, with another spelling of the error", reply: awstest.Failure(400, "ExecutionAlreadyExistsException",
			"exists"), ok: true},
		{
			name: "no such machine", reply: awstest.Failure(400, "StateMachineDoesNotExist", "gone"), final: true,
			says: arn,
		},
		{name: "wrong arn", reply: awstest.Failure(400, "InvalidArn", "bad"), final: true, says: "deploy"},
		{name: "access denied", reply: awstest.Failure(400, "AccessDeniedException", "no"), final: true, says: "grant"},
		{name: "input refused", reply: awstest.Failure(400, "InvalidExecutionInput", "no"), final: true},
		{name: "too many executions", reply: awstest.Failure(400, "ExecutionLimitExceeded", "slow")},
		{name: "throttled", reply: awstest.Failure(400, "ThrottlingException", "slow")},
		{name: "internal error", reply: awstest.Failure(500, "InternalFailure", "oops")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			l := New(
				awstest.JSON(t, func(awstest.Call) awstest.Reply { calls++; return tt.reply }),
				Machines{Express: arn},
			)
			err := l.Start(awstest.Context(t), flight.State{Flight: "f"})
			if (err == nil) != tt.ok {
				t.Fatalf("got the error %v, want success: %v", err, tt.ok)
			}
			if err != nil && (backoff.Final(err) != tt.final || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("got %v, want final %v and %q", err, tt.final, tt.says)
			}
			if calls != 1 {
				t.Errorf("got %d requests, want one: package backoff alone retries", calls)
			}
		})
	}
}

func TestAStateThatIsTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	l := New(awstest.JSON(t, func(awstest.Call) awstest.Reply {
		t.Error("it was sent")
		return awstest.Reply{}
	}), Machines{Express: arn, Standard: arn + "-standard"})
	if err := l.Start(awstest.Context(t), flight.State{Flight: "f", Remaining: flight.AllRemaining(2_000_000)}); err == nil ||
		!backoff.Final(err) {
		t.Errorf("got %v, want a permanent error", err)
	}
}
