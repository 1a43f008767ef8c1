// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"fmt"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/config"
)

// newUpstreams lets upstream systems send events: through a topic, a bus or a pipe, or directly.
// Each of them, except a direct sender, reaches the queues of all sinks of its collections (ADR
// 0049).
func (l *Lull) newUpstreams() {
	subscribed := map[string]bool{}
	for i, u := range l.props.Upstreams {
		for _, name := range u.sinks(l.props.Config) {
			s := l.Sinks[name]
			queue := s.Queues.Of(u.lane())
			switch {
			case u.Topic != nil:
				if at := *u.Topic.TopicArn() + " " + name + " " + string(u.lane()); !subscribed[at] {
					subscribed[at] = true
					s.subscribe(u.Topic, queue, !u.enveloped(l.props.Config))
				}
			case u.Bus != nil:
				s.addRule(i, u, queue)
			case u.Pipe != nil:
				s.newPipe(u.Pipe, u.lane())
			default:
				admit(i, u, queue)
			}
		}
	}
}

// enveloped reports whether messages of the topic keep SNS's envelope.
func (u Upstream) enveloped(c *config.Config) bool {
	return u.Envelope || u.Topic != nil && slices.Contains(matchedTopics(c), *u.Topic.TopicArn())
}

// matchedTopics lists the topics that match rules name.
func matchedTopics(c *config.Config) (arns []string) {
	for _, s := range c.Sources {
		for _, m := range s.Match {
			if m.Topic != "" {
				arns = append(arns, m.Topic)
			}
		}
	}
	return arns
}

// subscribe delivers the topic's messages to the queue. With raw delivery, messages have attributes
// and no envelope. Without raw delivery, the envelope names the topic for match rules. If SNS
// cannot deliver a message, it sends the message to the dead-letter queue. The function dlq then
// sends the message to the live queue, because lull has not tried the message yet.
func (s *Sink) subscribe(topic awssns.ITopic, queue awssqs.IQueue, raw bool) {
	topic.AddSubscription(awssnssubscriptions.NewSqsSubscription(queue, &awssnssubscriptions.SqsSubscriptionProps{
		RawMessageDelivery: jsii.Bool(raw),
		DeadLetterQueue:    s.Queues.Dead,
	}))
}

// addRule adds a rule to the bus that sends the events which match the pattern. Events that the
// rule cannot deliver go to the dead-letter queue. The code writes the queue policies itself,
// because CDK's target would allow the rules of any account to send to an encrypted queue.
func (s *Sink) addRule(i int, u Upstream, queue awssqs.IQueue) {
	id := fmt.Sprintf("Upstream%d", i)
	rule := awsevents.NewRule(s.scope, jsii.String(id), &awsevents.RuleProps{
		Description:  jsii.String("lull: sends events to " + s.names().Queue(s.Name, u.lane())),
		EventBus:     u.Bus,
		EventPattern: u.Pattern,
	})
	raw[awsevents.CfnRule](rule).SetTargets([]any{&awsevents.CfnRule_TargetProperty{
		Id: jsii.String("Queue"), Arn: queue.QueueArn(),
		DeadLetterConfig: &awsevents.CfnRule_DeadLetterConfigProperty{Arn: s.Queues.Dead.QueueArn()},
	}})
	for _, q := range []awssqs.IQueue{queue, s.Queues.Dead} {
		maySend(q, id, awsiam.NewServicePrincipal(jsii.String("events.amazonaws.com"), nil), map[string]any{
			"ArnEquals": map[string]any{"aws:SourceArn": rule.RuleArn()},
		})
	}
}

// admit allows a principal to send messages to the queue, and allows nothing else.
func admit(i int, u Upstream, queue awssqs.IQueue) {
	var only map[string]any
	if u.SenderARN != "" {
		only = map[string]any{
			"ArnEquals":    map[string]any{"aws:SourceArn": u.SenderARN},
			"StringEquals": map[string]any{"aws:SourceAccount": awscdk.Aws_ACCOUNT_ID()},
		}
	}
	maySend(queue, fmt.Sprintf("Upstream%d", i), u.Sender, only)
}

func maySend(queue awssqs.IQueue, sid string, who awsiam.IPrincipal, only map[string]any) {
	props := &awsiam.PolicyStatementProps{
		Sid: jsii.String(sid), Principals: &[]awsiam.IPrincipal{who}, Actions: jsii.Strings("sqs:SendMessage"),
		Resources: &[]*string{queue.QueueArn()},
	}
	if only != nil {
		props.Conditions = &only
	}
	queue.AddToResourcePolicy(awsiam.NewPolicyStatement(props))
}
