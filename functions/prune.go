// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/rows"
)

// Prune runs the function behind a sink's rule. It manages the lifecycle of rows, flights and dead
// letters (design section 9). It does not return.
func Prune() { lambda.Main("prune", wirePrune) }

func wirePrune(s *lambda.Setup) (lambda.Handler, error) {
	aws, err := client.FromEnv(s.Getenv)
	if err != nil {
		return nil, err
	}
	table, bucket := dynamodb.New(aws, s.Name(lambda.EnvTable)), s3.New(aws, s.Name(lambda.EnvBucket))
	s.Table(table.Counts)
	p := prune.Pruner{
		Shards:   table,
		Scanner:  table,
		Flights:  s3.NewFlights(bucket),
		Letters:  dynamodb.NewLetters(table, s3.NewBodies(bucket, s3.DeadPrefix)),
		Schedule: dynamodb.NewSchedule(table, s3.NewBodies(bucket, s3.SchedulePrefix)),
		Live:     sqs.New(aws, s.Name(lambda.EnvLiveQueue)),
		Bulk:     sqs.New(aws, s.Name(lambda.EnvBulkQueue)),
		Launcher: launcher(aws, s),
		Config:   s.Config,
		Sink:     s.Sink,
		Clock:    clock.System{},
		Journal:  s.Journal,
		NewToken: rows.NewToken,
		NewID:    flight.NewID,
	}
	run := func(ctx context.Context, fired time.Time) error {
		p := p // each run has its own copy
		p.Fired = fired
		report, err := p.Run(ctx)
		s.Journal.Log.InfoContext(ctx, "run", "report", report)
		return err
	}
	return &lambda.Task{Run: run, Limit: s.Config.Lifecycle.PruneEvery, Journal: s.Journal}, nil
}
