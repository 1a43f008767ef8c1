// Index is the function behind a sink's state machine: one turn of a flight (design section 8).
package main

import (
	"errors"
	"math/rand/v2"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/aws/stepfunctions"
	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/index"
	"github.com/lullhq/lull/internal/payload"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/source"
)

func main() { lambda.Main("index", wire) }

func wire(s *lambda.Setup) (lambda.Handler, error) {
	aws, err := client.FromEnv(s.Getenv)
	sources, bad := source.New(s.Config)
	if err := errors.Join(err, bad); err != nil {
		return nil, err
	}
	sink, err := newSink(aws, s)
	if err != nil {
		return nil, err
	}
	table, bucket := dynamodb.New(aws, s.Name(lambda.EnvTable)), s3.New(aws, s.Name(lambda.EnvBucket))
	s.Table(table.Counts)
	h := &index.Handler{
		Shards:   s.Reported(table),
		Flights:  s3.NewFlights(bucket),
		Launcher: stepfunctions.New(aws, s.Name(lambda.EnvStateMachine)),
		Queues: map[flight.Lane]queue.Queue{
			flight.Live: sqs.New(aws, s.Name(lambda.EnvLiveQueue)),
			flight.Bulk: sqs.New(aws, s.Name(lambda.EnvBulkQueue)),
		},
		Dead:     sqs.New(aws, s.Name(lambda.EnvDeadQueue)),
		Sink:     sink,
		SinkName: s.Sink,
		Sources:  sources.WithLoader(bucket.Load),
		Payloads: payload.New(bucket.Load, s.Config.Payload.HTTPHosts, s3.MaxReference),
		Config:   s.Config,
		Clock:    clock.System{},
		Journal:  s.Journal,
		NewToken: lambda.NewToken,
		Jitter:   rand.Float64,
	}
	return &lambda.Turn{Take: h.Turn, Limit: s.Config.Index.Timeout, Journal: s.Journal}, nil
}
