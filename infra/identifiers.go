// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
)

// Identifiers returns what CloudFormation calls each resource that outlives its stack, by logical
// id, in an account and region. `cdk import --resource-mapping` reads this as a file.
// CloudFormation identifies a queue by its URL, which no template can contain. So
// `--import-existing-resources` does not find queues, and an import needs the identifiers.
func (l *Lull) Identifiers(account, region string) map[string]map[string]string {
	n, all := names.Of(l.props.Config), make(map[string]map[string]string)
	put := func(of awscdk.CfnElement, property, value string) {
		all[*awscdk.Stack_Of(l.Construct).GetLogicalId(of)] = map[string]string{property: value}
	}
	if l.props.Config.Table.Name == "" {
		put(raw[awsdynamodb.CfnGlobalTable](l.Table), "TableName", n.Table())
	}
	put(raw[awss3.CfnBucket](l.Bucket), "BucketName", n.Bucket(account, region))
	host := "https://sqs." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		host += ".cn"
	}
	for name, s := range l.Sinks {
		put(raw[awssqs.CfnQueue](s.Queues.Dead), "QueueUrl", host+"/"+account+"/"+n.DeadQueue(name))
		for _, lane := range s.ownLanes() {
			put(raw[awssqs.CfnQueue](s.Queues.Of(lane)), "QueueUrl", host+"/"+account+"/"+n.Queue(name, lane))
		}
	}
	return all
}

// ownLanes lists the lanes whose queues the stack creates.
func (s *Sink) ownLanes() []flight.Lane {
	if s.lull.props.Config.Sinks[s.Name].LiveQueue != "" {
		return []flight.Lane{flight.Bulk}
	}
	return []flight.Lane{flight.Live, flight.Bulk}
}

// policies reports whether the queues and the bucket have policies that demand TLS. Those policies
// are deleted with a stack, so an import would not find them.
func (p *Props) policies() bool { return !p.PlainHTTP && !p.StateOnly }
