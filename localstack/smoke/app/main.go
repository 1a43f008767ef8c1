// Command app is the small CDK app of the smoke check: one function, one queue, one event source
// mapping. It shows that the pinned CDK CLI bootstraps, uploads assets and deploys to the emulator.
package main

import (
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	defer jsii.Close()

	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, jsii.String("LullSmoke"), &awscdk.StackProps{Env: &awscdk.Environment{
		Account: jsii.String(os.Getenv("CDK_DEFAULT_ACCOUNT")),
		Region:  jsii.String(os.Getenv("CDK_DEFAULT_REGION")),
	}})
	queue := awssqs.NewQueue(stack, jsii.String("Queue"), &awssqs.QueueProps{
		EnforceSSL:        jsii.Bool(false), // the emulator's endpoint is plain http
		VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(30)),
		RemovalPolicy:     awscdk.RemovalPolicy_DESTROY,
	})
	function := awslambda.NewFunction(stack, jsii.String("Function"), &awslambda.FunctionProps{
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: awslambda.Architecture_ARM_64(),
		Handler:      jsii.String("bootstrap"),
		// A folder with the file bootstrap; smoke.sh builds it.
		Code:        awslambda.Code_FromAsset(jsii.String(os.Getenv("SMOKE_CODE")), nil),
		Timeout:     awscdk.Duration_Seconds(jsii.Number(5)),
		Environment: &map[string]*string{"SMOKE_SETTING": queue.QueueUrl()},
	})
	function.AddEventSource(awslambdaeventsources.NewSqsEventSource(queue, &awslambdaeventsources.SqsEventSourceProps{
		BatchSize:               jsii.Number(10),
		ReportBatchItemFailures: jsii.Bool(true),
	}))
	awscdk.NewCfnOutput(stack, jsii.String("OutQueue"),
		&awscdk.CfnOutputProps{Value: queue.QueueUrl()}).OverrideLogicalId(jsii.String("Queue"))
	awscdk.NewCfnOutput(stack, jsii.String("OutFunction"),
		&awscdk.CfnOutputProps{Value: function.FunctionName()}).OverrideLogicalId(jsii.String("Function"))
	app.Synth(nil)
}
