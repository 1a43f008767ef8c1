// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/deploy/names"
)

// newPruneRules starts prune at its interval, and once after a deploy of this stack. A failed run
// is not retried, because the next one follows soon. prune itself prevents two runs at a time.
func (s *Sink) newPruneRules() {
	prune := s.Functions[names.Prune].Alias
	prune.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
		RetryAttempts: jsii.Number(0),
		MaxEventAge:   seconds(s.lull.props.Config.Lifecycle.PruneEvery),
	})
	target := awseventstargets.NewLambdaFunction(prune, &awseventstargets.LambdaFunctionProps{
		RetryAttempts: jsii.Number(0),
		MaxEventAge:   seconds(s.lull.props.Config.Lifecycle.PruneEvery),
	})
	awsevents.NewRule(s.scope, jsii.String("PruneRule"), &awsevents.RuleProps{
		RuleName:    jsii.String(s.names().Function(s.Name, names.Prune)),
		Description: jsii.String("lull: runs prune"),
		Schedule: awsevents.Schedule_Rate(awscdk.Duration_Minutes(
			jsii.Number(s.lull.props.Config.Lifecycle.PruneEvery.Minutes()))),
		Targets: &[]awsevents.IRuleTarget{target},
	})
	// An event of CloudFormation starts prune. So a deploy neither waits for prune nor fails if
	// prune fails.
	awsevents.NewRule(s.scope, jsii.String("FirstPruneRule"), &awsevents.RuleProps{
		RuleName:    jsii.String(s.names().FirstRule(s.Name)),
		Description: jsii.String("lull: runs prune when a deploy is complete"),
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings("aws.cloudformation"),
			DetailType: jsii.Strings("CloudFormation Stack Status Change"),
			Detail: &map[string]any{
				"stack-id":       []any{awscdk.Aws_STACK_ID()},
				"status-details": map[string]any{"status": []any{"CREATE_COMPLETE", "UPDATE_COMPLETE"}},
			},
		},
		Targets: &[]awsevents.IRuleTarget{target},
	})
}
