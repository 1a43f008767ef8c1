package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/names"
)

// The mapping of the dead-letter queue: ten dead letters at once, two invocations at a time,
// without a window. Dead letters are rare, and where there are many, nobody waits for them.
const (
	deadBatch       = 10
	deadConcurrency = 2
)

// newMappings connect the queues with receive and dlq. All of them report failures per message,
// which is how a message is held, and none has filter criteria: a mapping deletes what does not
// match.
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
	// With a limit, AWS keeps five pollers however quiet the queue is; without one it may go down to
	// two: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
	if l.MaxConcurrency > 0 {
		props.MaxConcurrency = jsii.Number(float64(l.MaxConcurrency))
	}
	if l.Window > 0 {
		props.MaxBatchingWindow = seconds(l.Window)
	}
	m := awslambda.NewEventSourceMapping(s.scope, jsii.String(id), props)
	if l.MaxConcurrency == 0 {
		// An empty ScalingConfig takes an earlier limit away; one that is left out keeps it.
		raw[awslambda.CfnEventSourceMapping](m).AddPropertyOverride(jsii.String("ScalingConfig.MaximumConcurrency"),
			map[string]string{"Ref": "AWS::NoValue"})
	}
}
