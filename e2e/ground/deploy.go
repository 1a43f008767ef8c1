// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
)

// EventSource is the source of the events that the tests send through EventBridge.
const EventSource = "lull.e2e"

// Bootstrap prepares the account, as `cdk bootstrap` does.
func (g *Ground) Bootstrap(ctx context.Context) error {
	return g.cdk(ctx, nil, "bootstrap", "aws://"+g.AccountID+"/"+g.Account.Region)
}

// Deploy deploys a stack with its upstreams: a topic and a bus, which do not belong to the stack.
func (g *Ground) Deploy(ctx context.Context, settings Settings) (*Stack, error) {
	s, err := g.prepare(ctx, settings)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(g.Work, settings.Stack+".out")
	env := append(s.options, "LULL_DIST="+g.now.dist)
	return s, s.deploy(ctx, env, "--app", g.now.infra, "--output", out)
}

// deploy runs `cdk deploy`, and then looks up the addresses of the queues, which only the emulator
// knows.
func (s *Stack) deploy(ctx context.Context, env []string, args ...string) error {
	args = append([]string{"deploy", "--require-approval", "never"}, args...)
	if os.Getenv(EnvStack) != "" { // acceptance, or a test that it runs
		args = append(args, "--tags", MadeBy+"="+Acceptance)
	}
	if err := s.cdk(ctx, env, args...); err != nil {
		return err
	}
	return s.Find(ctx, map[string]*string{
		s.Names.Queue(Sink, flight.Live): &s.Live, s.Names.Queue(Sink, flight.Bulk): &s.Bulk,
		s.Names.DeadQueue(Sink): &s.Dead,
	})
}

// Find looks up the addresses of queues by their names.
func (s *Stack) Find(ctx context.Context, addresses map[string]*string) error {
	for name, to := range addresses {
		out, err := s.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
		if err != nil {
			return fmt.Errorf("find queue %s: %w", name, err)
		}
		*to = *out.QueueUrl
	}
	return nil
}

// prepare creates everything that a stack needs before it is deployed.
func (g *Ground) prepare(ctx context.Context, settings Settings) (*Stack, error) {
	if prefix := os.Getenv(EnvStack); prefix != "" {
		settings.Stack = strings.Replace(settings.Stack, "lull", prefix, 1)
	}
	deployed, here, c, err := g.write(settings)
	if err != nil {
		return nil, err
	}
	n := names.Of(c)
	s := &Stack{
		Ground: g, Config: c, Names: n, settings: here,
		Bus: settings.Stack + "-changes",
		SQS: sqs.NewFromConfig(g.Account), Steps: sfn.NewFromConfig(g.Account),
		logs: cloudwatchlogs.NewFromConfig(g.Account),
		Rows: dynamodb.New(g.Account, n.Table()), Objects: s3.New(g.Account, n.Bucket(g.AccountID, g.Account.Region)),
		seen: make(map[string]*string), sums: make(Counts),
	}
	s.Letters = dynamodb.NewLetters(s.Rows, s3.NewBodies(s.Objects, s3.DeadPrefix))
	s.Schedule = dynamodb.NewSchedule(s.Rows, s3.NewBodies(s.Objects, s3.SchedulePrefix))
	s.Flights = s3.NewFlights(s.Objects)
	if s.Topic, err = g.topic(ctx, settings.Stack+"-changes"); err != nil {
		return nil, err
	}
	s.options = []string{
		"LULL_CONFIG=" + deployed, "LULL_EPHEMERAL=true",
		"LULL_TOPICS=" + s.Topic, "LULL_EVENT_BUS=" + s.Bus, "LULL_EVENT_SOURCES=" + EventSource,
		"LULL_LOG_LEVEL=DEBUG",
	}
	if settings.First+settings.Hook == "" { // a direct sender cannot reach two sinks
		s.options = append(s.options, "LULL_SENDERS="+g.AccountID)
	}
	// An operator also installs the index template before the first document.
	return s, errors.Join(g.bus(ctx, s.Bus), Run(ctx, "", nil, filepath.Join(g.Work, "lull"), "index", "install-template", "--config", here))
}

// cdk runs the pinned version of the CDK command line.
func (g *Ground) cdk(ctx context.Context, env []string, args ...string) error {
	// In the caller's folder, CDK would read cdk.json and cdk.context.json.
	return Run(ctx, g.Work, env, "cdk", args...)
}

// Run runs a program in a folder (if empty, in the caller's) with more environment variables. If it
// fails, the error contains its output.
func Run(ctx context.Context, folder string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return nil
}

// topic creates an SNS topic, or finds the existing topic, and returns its ARN.
func (g *Ground) topic(ctx context.Context, name string) (string, error) {
	answer, err := g.Query(ctx, "sns", "2010-03-31", "CreateTopic", url.Values{"Name": {name}})
	if err != nil {
		return "", err
	}
	return elementText(answer, "TopicArn"), nil
}

// bus creates an EventBridge bus if it does not exist.
func (g *Ground) bus(ctx context.Context, name string) error {
	err := g.target(ctx, "events", "AWSEvents.CreateEventBus", map[string]any{"Name": name}, nil)
	if err != nil && strings.Contains(err.Error(), "ResourceAlreadyExists") {
		return nil
	}
	return err
}
