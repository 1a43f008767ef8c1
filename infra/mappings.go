// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
)

// The mapping of the dead-letter queue: at most ten dead letters in a batch, two invocations at a
// time, no batching window. Dead letters are rare, and many of them are not urgent.
const (
	deadBatch       = 10
	deadConcurrency = 2
)

// newMappings connects the queues with receive and dlq. All mappings report failures per message,
// because that is how a message is held. None has filter criteria, because Lambda deletes a message
// that does not match.
func (s *Sink) newMappings() {
	q := s.lull.props.Config.Queues
	s.newMapping("LiveMapping", names.Receive, *s.Queues.Of(flight.Live).QueueArn(), q.Live)
	s.newMapping("BulkMapping", names.Receive, *s.Queues.Of(flight.Bulk).QueueArn(), q.Bulk)
	s.newMapping("DeadMapping", names.DLQ, *s.Queues.Dead.QueueArn(),
		config.Lane{Batch: deadBatch, MaxConcurrency: deadConcurrency})
}

func (s *Sink) newMapping(id string, f names.Function, queue string, l config.Lane) {
	props := &awslambda.EventSourceMappingProps{
		EventSourceArn:          jsii.String(queue),
		Target:                  s.Functions[f].Alias,
		BatchSize:               jsii.Number(float64(l.Batch)),
		ReportBatchItemFailures: jsii.Bool(true),
	}
	// With MaxConcurrency, AWS keeps five pollers even for an empty queue. Without it, AWS may
	// reduce them to two: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
	if l.MaxConcurrency > 0 {
		props.MaxConcurrency = jsii.Number(float64(l.MaxConcurrency))
	}
	if l.Window > 0 {
		props.MaxBatchingWindow = seconds(l.Window)
	}
	m := awslambda.NewEventSourceMapping(s.scope, jsii.String(id), props)
	if l.MaxConcurrency == 0 {
		// An empty ScalingConfig removes an earlier limit. Without ScalingConfig the limit would
		// stay.
		raw[awslambda.CfnEventSourceMapping](m).AddPropertyOverride(jsii.String("ScalingConfig.MaximumConcurrency"),
			map[string]string{"Ref": "AWS::NoValue"})
	}
}
