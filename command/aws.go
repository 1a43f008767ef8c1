// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/lullhq/lull/internal/aws/cloudwatch"
	"github.com/lullhq/lull/internal/aws/cloudwatchlogs"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sinks"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/aws/stepfunctions"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/operator/export"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// openAWS finds a deployed stack by the names of its resources. done closes what was opened.
func (t *target) openAWS(ctx context.Context, cfg *config.Config) (o *operate.Operator, done func(), err error) {
	a, err := t.aws.account(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	who, err := sts.NewFromConfig(a).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return nil, nil, fmt.Errorf("ask AWS for the caller's identity: %w", err)
	}
	caller, err := arn.Parse(aws.ToString(who.Arn))
	if err != nil {
		return nil, nil, fmt.Errorf("read the caller's ARN: %w", err)
	}
	n, account := names.Of(cfg), aws.ToString(who.Account)
	sources, err := source.New(operated{cfg})
	if err != nil {
		return nil, nil, err
	}
	client := awssqs.NewFromConfig(a)
	queues := map[string]deployedQueue{} // by name
	for _, name := range slices.Sorted(maps.Keys(cfg.Sinks)) {
		dead := n.DeadQueue(name)
		for _, q := range []struct{ name, dead string }{
			{n.Queue(name, flight.Live), dead}, {n.Queue(name, flight.Bulk), dead}, {dead, ""},
		} {
			url, err := queueURL(ctx, client, cfg, q.name)
			if err != nil {
				return nil, nil, err
			}
			queues[q.name] = deployedQueue{sqs.New(a, url), url, name, q.dead}
		}
	}
	table, bucket := dynamodb.New(a, n.Table()), s3.New(a, n.Bucket(account, a.Region))
	o = &operate.Operator{
		Shards: table, Scanner: table, Dead: dynamodb.NewLetters(table, s3.NewBodies(bucket, s3.DeadPrefix)),
		Schedule: dynamodb.NewSchedule(table, s3.NewBodies(bucket, s3.SchedulePrefix)), Flights: s3.NewFlights(bucket),
		Launcher: func(name string) flight.Launcher {
			machine := func(kind config.FlightKind) string {
				return fmt.Sprintf("arn:%s:states:%s:%s:stateMachine:%s", caller.Partition, a.Region, account,
					n.StateMachine(name, kind))
			}
			return stepfunctions.New(a, stepfunctions.Machines{
				Express: machine(config.FlightExpress), Standard: machine(config.FlightStandard),
			})
		},
		Queues: func(name string, lane flight.Lane) queue.Queue { return queues[n.Queue(name, lane)].Queue },
		Counts: func(ctx context.Context) ([]operate.QueueStatus, error) {
			var out []operate.QueueStatus
			for _, name := range slices.Sorted(maps.Keys(queues)) {
				q := queues[name]
				has, err := attributes(ctx, client, name, q.url)
				if err != nil {
					return nil, err
				}
				s := counted(name, q.sink, has)
				if q.dead != "" {
					s.Wrong = laneFaults(cfg, name, q.dead, has)
				}
				out = append(out, s)
			}
			return out, nil
		},
		Table: func(ctx context.Context) []string {
			return tableFaults(ctx, awsdynamodb.NewFromConfig(a), n.Table())
		},
		Size: func(ctx context.Context) (rows, bytes int64, err error) {
			table, err := described(ctx, awsdynamodb.NewFromConfig(a), n.Table())
			if err != nil {
				return 0, 0, fmt.Errorf("describe table %s: %w", n.Table(), err)
			}
			return aws.ToInt64(table.ItemCount), aws.ToInt64(table.TableSizeBytes), nil
		},
		Connect: payload.Connect, Fetch: fetchOf(t.aws, cfg, bucket),
		Readers: map[string]sink.Reader{}, Unread: map[string]error{},
		Hint: "a sink inside a VPC answers only programs in that VPC, such as index", Sinks: map[string]sink.Sink{},
		Sources: sources, Config: cfg, Clock: clock.System{}, Off: clock.Trust, Journal: newAudit(t.audit),
		Others: otherParts(a, cfg),
	}
	t.meter = &awsMeter{cfg: cfg, metrics: cloudwatch.New(a), now: time.Now}
	o.Flow = t.meter.flow
	if cfg.Archive.Keep > 0 {
		o.Archive = s3.NewArchive(bucket)
	}
	if t.logs > 0 {
		o.History = history(cloudwatchlogs.New(a), cfg, t.logs)
	}
	var closes []sink.Sink
	for _, name := range deployable(cfg) {
		// Reading the sink is optional: an operator's machine may be unable to reach it.
		s, err := openSink(ctx, t.aws, cfg, name)
		if err != nil {
			o.Unread[name] = err
			continue
		}
		closes = append(closes, s)
		o.Sinks[name] = s
		if r, ok := s.(sink.Reader); ok {
			o.Readers[name] = r
		} else {
			o.Unread[name] = operate.ErrWriteOnly
		}
	}
	return o, func() {
		for _, s := range closes {
			closeSink(s)
		}
	}, nil
}

