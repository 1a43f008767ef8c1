// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"errors"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/pipeline/dlq"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/source"
)

// DLQ runs the function behind a sink's dead-letter queue. It judges dead letters by their rows,
// and parks them or sends them back (design section 10). It does not return.
func DLQ() { lambda.Main("dlq", wireDLQ) }

func wireDLQ(s *lambda.Setup) (lambda.Handler, error) {
	aws, err := client.FromEnv(s.Getenv)
	sources, bad := source.New(s.Config)
	if err := errors.Join(err, bad); err != nil {
		return nil, err
	}
	table, bucket := dynamodb.New(aws, s.Name(lambda.EnvTable)), s3.New(aws, s.Name(lambda.EnvBucket))
	s.Table(table.Counts)
	h := &dlq.Handler{
		Shards:  table,
		Letters: dynamodb.NewLetters(table, s3.NewBodies(bucket, s3.DeadPrefix)),
		Sources: sources.At(s.Sink).WithLoader(bucket.Load),
		Live:    sqs.New(aws, s.Name(lambda.EnvLiveQueue)),
		Bulk:    sqs.New(aws, s.Name(lambda.EnvBulkQueue)),
		Dead:    sqs.New(aws, s.Name(lambda.EnvDeadQueue)),
		Config:  s.Config,
		Sink:    s.Sink,
		Clock:   clock.System{},
		Journal: s.Journal,
		Senders: s.Senders(),
	}
	return &lambda.Queues{
		Handles: map[string]lambda.Handle{s.QueueName(lambda.EnvDeadQueue): h.Handle},
		Limit:   lambda.DLQTimeout,
		Journal: s.Journal,
	}, nil
}
