// SPDX-License-Identifier: Apache-2.0

package stepfunctions

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
)

// In this test, the emulator of Step Functions parses the definition. Only the end-to-end tests
// deploy the index function and run the machine.
func TestTheServiceTakesTheDefinitionAndStartsEachLegOnce(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	ctx := awstest.Context(t)
	api := sdk.NewFromConfig(client.Plain(cfg))
	for _, kind := range []types.StateMachineType{types.StateMachineTypeExpress, types.StateMachineTypeStandard} {
		c := config.Default()
		definition, err := Render(file(t), ParametersFor(&c, "search", c.Flight.Kind, "aws", indexARN))
		if err != nil {
			t.Fatalf("Render: %v", err)
		}
		out, err := api.CreateStateMachine(ctx, &sdk.CreateStateMachineInput{
			Name: aws.String(awstest.Name(t)), Type: kind, Definition: &definition,
			RoleArn: aws.String("arn:aws:iam::000000000000:role/flights"),
		})
		if err != nil {
			t.Fatalf("create %s machine: %v", kind, err)
		}
		t.Cleanup(func() {
			in := &sdk.DeleteStateMachineInput{StateMachineArn: out.StateMachineArn}
			if _, err := api.DeleteStateMachine(context.WithoutCancel(ctx), in); err != nil {
				t.Errorf("delete machine: %v", err)
			}
		})
		arn := aws.ToString(out.StateMachineArn)
		l := New(cfg, Machines{Express: arn, Standard: arn})
		s := flight.State{
			Schema: 1, Flight: flight.ID(awstest.Name(t)), WakeAt: "2099-01-01T00:00:00Z",
			Remaining: flight.AllRemaining(3),
		}
		for range 2 {
			if err := backoff.Row().Do(ctx, clock.System{}, func() error { return l.Start(ctx, s) }); err != nil {
				t.Errorf("%s: Start: %v", kind, err)
			}
		}
		s.Leg++
		if err := l.Start(ctx, s); err != nil {
			t.Errorf("%s: Start of the next leg: %v", kind, err)
		}
		if kind == types.StateMachineTypeStandard {
			list, err := api.ListExecutions(ctx, &sdk.ListExecutionsInput{StateMachineArn: out.StateMachineArn})
			if err != nil || len(list.Executions) != 2 {
				t.Errorf("got %d executions, %v, want one for each leg", len(list.Executions), err)
			}
		}
	}
}

func TestAMissingMachineSaysSo(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	for _, arn := range []string{"arn:aws:states:us-east-1:000000000000:stateMachine:missing", "no arn"} {
		l, ctx := New(cfg, Machines{Express: arn}), awstest.Context(t)
		// an emulator may report the missing machine only after a while
		err := backoff.Row().Do(ctx, clock.System{}, func() error { return l.Start(ctx, flight.State{Flight: "f"}) })
		if err == nil || !backoff.Final(err) {
			t.Errorf("%s: got %v, want a permanent error", arn, err)
		}
	}
}