// fetchOf returns the function that asks the sources of a stack for documents, with the headers
// that the settings name. It reads secrets and the environment only when a command asks a source.
func fetchOf(find credentials, cfg *config.Config, bucket *s3.Bucket) export.Fetch {
	open := sync.OnceValues(func() (*payload.Loader, error) {
		account := sinks.Account{Getenv: os.Getenv, AWS: find}
		return payload.New(bucket.Load, nil, payload.MaxObject).Pulling(cfg.Sources, account.Headers)
	})
	return func(ctx context.Context, from, ref string) ([]byte, error) {
		l, err := open()
		if err != nil {
			return nil, &source.Unavailable{Problem: err.Error()}
		}
		return l.Fetch(ctx, from, ref)
	}
}

// operated has the settings of a deployed stack. This program need not link the kinds of the stack:
// see [anyKind].
type operated struct{ *config.Config }

func (o operated) SourceConfig() source.Config {
	c := o.Config.SourceConfig()
	c.Unlinked = true
	return c
}

// credentials returns how this process reaches AWS: endpoint, region and credentials as the SDK
// finds them.
type credentials func(context.Context) (aws.Config, error)

// account returns the credentials and the region with which this process calls AWS. region is used
// if neither the environment nor a profile names a region.
func (find credentials) account(ctx context.Context, region string) (aws.Config, error) {
	a, err := find(ctx)
	if err != nil {
		return a, fmt.Errorf("find AWS credentials: %w", err)
	}
	if a.Region = cmp.Or(a.Region, region); a.Region == "" {
		return a, errors.New("no AWS region: set AWS_REGION, or a profile that has one")
	}
	return a, nil
}

// deployedQueue is a queue of a stack.
type deployedQueue struct {
	queue.Queue
	url, sink string
	dead      string // the name of its dead-letter queue; empty if this is a dead-letter queue
}

// queueURL finds a queue of a stack.
func queueURL(ctx context.Context, client *awssqs.Client, cfg *config.Config, name string) (string, error) {
	out, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return "", fmt.Errorf("find queue %s of stack %s in %s (not deployed, or access denied): %w", name, cfg.Stack,
			client.Options().Region, err)
	}
	return aws.ToString(out.QueueUrl), nil
}

// history reads what the functions of a document's sink logged about it.
func history(logs *cloudwatchlogs.Logs, cfg *config.Config, ago time.Duration) func(context.Context,
	shard.DocID) ([]operate.Decision, error) {
	return func(ctx context.Context, doc shard.DocID) ([]operate.Decision, error) {
		name := cfg.SinkOf(doc)
		var groups []string
		for _, f := range names.Functions() {
			groups = append(groups, names.Of(cfg).FunctionLog(name, f))
		}
		return logs.History(ctx, groups, doc, time.Now().Add(-ago))
	}
}

// attributes returns the attributes of a queue that `lull status` shows or checks.
func attributes(ctx context.Context, client *awssqs.Client, name, url string) (map[string]string, error) {
	out, err := client.GetQueueAttributes(ctx,
		&awssqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameApproximateNumberOfMessages,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
			types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
			types.QueueAttributeNameVisibilityTimeout,
			types.QueueAttributeNameMessageRetentionPeriod,
			types.QueueAttributeNameRedrivePolicy,
		}})
	if err != nil {
		return nil, fmt.Errorf("count queue %s: %w", name, err)
	}
	return out.Attributes, nil
}

func counted(name, sink string, has map[string]string) operate.QueueStatus {
	n := func(a types.QueueAttributeName) int {
		v, _ := strconv.Atoi(has[string(a)]) // SQS sends numbers
		return v
	}
	return operate.QueueStatus{
		Queue: name, Sink: sink, Visible: n(types.QueueAttributeNameApproximateNumberOfMessages),
		InFlight: n(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible),
		Delayed:  n(types.QueueAttributeNameApproximateNumberOfMessagesDelayed),
	}
}
