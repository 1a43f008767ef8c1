package infra

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/commitfeed"
)

func TestTheCommitFeedIsAPipeFromTheTableToABus(t *testing.T) {
	t.Parallel()
	s := stackOf(t, feedStack)
	s.same(t, "table", s.named(t, "AWS::DynamoDB::GlobalTable", "TableName", "feed-shards"), map[string]any{
		"StreamSpecification.StreamViewType": "NEW_AND_OLD_IMAGES",
	})
	pipe := s.named(t, "AWS::Pipes::Pipe", "Name", "feed-feed")
	s.same(t, "pipe", pipe, map[string]any{
		"Source": "{globaltable feed-shards}.StreamArn", "Enrichment": "{function feed-feed}",
		"Target":  "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/default",
		"RoleArn": "{feed/Lull/FeedPipeRole}",
		"SourceParameters.FilterCriteria.Filters.#0.Pattern":                  commitfeed.Pattern,
		"SourceParameters.FilterCriteria.Filters.#1":                          nil,
		"SourceParameters.DynamoDBStreamParameters.StartingPosition":          "LATEST",
		"SourceParameters.DynamoDBStreamParameters.BatchSize":                 10.0,
		"SourceParameters.DynamoDBStreamParameters.OnPartialBatchItemFailure": "AUTOMATIC_BISECT",
		"TargetParameters.EventBridgeEventBusParameters.DetailType":           "doc.indexed",
		"TargetParameters.EventBridgeEventBusParameters.Source":               "lull",
	})
	s.same(t, "function", s.named(t, "AWS::Lambda::Function", "FunctionName", "feed-feed"), map[string]any{
		"MemorySize": 128.0, "Timeout": 10.0, "Environment": nil, "VpcConfig": nil,
	})
	if got, most := len(s.Resources), stackResources+sinkResources+feedResources; got > most {
		t.Errorf("%d resources, computed as %d", got, most)
	}
}

func TestWithoutTheSettingThereIsNoFeed(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	s.same(t, "table", s.named(t, "AWS::DynamoDB::GlobalTable", "TableName", "plain-shards"), map[string]any{
		"StreamSpecification": nil,
	})
	if pipes := s.all("AWS::Pipes::Pipe"); len(pipes) > 0 {
		t.Errorf("got %d pipes", len(pipes))
	}
}

// What the pipe's roles may do is what a pipe calls, on these resources alone.
func TestTheFeedMayOnlyReadItsStreamAndTell(t *testing.T) {
	t.Parallel()
	s := stackOf(t, feedStack)
	want := map[string]string{
		"/FeedPipeRole": "dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator on {globaltable feed-shards}.StreamArn; " +
			"dynamodb:ListStreams on *; lambda:InvokeFunction on {function feed-feed}; " +
			"events:PutEvents on arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/default",
		"/FeedRole": "logs:CreateLogStream logs:PutLogEvents on " +
			"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/lambda/feed-feed:*",
	}
	got := make(map[string][]string)
	for _, g := range s.grants() {
		path := g.role[strings.LastIndex(g.role, "/"):]
		got[path] = append(got[path], strings.Join(g.actions, " ")+" on "+strings.Join(g.on, " "))
	}
	for path, rights := range want {
		if may := strings.Join(got[path], "; "); may != rights {
			t.Errorf("%s may %s, want %s", path, may, rights)
		}
	}
}
