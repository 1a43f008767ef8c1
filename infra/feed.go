// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awspipes"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
	"github.com/lullhq/lull/internal/seam/commitfeed"
)

// feedBatch is how many changes the pipe reads at once. A bus accepts no more in one request, and
// the pipe does not call its target with more.
const feedBatch = 10

// newFeed makes the commit feed: a pipe that reads the table's stream and sends commits to a bus.
// On the way, a function drops all other changes.
func (l *Lull) newFeed(code awslambda.Code) {
	p, n := l.props, names.Of(l.props.Config)
	log := awslogs.NewLogGroup(l.Construct, jsii.String("FeedLog"), &awslogs.LogGroupProps{
		LogGroupName: jsii.String("/aws/lambda/" + n.Feed()), Retention: p.logRetention(),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	const purpose = "lull: tells commits from the other changes of rows"
	role := newRole(l.Construct, "FeedRole", purpose,
		awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil), []right{{
			sid: "Log", actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"},
			resources: []string{arn("logs", "log-group:/aws/lambda/"+n.Feed()+":*")},
		}})
	fn := awslambda.NewFunction(l.Construct, jsii.String("Feed"), &awslambda.FunctionProps{
		FunctionName: jsii.String(n.Feed()), Description: jsii.String(purpose),
		Runtime: awslambda.Runtime_PROVIDED_AL2023(), Architecture: p.lambdaArchitecture(),
		Handler: jsii.String(release.Program), Code: code, Role: role, LogGroup: log,
		MemorySize: jsii.Number(128), Timeout: awscdk.Duration_Seconds(jsii.Number(10)),
	})
	bus := arn("events", "event-bus/default")
	if p.CommitBus != nil {
		bus = *p.CommitBus.EventBusArn()
	}
	table, ok := l.Table.(awsdynamodb.TableV2)
	if !ok {
		panic("commitFeed without a table of the stack's own") // Validate refuses this combination
	}
	stream := *table.TableStreamArn()
	// The pipe writes the changes that it could not send to a queue, which keeps them for
	// formerDays. No function of lull reads that queue.
	lostProps := p.queue("", formerDays*24*time.Hour, deadVisibility)
	lostProps.QueueName, lostProps.RemovalPolicy = nil, awscdk.RemovalPolicy_DESTROY
	lost := awssqs.NewQueue(l.Construct, jsii.String("FeedLost"), lostProps)
	pipe := piping{
		name: jsii.String(n.Feed()), says: "lull: reads the table's stream and tells commits to a bus",
		rights: append(append(readsStream(stream),
			right{sid: "Tell", actions: []string{"lambda:InvokeFunction"}, resources: []string{*fn.FunctionArn()}},
			right{sid: "Send", actions: []string{"events:PutEvents"}, resources: []string{bus}},
			right{sid: "GiveUp", actions: []string{"sqs:SendMessage"}, resources: arns(lost)},
		), append(l.key("ReadKey", decrypts, "dynamodb"), l.key("UseKey", seals, "sqs")...)...),
		source: stream, filters: []string{commitfeed.Pattern},
		from: &awspipes.CfnPipe_PipeSourceParametersProperty{
			DynamoDbStreamParameters: &awspipes.CfnPipe_PipeSourceDynamoDBStreamParametersProperty{
				// The feed does not report commits that were made before the pipe existed.
				StartingPosition: jsii.String(string(Newest)), BatchSize: jsii.Number(feedBatch),
				// A batch that fails is split. Otherwise one bad change would block its shard for a
				// day.
				OnPartialBatchItemFailure: jsii.String("AUTOMATIC_BISECT"),
				// This is less than the 24 hours after which the stream deletes its records.
				MaximumRecordAgeInSeconds: jsii.Number(pipeMaxAge.Seconds()),
				ParallelizationFactor:     jsii.Number(max(p.FeedParallel, 1)),
				DeadLetterConfig:          &awspipes.CfnPipe_DeadLetterConfigProperty{Arn: lost.QueueArn()},
			},
		},
		enrichment: fn.FunctionArn(), target: bus,
		to: &awspipes.CfnPipe_PipeTargetParametersProperty{
			EventBridgeEventBusParameters: &awspipes.CfnPipe_PipeTargetEventBridgeEventBusParametersProperty{
				Source: jsii.String(commitfeed.Source), DetailType: jsii.String(commitfeed.DetailType),
			},
		},
	}.create(l.Construct, "Feed")
	scope := constructs.NewConstruct(l.Construct, jsii.String("FeedAlarms"))
	for _, a := range alarms.OfPipe(*pipe.Ref(), 0) {
		l.alarm(scope, "lull "+p.Config.Stack+", commit feed", n.Alarm("", a.Kind)+"-feed", a)
	}
}
