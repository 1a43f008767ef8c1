package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awspipes"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/commitfeed"
	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/release"
)

// feedBatch is how many changes the pipe takes at once: a bus takes no more, and a pipe that would
// hand on more calls no target.
const feedBatch = 10

// newFeed is the commit feed: a pipe from the table's stream, through the function that tells
// commits from other changes, to a bus.
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
		panic("commitFeed without a table of the stack's own") // Validate refuses that
	}
	stream := *table.TableStreamArn()
	piping{
		name: jsii.String(n.Feed()), says: "lull: reads the table's stream and tells commits to a bus",
		rights: append(append(readsStream(stream),
			right{sid: "Tell", actions: []string{"lambda:InvokeFunction"}, resources: []string{*fn.FunctionArn()}},
			right{sid: "Send", actions: []string{"events:PutEvents"}, resources: []string{bus}},
		), l.key("ReadKey", decrypts, "dynamodb")...),
		source: stream, filters: []string{commitfeed.Pattern},
		from: &awspipes.CfnPipe_PipeSourceParametersProperty{
			DynamoDbStreamParameters: &awspipes.CfnPipe_PipeSourceDynamoDBStreamParametersProperty{
				// What was committed before the pipe was there is nobody's news.
				StartingPosition: jsii.String(string(Newest)), BatchSize: jsii.Number(feedBatch),
				// One batch that cannot be told must not hold its shard for a day.
				OnPartialBatchItemFailure: jsii.String("AUTOMATIC_BISECT"),
			},
		},
		enrichment: fn.FunctionArn(), target: bus,
		to: &awspipes.CfnPipe_PipeTargetParametersProperty{
			EventBridgeEventBusParameters: &awspipes.CfnPipe_PipeTargetEventBridgeEventBusParametersProperty{
				Source: jsii.String(commitfeed.Source), DetailType: jsii.String(commitfeed.DetailType),
			},
		},
	}.in(l.Construct, "Feed")
}
