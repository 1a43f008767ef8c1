// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/jsii-runtime-go"
)

// privateNetwork makes a network without a way to the internet for Props.Vpc, and the endpoints
// through which index reaches AWS. The sink is in the same network.
func privateNetwork(stack awscdk.Stack) *Vpc {
	vpc := awsec2.NewVpc(stack, jsii.String("Network"), &awsec2.VpcProps{
		MaxAzs: jsii.Number(2),
		SubnetConfiguration: &[]*awsec2.SubnetConfiguration{
			{Name: jsii.String("index"), SubnetType: awsec2.SubnetType_PRIVATE_ISOLATED},
		},
		GatewayEndpoints: &map[string]*awsec2.GatewayVpcEndpointOptions{
			"DynamoDB": {Service: awsec2.GatewayVpcEndpointAwsService_DYNAMODB()},
			"S3":       {Service: awsec2.GatewayVpcEndpointAwsService_S3()},
		},
	})
	vpc.AddInterfaceEndpoint(jsii.String("SQS"), &awsec2.InterfaceVpcEndpointOptions{
		Service: awsec2.InterfaceVpcEndpointAwsService_SQS(),
	})
	vpc.AddInterfaceEndpoint(jsii.String("StepFunctions"), &awsec2.InterfaceVpcEndpointOptions{
		Service: awsec2.InterfaceVpcEndpointAwsService_STEP_FUNCTIONS(),
	})
	vpc.AddInterfaceEndpoint(jsii.String("Secrets"), &awsec2.InterfaceVpcEndpointOptions{ // for a sink with a password
		Service: awsec2.InterfaceVpcEndpointAwsService_SECRETS_MANAGER(),
	})
	group := awsec2.NewSecurityGroup(stack, jsii.String("Index"), &awsec2.SecurityGroupProps{Vpc: vpc})
	network := &Vpc{SecurityGroupIDs: []string{*group.SecurityGroupId()}}
	for _, subnet := range *vpc.IsolatedSubnets() {
		network.SubnetIDs = append(network.SubnetIDs, *subnet.SubnetId())
	}
	return network
}
