// SPDX-License-Identifier: Apache-2.0

// Stack synthesises a stack of lull with the kinds of this module. `cdk deploy --app` runs this
// program, in a folder with lull.yaml and dist.
package main

import (
	"flag"
	"log"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/infra"

	_ "example.org/outoftree/ndjson"
	_ "example.org/outoftree/wiki"
)

func main() {
	bucket := flag.String("bucket", "", "the `NAME` of the bucket that sinks.lake.url names")
	trial := flag.Bool("trial", false, "delete all resources together with the stack")
	flag.Parse()
	defer jsii.Close()
	settings, err := infra.LoadSettings("lull.yaml")
	if err != nil {
		log.Fatal(err)
	}
	props := &infra.Props{Config: settings, AssetDir: "dist", Ephemeral: *trial}
	if err := props.Validate(); err != nil {
		log.Fatal(err)
	}
	app := awscdk.NewApp(nil)
	stack := awscdk.NewStack(app, &settings.Stack, nil)
	lull := infra.NewLull(stack, "Lull", props)
	lake := awss3.Bucket_FromBucketName(stack, jsii.String("Lake"), bucket)
	lake.GrantReadWrite(lull.Sinks["lake"].Functions[infra.Index].Function, nil)
	app.Synth(nil)
}
