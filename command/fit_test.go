// SPDX-License-Identifier: Apache-2.0

package command

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/aws/dynamodb"
)

// `lull status` and `lull doctor` name the faults of a table and of queues that another program
// made.
func TestQueuesAndTablesThatDoNotFitAreNamed(t *testing.T) {
	t.Parallel()
	key := []map[string]string{{"AttributeName": dynamodb.PartitionKey, "KeyType": "HASH"}}
	index := []map[string]any{{
		"IndexName": dynamodb.IndexName, "Projection": map[string]string{"ProjectionType": "ALL"},
		"KeySchema": []map[string]string{
			{"AttributeName": dynamodb.IndexPartition, "KeyType": "HASH"},
			{"AttributeName": dynamodb.IndexSort, "KeyType": "RANGE"},
		},
	}}
	table := func(change map[string]any) awstest.Reply {
		all := map[string]any{"TableName": "shop-shards", "KeySchema": key, "GlobalSecondaryIndexes": index}
		maps.Copy(all, change)
		return awstest.Reply{Body: map[string]any{"Table": all}}
	}
	expiry := awstest.Reply{Body: map[string]any{"TimeToLiveDescription": map[string]string{
		"AttributeName": dynamodb.TTLAttribute, "TimeToLiveStatus": "ENABLED",
	}}}
	queue := func(change map[string]string) awstest.Reply {
		all := map[string]string{
			"VisibilityTimeout": "40", "MessageRetentionPeriod": "604800",
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:shop-search-dead","maxReceiveCount":"456"}`,
		}
		maps.Copy(all, change)
		return awstest.Reply{Body: map[string]any{"Attributes": all}}
	}
	for _, tt := range []struct {
		name    string
		answers map[string]awstest.Reply
		says    []string
	}{
		{"all fit", nil, nil},
		{
			"another key",
			map[string]awstest.Reply{"DescribeTable": table(map[string]any{
				"KeySchema": []map[string]string{{"AttributeName": "id", "KeyType": "HASH"}},
			})},
			[]string{"table shop-shards has a wrong key: make a table with the partition key doc"},
		},
		{
			"a sort key",
			map[string]awstest.Reply{"DescribeTable": table(map[string]any{
				"KeySchema": append([]map[string]string{{"AttributeName": "x", "KeyType": "RANGE"}}, key...),
			})},
			[]string{"has a wrong key"},
		},
		{
			"no index",
			map[string]awstest.Reply{"DescribeTable": table(map[string]any{"GlobalSecondaryIndexes": nil})},
			[]string{"lacks the index waiting"},
		},
		{
			"no expiry",
			map[string]awstest.Reply{"DescribeTimeToLive": {Body: map[string]any{}}},
			[]string{"set its time to live to the attribute expires_at"},
		},
		{
			"the table may not be described",
			map[string]awstest.Reply{"DescribeTable": awstest.Failure(400, "AccessDeniedException", "no")},
			[]string{"cannot be described: AccessDeniedException: no"},
		},
		{
			"visibility",
			map[string]awstest.Reply{"GetQueueAttributes": queue(map[string]string{"VisibilityTimeout": "30"})},
			[]string{"queue shop-search-live has VisibilityTimeout 30: set it to 40", "queue shop-search-bulk has"},
		},
		{
			"retention",
			map[string]awstest.Reply{"GetQueueAttributes": queue(map[string]string{"MessageRetentionPeriod": "60"})},
			[]string{"MessageRetentionPeriod 60: set it to 604800"},
		},
		{
			"no dead-letter queue",
			map[string]awstest.Reply{"GetQueueAttributes": queue(map[string]string{"RedrivePolicy": ""})},
			[]string{"set it to queue shop-search-dead, with a maxReceiveCount of 456"},
		},
		{
			"too few receives",
			map[string]awstest.Reply{"GetQueueAttributes": queue(map[string]string{
				"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:shop-search-dead","maxReceiveCount":5}`,
			})},
			[]string{"with a maxReceiveCount of 456"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answers := map[string]awstest.Reply{
				"DescribeTable": table(nil), "DescribeTimeToLive": expiry, "GetQueueAttributes": queue(nil),
			}
			maps.Copy(answers, tt.answers)
			a := newAccount(t, answers)
			got := a.ask(t, "status")
			if got.code != exitOK || strings.Contains(got.out, "WRONG") != (len(tt.says) > 0) {
				t.Errorf("exit %d\n%s%s", got.code, got.out, got.errors)
			}
			for _, want := range tt.says {
				if !strings.Contains(got.out, want) {
					t.Errorf("%q is missing in\n%s", want, got.out)
				}
			}
			want := "ok"
			if len(tt.says) > 0 {
				want = "BAD"
			}
			line := regexp.MustCompile(want + ` +queues and table are as the settings want them`)
			if doctor := a.ask(t, "doctor"); !line.MatchString(doctor.out) {
				t.Errorf("doctor says\n%s", doctor.out)
			}
		})
	}
}
