// SPDX-License-Identifier: Apache-2.0

package infra

import (
	_ "embed" // flight.asl.json
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/stepfunctions"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
)

//go:embed flight.asl.json
var definition string

// machineKinds are the types of state machines. Both always exist, because the type of an existing
// state machine cannot be changed. Each flight uses the type that suits its wait.
var machineKinds = []config.FlightKind{config.FlightExpress, config.FlightStandard}

// newMachines makes the state machines that start the turns of a sink's flights. The definition of
// the machines is in the template, so that linters see it. The machines log failed executions. They
// never log the data of a state, although a state contains no documents.
func (s *Sink) newMachines() {
	p := s.lull.props
	log := awslogs.NewLogGroup(s.scope, jsii.String("MachineLog"), &awslogs.LogGroupProps{
		LogGroupName:  jsii.String(s.names().StateMachineLog(s.Name)),
		Retention:     p.logRetention(),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	index := s.Functions[names.Index].Alias.FunctionArn()
	role := newRole(s.scope, "MachineRole", "lull: invokes index when a flight is due", service("states.amazonaws.com"),
		[]right{
			{sid: "Turn", actions: []string{"lambda:InvokeFunction"}, resources: []string{*index}},
			// AWS does not grant log delivery on single resources.
			{sid: "DeliverLogs", actions: []string{
				"logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups",
				"logs:DescribeResourcePolicies", "logs:GetLogDelivery",
				"logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
			}, resources: anything},
		})
	for _, kind := range machineKinds {
		s.Machines[kind] = s.newMachine(kind, role, log, *index)
	}
}

func (s *Sink) newMachine(kind config.FlightKind, role awsiam.Role, log awslogs.LogGroup,
	index string,
) awsstepfunctions.CfnStateMachine {
	text, err := stepfunctions.Render(definition, stepfunctions.ParametersFor(s.lull.props.Config, s.Name, kind,
		*awscdk.Aws_PARTITION(), index))
	if err != nil {
		panic(fmt.Errorf("state machine of sink %s: %w", s.Name, err)) // the file is part of the program
	}
	m := awsstepfunctions.NewCfnStateMachine(s.scope, jsii.String("Machine-"+string(kind)),
		&awsstepfunctions.CfnStateMachineProps{
			StateMachineName: jsii.String(s.names().StateMachine(s.Name, kind)),
			StateMachineType: jsii.String(strings.ToUpper(string(kind))),
			RoleArn:          role.RoleArn(),
			DefinitionString: jsii.String(text),
			LoggingConfiguration: &awsstepfunctions.CfnStateMachine_LoggingConfigurationProperty{
				Level:                jsii.String("ERROR"),
				IncludeExecutionData: jsii.Bool(false),
				Destinations: []any{&awsstepfunctions.CfnStateMachine_LogDestinationProperty{
					CloudWatchLogsLogGroup: &awsstepfunctions.CfnStateMachine_CloudWatchLogsLogGroupProperty{
						LogGroupArn: log.LogGroupArn(),
					},
				}},
			},
		})
	m.ApplyRemovalPolicy(awscdk.RemovalPolicy_DESTROY, nil)
	return m
}
