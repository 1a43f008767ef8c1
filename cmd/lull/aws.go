package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/lullhq/lull/internal/aws/cloudwatchlogs"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/aws/stepfunctions"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/payload"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// openAWS finds a deployed stack by the names of its resources. done closes what was opened.
func (app *app) openAWS(ctx context.Context, cfg *config.Config) (o *operate.Operator, done func(), err error) {
	a, err := app.aws(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("find AWS credentials: %w", err)
	}
	if a.Region == "" {
		return nil, nil, fmt.Errorf("no AWS region: set AWS_REGION, or a profile that has one")
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
	sources, err := source.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	client := awssqs.NewFromConfig(a)
	urls := map[string]string{}  // by queue name
	owner := map[string]string{} // the sink, by queue name
	dead := map[string]string{}  // the dead-letter queue, by the name of a lane's queue
	queues := map[string]queue.Queue{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sinks)) {
		for _, q := range []string{n.Queue(name, flight.Live), n.Queue(name, flight.Bulk), n.DeadQueue(name)} {
			out, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &q})
			if err != nil {
				return nil, nil, fmt.Errorf("find queue %s of stack %s in %s (not deployed, or access denied): %w", q,
					cfg.Stack, a.Region, err)
			}
			owner[q] = name
			if q != n.DeadQueue(name) {
				dead[q] = n.DeadQueue(name)
			}
			urls[q], queues[q] = aws.ToString(out.QueueUrl), sqs.New(a, aws.ToString(out.QueueUrl))
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
		Queues: func(name string, lane flight.Lane) queue.Queue { return queues[n.Queue(name, lane)] },
		Counts: func(ctx context.Context) ([]operate.QueueStatus, error) {
			var out []operate.QueueStatus
			for _, q := range slices.Sorted(maps.Keys(urls)) {
				has, err := attributes(ctx, client, q, urls[q])
				if err != nil {
					return nil, err
				}
				s := counted(q, owner[q], has)
				if target := dead[q]; target != "" {
					s.Wrong = laneFaults(cfg, q, target, has)
				}
				out = append(out, s)
			}
			return out, nil
		},
		Table: func(ctx context.Context) []string {
			return tableFaults(ctx, awsdynamodb.NewFromConfig(a), n.Table())
		},
		Size: func(ctx context.Context) (rows, bytes int64, err error) {
			table := n.Table()
			out, err := awsdynamodb.NewFromConfig(a).
				DescribeTable(ctx, &awsdynamodb.DescribeTableInput{TableName: &table})
			if err == nil && out.Table == nil {
				err = errors.New("the answer holds none")
			}
			if err != nil {
				return 0, 0, fmt.Errorf("describe table %s: %w", table, err)
			}
			return aws.ToInt64(out.Table.ItemCount), aws.ToInt64(out.Table.TableSizeBytes), nil
		},
		Connect: payload.Connect,
		Readers: map[string]sink.Reader{}, Unread: map[string]error{},
		Hint: "a sink inside a VPC answers index, and nobody outside", Sinks: map[string]sink.Sink{},
		Sources: sources, Config: cfg, Clock: clock.System{}, Off: clock.Trust, Journal: newAudit(app.err),
	}
	if cfg.Archive.Keep > 0 {
		o.Archive = s3.NewArchive(bucket)
	}
	if app.logs > 0 {
		o.History = app.history(cloudwatchlogs.New(a), cfg)
	}
	var closes []sink.Sink
	for name, s := range cfg.Sinks {
		if kind, _ := sink.Lookup(s.Kind); !kind.Deployable() {
			continue
		}
		// Reading the sink is a convenience: an operator may have no way to it.
		s, err := app.openSink(ctx, cfg, name, "")
		if err != nil {
			o.Unread[name] = err
			continue
		}
		closes = append(closes, s)
		if r, ok := s.(sink.Reader); ok {
			o.Readers[name], o.Sinks[name] = r, s
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

// history reads what the functions of a document's sink logged about it.
func (app *app) history(logs *cloudwatchlogs.Logs, cfg *config.Config) func(context.Context,
	shard.DocID) ([]operate.Decision, error) {
	return func(ctx context.Context, doc shard.DocID) ([]operate.Decision, error) {
		name := cfg.SinkOf(doc)
		var groups []string
		for _, f := range names.Functions() {
			groups = append(groups, names.Of(cfg).FunctionLog(name, f))
		}
		return logs.History(ctx, groups, doc, time.Now().Add(-app.logs))
	}
}

// attributes are those of a queue that status shows or judges.
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
