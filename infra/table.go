// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
)

// newTable creates the table `shards`, with the billing of the settings and point-in-time recovery.
// The table has one index, which contains only dead letters and scheduled events.
func newTable(scope constructs.Construct, p *Props) awsdynamodb.ITableV2 {
	if name := p.Config.Table.Name; name != "" {
		return awsdynamodb.TableV2_FromTableName(scope, jsii.String("Table"), jsii.String(name))
	}
	text := func(name string) *awsdynamodb.Attribute {
		return &awsdynamodb.Attribute{Name: jsii.String(name), Type: awsdynamodb.AttributeType_STRING}
	}
	encryption := awsdynamodb.TableEncryptionV2_DynamoOwnedKey()
	if p.Key != nil {
		encryption = awsdynamodb.TableEncryptionV2_CustomerManagedKey(p.Key, nil)
	}
	billing, waiting := awsdynamodb.Billing_OnDemand(nil), awsdynamodb.ThroughputProps{}
	if t := p.Config.Table; t.Billing == config.Provisioned {
		billing = awsdynamodb.Billing_Provisioned(&awsdynamodb.ThroughputProps{
			ReadCapacity: autoscaled(t.Reads), WriteCapacity: autoscaled(t.Writes),
		})
		waiting = awsdynamodb.ThroughputProps{
			ReadCapacity: autoscaled(t.Waiting.Reads), WriteCapacity: autoscaled(t.Waiting.Writes),
		}
	}
	return awsdynamodb.NewTableV2(scope, jsii.String("Table"), &awsdynamodb.TablePropsV2{
		TableName:    jsii.String(names.Of(p.Config).Table()),
		PartitionKey: text(dynamodb.PartitionKey),
		GlobalSecondaryIndexes: &[]*awsdynamodb.GlobalSecondaryIndexPropsV2{{
			IndexName:      jsii.String(dynamodb.IndexName),
			PartitionKey:   text(dynamodb.IndexPartition),
			SortKey:        text(dynamodb.IndexSort),
			ProjectionType: awsdynamodb.ProjectionType_ALL,
			ReadCapacity:   waiting.ReadCapacity,
			WriteCapacity:  waiting.WriteCapacity,
			// The index has its own throughput. Writes to a warm table would wait for a cold index.
			WarmThroughput: p.Warm.warm(),
		}},
		Billing:             billing,
		Encryption:          encryption,
		TimeToLiveAttribute: jsii.String(dynamodb.TTLAttribute),
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true),
		},
		WarmThroughput:     p.Warm.warm(),
		DynamoStream:       p.stream(),
		DeletionProtection: jsii.Bool(p.Protect),
		RemovalPolicy:      p.removal(),
		// The tags of the construct do not reach a TableV2.
		Tags: &[]*awscdk.CfnTag{{Key: jsii.String(stackTag), Value: &p.Config.Stack}},
	})
}

// autoscaled returns a capacity that Application Auto Scaling adjusts. After a deploy, the capacity
// is the minimum.
func autoscaled(c config.Capacity) awsdynamodb.Capacity {
	return awsdynamodb.Capacity_Autoscaled(&awsdynamodb.AutoscaledCapacityOptions{
		MinCapacity: jsii.Number(float64(c.Min)), MaxCapacity: jsii.Number(float64(c.Max)),
		TargetUtilizationPercent: jsii.Number(float64(c.Target)),
		// CloudFormation needs SeedCapacity when a table changes from one billing mode to the
		// other.
		SeedCapacity: jsii.Number(float64(c.Min)),
	})
}

// stream says what the table's stream records for a change. The commit feed needs the row before
// and after, because only both together show whether the change was a commit.
func (p *Props) stream() awsdynamodb.StreamViewType {
	if !p.Config.CommitFeed {
		return ""
	}
	return awsdynamodb.StreamViewType_NEW_AND_OLD_IMAGES
}

// warm returns the warm throughput for CDK, or nil if no throughput is set.
func (t Throughput) warm() *awsdynamodb.WarmThroughput {
	if t == (Throughput{}) {
		return nil
	}
	return &awsdynamodb.WarmThroughput{
		ReadUnitsPerSecond: jsii.Number(float64(t.Reads)), WriteUnitsPerSecond: jsii.Number(float64(t.Writes)),
	}
}

// removal says what happens to the resources that hold state when the stack is deleted.
func (p *Props) removal() awscdk.RemovalPolicy {
	if p.Ephemeral {
		return awscdk.RemovalPolicy_DESTROY
	}
	// A failed first deploy deletes what it created. Otherwise the resources would keep their
	// names, and the next deploy would fail because the names are in use.
	return awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE
}
