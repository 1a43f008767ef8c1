package infra

import (
	_ "embed" // flight.asl.json
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/stepfunctions"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/names"
)

//go:embed flight.asl.json
var definition string

// newMachine is the state machine that times a sink's flights. Its definition stands in the
// template, where linters see it. It logs failed executions and never their data, although states
// carry no documents.
func (s *Sink) newMachine() {
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
			// Log delivery belongs to no resource.
			{sid: "DeliverLogs", actions: []string{
				"logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups",
				"logs:DescribeResourcePolicies", "logs:GetLogDelivery",
				"logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
			}, resources: anything},
		})
	text, err := stepfunctions.Render(definition, stepfunctions.ParametersFor(p.Config, s.Name,
		*awscdk.Aws_PARTITION(), *index))
	if err != nil {
		panic(fmt.Errorf("state machine of sink %s: %w", s.Name, err)) // the file is part of the program
	}
	s.Machine = awsstepfunctions.NewCfnStateMachine(s.scope, jsii.String("Machine"),
		&awsstepfunctions.CfnStateMachineProps{
			StateMachineName: jsii.String(s.names().StateMachine(s.Name)),
			StateMachineType: jsii.String(machineType(p.Config)),
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
	s.Machine.ApplyRemovalPolicy(awscdk.RemovalPolicy_DESTROY, nil)
}

func machineType(c *config.Config) string {
	if c.Flight.Kind == config.FlightStandard {
		return "STANDARD"
	}
	return "EXPRESS"
}
