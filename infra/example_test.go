package infra_test

import (
	"log"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/infra"
)

// A stack of one's own, which publishes to a topic and lets a role send directly.
func ExampleNewLull() {
	defer jsii.Close()
	settings, err := infra.LoadSettings("lull.yaml")
	if err != nil {
		log.Fatal(err)
	}
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, jsii.String("Newsroom"), nil)
	published := awssns.NewTopic(stack, jsii.String("Published"), nil)
	importer := awsiam.NewRole(stack, jsii.String("Importer"), &awsiam.RoleProps{AssumedBy: awsiam.NewAccountRootPrincipal()})
	props := &infra.Props{
		Config:   settings,
		AssetDir: "dist",
		Upstreams: []infra.Upstream{
			{Topic: published},
			{Sender: importer, Lane: infra.Bulk},
		},
	}
	if err := props.Validate(); err != nil {
		log.Fatal(err)
	}
	lull := infra.NewLull(stack, "Lull", props)
	awscdk.NewCfnOutput(stack, jsii.String("Index"), &awscdk.CfnOutputProps{
		Value: lull.Sinks["search"].Functions[infra.Index].Alias.FunctionArn(),
	})
	app.Synth(nil)
}
