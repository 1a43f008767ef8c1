// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sinks"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/roundtrip"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Job runs the function that does operators' work by a schedule, for all sinks of a stack (ADR
// 0075). Import this package together with the packages of your sinks' kinds. It does not return.
func Job() { lambda.Main("job", wireJob) }

func wireJob(s *lambda.Setup) (lambda.Handler, error) {
	stack, err := operated(s)
	if err != nil {
		return nil, err
	}
	c := roundtrip.Canary{
		Stack: stack, Config: s.Config, Clock: clock.System{}, Budget: roundtrip.Budget,
	}
	v := verify.Scheduled{Stack: stack, Config: s.Config, Clock: clock.System{}, Journal: s.Journal}
	return &lambda.Works{
		Do: map[config.Work]func(context.Context) error{
			config.WorkCanary: func(ctx context.Context) error { return tell(ctx, s, c.Run(ctx)) },
			config.WorkVerify: func(ctx context.Context) error { return v.Portion(ctx, portion) },
		},
		Limit: lambda.JobTimeout, Journal: s.Journal,
	}, nil
}

// portion is how long a run carries on the verifications. Its last step may take a minute more.
const portion = 3 * time.Minute

// tell counts and logs the results of the canary. A failure is not an error of the invocation.
func tell(ctx context.Context, s *lambda.Setup, results []roundtrip.Result) error {
	for _, r := range results {
		said := []any{"sink", r.Sink, "outcome", string(r.Outcome)}
		if r.Why != "" {
			said = append(said, "why", r.Why)
		}
		switch r.Outcome {
		case roundtrip.Passed:
			s.Journal.CountAt(r.Sink, metrics.CanaryPassed, 1)
			s.Journal.CountAt(r.Sink, metrics.CanarySeconds, int((r.Took+time.Second-1)/time.Second))
		case roundtrip.Failed:
			s.Journal.CountAt(r.Sink, metrics.CanaryFailed, 1)
			s.Journal.Log.Error("canary failed", said...)
			continue
		}
		s.Journal.Log.InfoContext(ctx, "canary", said...)
	}
	return nil
}

// operated returns the operations that the works of job use, on the deployed stack.
func operated(s *lambda.Setup) (operate.API, error) {
	aws, err := client.FromEnv(s.Getenv)
	sources, bad := source.New(s.Config)
	if err := errors.Join(err, bad); err != nil {
		return operate.API{}, err
	}
	table, bucket := dynamodb.New(aws, s.Name(lambda.EnvTable)), s3.New(aws, s.Name(lambda.EnvBucket))
	s.Table(table.Counts)
	account := sinks.Account{
		Getenv: s.Getenv, AWS: func(context.Context) (sdk.Config, error) { return aws, nil },
	}
	payloads, err := payload.New(bucket.Load, nil, payload.MaxObject).Pulling(s.Config.Sources, account.Headers)
	if err != nil {
		return operate.API{}, err
	}
	o := &operate.Operator{
		Shards: table, Scanner: table, Sources: sources, Config: s.Config, Clock: clock.System{}, Off: clock.Trust,
		Journal: s.Journal, Readers: map[string]sink.Reader{}, Unread: map[string]error{},
		Sinks: map[string]sink.Sink{}, Fetch: payloads.Fetch,
	}
	names, queues := slices.Sorted(maps.Keys(s.Config.Sinks)), map[flight.Lane]map[string]queue.Queue{}
	for lane, variable := range map[flight.Lane]string{
		flight.Live: lambda.EnvLiveQueues, flight.Bulk: lambda.EnvBulkQueues,
	} {
		urls := strings.Split(s.Name(variable), ",")
		if len(urls) != len(names) && s.Missing() == nil {
			return operate.API{}, fmt.Errorf("%s has %d addresses for %d sinks: deploy the function and its settings together",
				variable, len(urls), len(names))
		}
		queues[lane] = map[string]queue.Queue{}
		for i, url := range urls[:min(len(urls), len(names))] {
			queues[lane][names[i]] = sqs.New(aws, url)
		}
	}
	for _, name := range names {
		opened, err := sinks.Open(context.Background(), s.Config, name, account)
		if err != nil {
			return operate.API{}, err
		}
		o.Sinks[name] = opened
		if r, ok := opened.(sink.Reader); ok {
			o.Readers[name] = r
		} else {
			o.Unread[name] = operate.ErrWriteOnly
		}
	}
	o.Queues = func(sink string, lane flight.Lane) queue.Queue { return queues[lane][sink] }
	return o.API(), nil
}
