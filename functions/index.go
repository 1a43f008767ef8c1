// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"context"
	"errors"
	"math/rand/v2"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/enrichers"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sinks"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Index runs the function behind a sink's state machine. It runs one turn of a flight: it claims,
// writes, commits and deletes (design section 8). Import this package together with the package of
// your sink's kind. It does not return.
func Index() { lambda.Main("index", wireIndex) }

func wireIndex(s *lambda.Setup) (lambda.Handler, error) {
	aws, err := client.FromEnv(s.Getenv)
	sources, bad := source.New(s.Config)
	if err := errors.Join(err, bad); err != nil {
		return nil, err
	}
	account := sinks.Account{
		Getenv: s.Getenv, AWS: func(context.Context) (sdk.Config, error) { return aws, nil },
	}
	callers, err := enrichers.Open(context.Background(), s.Config, s.Sink, account)
	if err != nil {
		return nil, err
	}
	table, bucket := dynamodb.New(aws, s.Name(lambda.EnvTable)), s3.New(aws, s.Name(lambda.EnvBucket))
	opened, err := sinks.Open(context.Background(), s.Config, s.Sink, account)
	payloads, bad := payload.New(bucket.Load, s.Config.Payload.HTTPHosts, payload.MaxObject).
		Pulling(s.Config.Sources, account.Headers)
	if err := errors.Join(err, bad); err != nil {
		return nil, err
	}
	s.Table(table.Counts)
	reader, _ := opened.(sink.Reader) // nil if the sink cannot be read
	h := &index.Handler{
		Shards:   s.Reported(table),
		Flights:  s3.NewFlights(bucket),
		Launcher: launcher(aws, s),
		Queues: map[flight.Lane]queue.Queue{
			flight.Live: sqs.New(aws, s.Name(lambda.EnvLiveQueue)),
			flight.Bulk: sqs.New(aws, s.Name(lambda.EnvBulkQueue)),
		},
		Dead:      sqs.New(aws, s.Name(lambda.EnvDeadQueue)),
		Sink:      opened,
		SinkName:  s.Sink,
		Reader:    reader,
		Sources:   sources.At(s.Sink).WithLoader(bucket.Load),
		Payloads:  payloads,
		Fetcher:   payloads,
		Enrichers: callers,
		Config:    s.Config,
		Clock:     clock.System{},
		Journal:   s.Journal,
		NewToken:  rows.NewToken,
		Jitter:    rand.Float64,
	}
	return &lambda.Turn{Take: h.Turn, Limit: s.Config.Index.Timeout, Journal: s.Journal}, nil
}
