// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/config"
)

// laneFaults lists where a lane's queue differs from the settings, with the fix for each. It skips
// attributes that SQS does not return. dead is the name of the dead-letter queue.
func laneFaults(cfg *config.Config, name, dead string, has map[string]string) []string {
	var faults []string
	want := func(attribute types.QueueAttributeName, value int64) {
		if got, known := has[string(attribute)]; known && got != strconv.FormatInt(value, 10) {
			faults = append(faults, fmt.Sprintf("queue %s has %s %s: set it to %d", name, attribute, got, value))
		}
	}
	want(types.QueueAttributeNameVisibilityTimeout, int64(cfg.Queues.Visibility.Seconds()))
	want(types.QueueAttributeNameMessageRetentionPeriod, int64(cfg.Queues.Retention.Seconds()))
	if _, known := has[string(types.QueueAttributeNameVisibilityTimeout)]; !known {
		return faults // SQS returned no attributes, so a missing policy proves nothing
	}
	var policy struct {
		DeadLetterTargetArn string          `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.RawMessage `json:"maxReceiveCount"`
	}
	text := has[string(types.QueueAttributeNameRedrivePolicy)]
	_ = json.Unmarshal([]byte(text), &policy) // a text that is not JSON names no queue
	target, _ := arn.Parse(policy.DeadLetterTargetArn)
	count := strings.Trim(string(policy.MaxReceiveCount), `"`)
	if target.Resource != dead || count != strconv.Itoa(cfg.Retry.MaxReceiveCount()) {
		faults = append(faults, fmt.Sprintf(
			"queue %s has the RedrivePolicy %q: set it to queue %s, with a maxReceiveCount of %d",
			name, text, dead, cfg.Retry.MaxReceiveCount()))
	}
	return faults
}

// tableFaults lists where the key, the index or the expiry of a table differs from what lull needs.
// If AWS does not describe the table, that is the only fault.
func tableFaults(ctx context.Context, client *awsdynamodb.Client, name string) []string {
	got, err := described(ctx, client, name)
	if err != nil {
		return []string{"table " + name + " cannot be described: " + short(err)}
	}
	var faults []string
	want := dynamodb.Definition(name)
	if !sameKey(got.KeySchema, want.KeySchema) {
		faults = append(faults, fmt.Sprintf("table %s has a wrong key: make a table with the partition key %s, a string, "+
			"and no sort key", name, dynamodb.PartitionKey))
	}
	fits := false
	for _, index := range got.GlobalSecondaryIndexes {
		fits = fits || aws.ToString(index.IndexName) == dynamodb.IndexName && index.Projection != nil &&
			index.Projection.ProjectionType == ddbtypes.ProjectionTypeAll &&
			sameKey(index.KeySchema, want.GlobalSecondaryIndexes[0].KeySchema)
	}
	if !fits {
		faults = append(faults, fmt.Sprintf(
			"table %s lacks the index %s: add it with the partition key %s, the sort key %s, both strings, and all attributes",
			name, dynamodb.IndexName, dynamodb.IndexPartition, dynamodb.IndexSort))
	}
	expiry, err := client.DescribeTimeToLive(ctx, &awsdynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		return append(faults, "the expiry of table "+name+" cannot be described: "+short(err))
	}
	if ttl := expiry.TimeToLiveDescription; ttl == nil || aws.ToString(ttl.AttributeName) != dynamodb.TTLAttribute {
		faults = append(faults, fmt.Sprintf("table %s never deletes rows: set its time to live to the attribute %s", name,
			dynamodb.TTLAttribute))
	}
	return faults
}

func described(ctx context.Context, client *awsdynamodb.Client, name string) (*ddbtypes.TableDescription, error) {
	out, err := client.DescribeTable(ctx, &awsdynamodb.DescribeTableInput{TableName: &name})
	if err == nil && out.Table == nil {
		err = errors.New("the answer has no table")
	}
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

// sameKey reports whether two keys have the same parts, in any order.
func sameKey(got, want []ddbtypes.KeySchemaElement) bool {
	kinds := func(key []ddbtypes.KeySchemaElement) map[string]ddbtypes.KeyType {
		all := map[string]ddbtypes.KeyType{}
		for _, k := range key {
			all[aws.ToString(k.AttributeName)] = k.KeyType
		}
		return all
	}
	return maps.Equal(kinds(got), kinds(want))
}

// short returns the text of an AWS error, without its request id.
func short(err error) string {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		return answer.ErrorCode() + ": " + answer.ErrorMessage()
	}
	return err.Error()
}
