package infra_test

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/infra"
)

// Pipes bring a table's stream, a topic of Amazon MSK and a queue of RabbitMQ to the default sink.
func ExamplePipe() {
	settings, err := infra.LoadSettings("lull.yaml")
	if err != nil {
		panic(err)
	}
	const at = ":eu-west-1:111122223333:"
	stack := awscdk.NewStack(awscdk.NewApp(nil), jsii.String("search"), nil)
	infra.NewLull(stack, "Lull", &infra.Props{
		Config:   settings,
		AssetDir: "dist",
		Upstreams: []infra.Upstream{
			{Pipe: &infra.Pipe{
				Name:     "items",
				DynamoDB: "arn:aws:dynamodb" + at + "table/items/stream/2026-11-20T00:00:00.000",
			}},
			{Lane: infra.Bulk, Pipe: &infra.Pipe{
				Name:    "pages",
				Kafka:   &infra.Kafka{Cluster: "arn:aws:kafka" + at + "cluster/content/751d2973-2", Topic: "pages"},
				Filters: []string{`{"value":{"type":["page"]}}`},
				Idle:    time.Hour, // an alarm where nothing came for so long
			}},
			{Pipe: &infra.Pipe{
				Name: "published",
				RabbitMQ: &infra.Broker{
					ARN: "arn:aws:mq" + at + "broker:cms:b-9bcfa592", Queue: "published",
					SecretARN: "arn:aws:secretsmanager" + at + "secret:cms-broker-AbCdEf",
				},
			}},
		},
	})
}
