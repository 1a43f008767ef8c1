// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/deploy/names"
)

// Rollout says how a deploy replaces the code of the functions.
type Rollout string

// The rollouts. Each function gets its new code at once, or CodeDeploy shifts its invocations.
const (
	AtOnce    Rollout = "at-once"
	Canary5m  Rollout = "canary-5m" // a tenth of the invocations for five minutes, then all
	Canary15m Rollout = "canary-15m"
	Canary30m Rollout = "canary-30m"
	Linear1m  Rollout = "linear-1m" // a tenth more each minute
	Linear3m  Rollout = "linear-3m"
	Linear10m Rollout = "linear-10m"
)

// deployConfigs are CodeDeploy's names of the rollouts.
var deployConfigs = map[Rollout]string{
	Canary5m:  "CodeDeployDefault.LambdaCanary10Percent5Minutes",
	Canary15m: "CodeDeployDefault.LambdaCanary10Percent15Minutes",
	Canary30m: "CodeDeployDefault.LambdaCanary10Percent30Minutes",
	Linear1m:  "CodeDeployDefault.LambdaLinear10PercentEvery1Minute",
	Linear3m:  "CodeDeployDefault.LambdaLinear10PercentEvery3Minutes",
	Linear10m: "CodeDeployDefault.LambdaLinear10PercentEvery10Minutes",
}

// shifts reports whether CodeDeploy shifts the invocations.
func (r Rollout) shifts() bool { return r != "" && r != AtOnce }

// known reports whether the rollout is one of the constants, or empty.
func (r Rollout) known() bool { return !r.shifts() || deployConfigs[r] != "" }

// rollouts lists the values of a Rollout.
func rollouts() string {
	return string(AtOnce) + ", " + strings.Join(every(slices.Sorted(maps.Keys(deployConfigs)),
		func(r Rollout) string { return string(r) }), ", ")
}

// backed are the alarms of a sink that end a rollout. New code can cause them. CodeDeploy takes at
// most ten.
var backed = []string{
	"configuration-errors", "dead-kept", "failing", "flights-failed", "function-errors", "launch-lost", "lease-lost",
	"panics", "sink-newer", "unknown-schema",
}

// newRollouts makes CodeDeploy shift the aliases of all functions. If an alarm goes off meanwhile,
// CodeDeploy shifts them back, and CloudFormation rolls the deploy back.
func (l *Lull) newRollouts() {
	app := awscodedeploy.NewCfnApplication(l.Construct, jsii.String("Rollout"), &awscodedeploy.CfnApplicationProps{
		ApplicationName: jsii.String(l.props.Config.Stack), ComputePlatform: jsii.String("Lambda"),
	})
	for _, sink := range sinkNames(l.props.Config) {
		l.Sinks[sink].newRollouts(app)
	}
}

func (s *Sink) newRollouts(app awscodedeploy.CfnApplication) {
	var functions, versions []string
	for _, f := range names.Functions() {
		of := *s.Functions[f].Function.FunctionArn()
		functions, versions = append(functions, of), append(versions, of+":*")
	}
	role := newRole(s.scope, "RolloutRole", "lull: shifts the functions to their new code",
		service("codedeploy.amazonaws.com"), []right{
			{
				sid: "ReadAlarms", actions: []string{"cloudwatch:DescribeAlarms"},
				resources: every(backed, func(kind string) string {
					return arn("cloudwatch", "alarm:"+s.names().Alarm(s.Name, kind))
				}),
			},
			{sid: "ShiftAliases", actions: []string{"lambda:GetAlias", "lambda:UpdateAlias"}, resources: functions},
			{sid: "ReadConcurrency", actions: []string{"lambda:GetProvisionedConcurrencyConfig"}, resources: versions},
		})
	for _, f := range names.Functions() {
		s.newRollout(f, app, *role.RoleArn())
	}
}

func (s *Sink) newRollout(f names.Function, app awscodedeploy.CfnApplication, role string) {
	group := awscodedeploy.NewCfnDeploymentGroup(s.scope, jsii.String(title(string(f))+"Rollout"),
		&awscodedeploy.CfnDeploymentGroupProps{
			ApplicationName:      app.Ref(),
			DeploymentGroupName:  jsii.String(s.Name + "-" + string(f)),
			DeploymentConfigName: jsii.String(deployConfigs[s.lull.props.Rollout]),
			ServiceRoleArn:       &role,
			DeploymentStyle: &awscodedeploy.CfnDeploymentGroup_DeploymentStyleProperty{
				DeploymentType: jsii.String("BLUE_GREEN"), DeploymentOption: jsii.String("WITH_TRAFFIC_CONTROL"),
			},
			AutoRollbackConfiguration: &awscodedeploy.CfnDeploymentGroup_AutoRollbackConfigurationProperty{
				Enabled: jsii.Bool(true),
				Events:  jsii.Strings("DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_STOP_ON_REQUEST"),
			},
			AlarmConfiguration: &awscodedeploy.CfnDeploymentGroup_AlarmConfigurationProperty{
				Enabled: jsii.Bool(true),
				Alarms: every(backed, func(kind string) any {
					name := s.names().Alarm(s.Name, kind)
					return &awscodedeploy.CfnDeploymentGroup_AlarmProperty{Name: &name}
				}),
			},
		})
	// CodeDeploy ends a rollout if an alarm does not exist.
	group.Node().AddDependency(every(backed, func(kind string) constructs.IDependable {
		return s.scope.Node().FindChild(jsii.String("Alarm-" + kind))
	})...)
	raw[awslambda.CfnAlias](s.Functions[f].Alias).CfnOptions().SetUpdatePolicy(&awscdk.CfnUpdatePolicy{
		CodeDeployLambdaAliasUpdate: &awscdk.CfnCodeDeployLambdaAliasUpdate{
			ApplicationName: app.Ref(), DeploymentGroupName: group.Ref(),
		},
	})
}
