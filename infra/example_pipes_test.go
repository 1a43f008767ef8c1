// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"time"

	"github.com/lullhq/lull/infra"
)

const at = ":eu-west-1:111122223333:"

// upstreams are an example for infra.Props: a table's stream, a topic of Amazon MSK and a queue of
// RabbitMQ.
func upstreams() []infra.Upstream {
	return []infra.Upstream{
		{Pipe: &infra.Pipe{
			Name:     "items",
			DynamoDB: "arn:aws:dynamodb" + at + "table/items/stream/2026-11-20T00:00:00.000",
		}},
		{Lane: infra.Bulk, Pipe: &infra.Pipe{
			Name:    "pages",
			Kafka:   &infra.Kafka{Cluster: "arn:aws:kafka" + at + "cluster/content/751d2973-2", Topic: "pages"},
			Filters: []string{`{"value":{"type":["page"]}}`},
			Idle:    time.Hour, // an alarm goes off if no event arrived for an hour
		}},
		{Pipe: &infra.Pipe{
			Name: "published",
			RabbitMQ: &infra.Broker{
				ARN: "arn:aws:mq" + at + "broker:cms:b-9bcfa592", Queue: "published",
				SecretARN: "arn:aws:secretsmanager" + at + "secret:cms-broker-AbCdEf",
			},
		}},
	}
}
