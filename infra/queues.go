// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Queues are the three queues of a sink.
type Queues struct {
	Live awssqs.IQueue // created by the stack, unless the settings name an existing one
	Bulk awssqs.Queue
	Dead awssqs.Queue
}

// Of returns the queue of a lane.
func (q Queues) Of(l flight.Lane) awssqs.IQueue {
	if l == flight.Bulk {
		return q.Bulk
	}
	return q.Live
}

// newQueues creates the queues of a sink. They are standard queues, because in a FIFO queue a held
// message blocks its group.
func newQueues(scope constructs.Construct, p *Props, sink string) Queues {
	c, n := p.Config, names.Of(p.Config)
	dead := p.queue(n.DeadQueue(sink), c.Queues.DeadLetterRetention, deadVisibility)
	q := Queues{Dead: awssqs.NewQueue(scope, jsii.String("Dead"), dead)}
	// dlq assumes that lull has already tried a message which SQS moves to the dead-letter queue.
	// Without this policy, everyone who may create a queue could make SQS move messages there.
	raw[awssqs.CfnQueue](q.Dead).SetRedriveAllowPolicy(map[string]any{
		"redrivePermission": "byQueue",
		"sourceQueueArns": []string{
			arn("sqs", n.Queue(sink, flight.Live)), arn("sqs", n.Queue(sink, flight.Bulk)),
		},
	})
	lane := func(id string, l flight.Lane) awssqs.Queue {
		props := p.queue(n.Queue(sink, l), c.Queues.Retention, c.Queues.Visibility)
		props.DeadLetterQueue = &awssqs.DeadLetterQueue{
			Queue:           q.Dead,
			MaxReceiveCount: jsii.Number(float64(c.Retry.MaxReceiveCount())),
		}
		return awssqs.NewQueue(scope, jsii.String(id), props)
	}
	q.Bulk = lane("Bulk", flight.Bulk)
	if name := c.Sinks[sink].LiveQueue; name != "" {
		q.Live = awssqs.Queue_FromQueueArn(scope, jsii.String("Live"), jsii.String(arn("sqs", name)))
	} else {
		q.Live = lane("Live", flight.Live)
	}
	return q
}

func (p *Props) queue(name string, retention, visibility time.Duration) *awssqs.QueueProps {
	props := &awssqs.QueueProps{
		QueueName:           jsii.String(name),
		RetentionPeriod:     seconds(retention),
		VisibilityTimeout:   seconds(visibility),
		MaxMessageSizeBytes: jsii.Number(float64(queue.MaxBytes)),
		EnforceSSL:          jsii.Bool(p.policies()),
		Encryption:          awssqs.QueueEncryption_SQS_MANAGED,
		RemovalPolicy:       p.removal(),
	}
	if p.Key != nil {
		props.Encryption, props.EncryptionMasterKey = awssqs.QueueEncryption_KMS, p.Key
		props.DataKeyReuse = seconds(keyReuse)
	}
	return props
}

// keyReuse is how long SQS uses one data key. With an hour, SQS makes a twelfth of the calls to KMS
// that it makes with the default of 5 minutes.
const keyReuse = time.Hour

// seconds converts a duration of whole seconds for CDK.
func seconds(d time.Duration) awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(d.Seconds()))
}
