package stepfunctions

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/flight"
)

// attemptTimeout bounds one request.
const attemptTimeout = 2 * time.Second

// Launcher starts executions of one state machine. It is safe for concurrent use.
type Launcher struct {
	api *sdk.Client
	arn string
}

var _ flight.Launcher = (*Launcher)(nil)

// New returns the launcher of the state machine with that ARN. The account's settings are used
// without retries of the SDK's own.
func New(cfg aws.Config, arn string) *Launcher {
	return &Launcher{api: sdk.NewFromConfig(client.Bounded(cfg, attemptTimeout)), arn: arn}
}

// Start begins the execution of a flight's leg.
func (l *Launcher) Start(ctx context.Context, s flight.State) error {
	input, err := s.Input()
	if err != nil {
		return backoff.Permanent(fmt.Errorf("start execution: %w", err))
	}
	_, err = l.api.StartExecution(ctx, &sdk.StartExecutionInput{
		StateMachineArn: &l.arn, Name: aws.String(executionName(s)), Input: aws.String(string(input)),
	})
	return l.failure(err)
}

// executionName is the same for every start of one leg.
func executionName(s flight.State) string { return string(s.Flight) + "-" + strconv.Itoa(s.Leg) }

// failure says what an error of Step Functions means.
func (l *Launcher) failure(err error) error {
	if client.Code(err) == "ExecutionAlreadyExists" {
		return nil
	}
	return client.Explain("start execution: state machine "+l.arn, err,
		client.Final{
			Says:  " does not exist in this account and region: deploy the stack, or correct the ARN",
			Codes: []string{"StateMachineDoesNotExist", "StateMachineDeleting", "InvalidArn"},
		},
		client.Final{Says: " refuses the flight", Codes: []string{"InvalidName", "InvalidExecutionInput"}},
		client.Final{Says: ": the credentials may not do this: grant states:StartExecution"})
}
