// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"errors"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/aws/stepfunctions"
	"github.com/lullhq/lull/internal/pipeline/receive"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/source"
)

// Receive runs the function behind a sink's queues. It admits events and holds their messages in a
// flight (design section 6). It does not return.
func Receive() { lambda.Main("receive", wireReceive) }

// launcher starts executions of the state machines of the sink.
func launcher(account sdk.Config, s *lambda.Setup) *stepfunctions.Launcher {
	return stepfunctions.New(account, stepfunctions.Machines{
		Express: s.Name(lambda.EnvExpress), Standard: s.Name(lambda.EnvStandard),
	})
}

func wireReceive(s *lambda.Setup) (lambda.Handler, error) {
	aws, err := client.FromEnv(s.Getenv)
	sources, bad := source.New(s.Config)
	if err := errors.Join(err, bad); err != nil {
		return nil, err
	}
	table, bucket := dynamodb.New(aws, s.Name(lambda.EnvTable)), s3.New(aws, s.Name(lambda.EnvBucket))
	s.Table(table.Counts)
	handler := func(lane flight.Lane, queue string) lambda.Handle {
		h := &receive.Handler{
			Shards:   table,
			Flights:  s3.NewFlights(bucket),
			Launcher: launcher(aws, s),
			Ingest:   sqs.New(aws, s.Name(queue)),
			Dead:     sqs.New(aws, s.Name(lambda.EnvDeadQueue)),
			Schedule: dynamodb.NewSchedule(table, s3.NewBodies(bucket, s3.SchedulePrefix)),
			Sources:  sources.At(s.Sink).WithLoader(bucket.Load),
			Config:   s.Config,
			Sink:     s.Sink,
			Lane:     lane,
			Clock:    clock.System{},
			Journal:  s.Journal,
			NewID:    flight.NewID,
			Objects:  bucket.Open,
			Bulk:     sqs.New(aws, s.Name(lambda.EnvBulkQueue)),
			Senders:  s.Senders(),
		}
		if s.Config.Archive.Keep > 0 {
			h.Archive = s3.NewArchive(bucket)
		}
		return h.Handle
	}
	return &lambda.Queues{
		Handles: map[string]lambda.Handle{
			s.QueueName(lambda.EnvLiveQueue): handler(flight.Live, lambda.EnvLiveQueue),
			s.QueueName(lambda.EnvBulkQueue): handler(flight.Bulk, lambda.EnvBulkQueue),
		},
		Limit:   s.Config.Receive.Timeout,
		Journal: s.Journal,
	}, nil
}
