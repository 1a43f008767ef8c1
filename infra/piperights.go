// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"strings"
)

// readsStream is the right to read a stream of DynamoDB.
func readsStream(arn string) []right {
	return []right{
		{
			sid: "ReadStream", actions: []string{
				"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator",
			},
			resources: []string{arn},
		},
		{sid: "ListStreams", actions: []string{"dynamodb:ListStreams"}, resources: anything},
	}
}

// rights returns the rights that AWS documents for the pipe's source, and no other rights:
// https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-pipes-permissions.html
func (p *Pipe) rights() []right {
	var all []right
	switch k := p.Kafka; {
	case p.DynamoDB != "":
		return readsStream(p.DynamoDB)
	case p.Kinesis != "":
		return readsKinesis(p.Kinesis)
	case k != nil && k.Cluster != "":
		all = append(all, right{
			sid: "FindCluster", actions: []string{"kafka:DescribeClusterV2"}, resources: []string{k.Cluster},
		}, right{
			sid: "FindBrokers", actions: []string{"kafka:GetBootstrapBrokers"}, resources: anything,
		}, networkRights())
		if k.SecretARN == "" {
			all = append(all, k.readsTopic())
		}
	case k != nil:
		if k.Vpc != nil {
			all = append(all, networkRights())
		}
	case p.broker() != nil:
		all = append(all, right{
			sid: "FindBroker", actions: []string{"mq:DescribeBroker"}, resources: []string{p.broker().ARN},
		}, networkRights())
	}
	return append(all, right{
		sid: "ReadPassword", actions: []string{"secretsmanager:GetSecretValue"}, resources: p.secrets(),
	}, right{
		// AWS documents neither the name of the log group nor that of its stream.
		sid: "WriteLog", actions: []string{"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"},
		resources: []string{arn("logs", "log-group:*")},
	})
}

// readsKinesis is the right to read a stream of Kinesis. A consumer's ARN begins with the ARN of
// its stream.
func readsKinesis(source string) []right {
	stream, _, consumer := strings.Cut(source, "/consumer/")
	all := []right{
		{
			sid: "ReadStream", actions: []string{
				"kinesis:DescribeStream", "kinesis:DescribeStreamSummary", "kinesis:GetRecords", "kinesis:GetShardIterator",
				"kinesis:ListShards",
			},
			resources: []string{stream},
		},
		{sid: "ListStreams", actions: []string{"kinesis:ListStreams"}, resources: anything},
	}
	if consumer {
		all = append(all, right{sid: "Subscribe", actions: []string{"kinesis:SubscribeToShard"}, resources: []string{source}})
	}
	return all
}

// readsTopic is the right to read the topic, for a pipe that logs in with its role. The ARNs of
// topics and groups contain the cluster's name and id.
func (k *Kafka) readsTopic() right {
	within := func(kind, name string) string {
		return strings.Replace(k.Cluster, ":cluster/", ":"+kind+"/", 1) + "/" + name
	}
	return right{
		sid: "ReadTopic", actions: []string{
			"kafka-cluster:AlterGroup", "kafka-cluster:Connect", "kafka-cluster:DescribeClusterDynamicConfiguration",
			"kafka-cluster:DescribeGroup", "kafka-cluster:DescribeTopic", "kafka-cluster:ReadData",
		},
		resources: []string{k.Cluster, within("topic", k.Topic), within("group", cmp.Or(k.Group, "*"))},
	}
}

// networkRights returns the rights on the network interfaces through which a pipe reaches brokers
// in a VPC.
func networkRights() right {
	return right{
		sid: "NetworkInterface", actions: []string{
			"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces",
			"ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs",
		}, resources: anything,
	}
}
