// SPDX-License-Identifier: Apache-2.0

package stepfunctions

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/flight"
)

// attemptTimeout is the time-out of one request.
const attemptTimeout = 2 * time.Second

// Launcher starts executions of a sink's state machines. A Launcher is safe for concurrent use.
type Launcher struct {
	api  *sdk.Client
	arns Machines
}

// Machines contains the ARNs of a sink's state machines.
type Machines struct{ Express, Standard string }

var _ flight.Launcher = (*Launcher)(nil)

// New returns a launcher for the given state machines. New switches off the retries of the SDK.
func New(cfg aws.Config, arns Machines) *Launcher {
	return &Launcher{api: sdk.NewFromConfig(client.Bounded(cfg, attemptTimeout)), arns: arns}
}

// Start begins the execution of a leg of a flight, on the state machine of the kind in the state.
func (l *Launcher) Start(ctx context.Context, s flight.State) error {
	arn := l.arns.Express
	if s.Kind == flight.Standard {
		arn = l.arns.Standard
	}
	input, err := s.Input()
	if err != nil {
		return backoff.Permanent(fmt.Errorf("start execution: %w", err))
	}
	_, err = l.api.StartExecution(ctx, &sdk.StartExecutionInput{
		StateMachineArn: &arn, Name: aws.String(executionName(s)), Input: aws.String(string(input)),
	})
	return failure(arn, err)
}

// executionName returns the name of an execution. The name is the same for every start of one leg.
func executionName(s flight.State) string { return string(s.Flight) + "-" + strconv.Itoa(s.Leg) }

// failure explains an error of Step Functions. If the execution already exists, failure returns
// nil.
func failure(arn string, err error) error {
	if client.Code(err) == "ExecutionAlreadyExists" {
		return nil
	}
	return client.Explain("start execution: state machine "+arn, err,
		client.Final{
			Says:  " does not exist in this account and region: deploy the stack, or correct the ARN",
			Codes: []string{"StateMachineDoesNotExist", "StateMachineDeleting", "InvalidArn"},
		},
		client.Final{Says: " refuses the flight", Codes: []string{"InvalidName", "InvalidExecutionInput"}},
		client.Final{Says: ": the credentials do not permit this: grant states:StartExecution"})
}
