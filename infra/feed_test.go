// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/seam/commitfeed"
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
		"SourceParameters.DynamoDBStreamParameters.MaximumRecordAgeInSeconds": 72_000.0,
		"SourceParameters.DynamoDBStreamParameters.ParallelizationFactor":     4.0,
		"SourceParameters.DynamoDBStreamParameters.DeadLetterConfig.Arn":      "{feed/Lull/FeedLost}",
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

// F5: the feed has the same alarms as other pipes, and keeps the changes that it could not send.
func TestTheFeedAlarmsWhenItStops(t *testing.T) {
	t.Parallel()
	s := stackOf(t, feedStack)
	alarm := s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", "feed-pipe-failing-feed")
	metrics := make(map[string]bool)
	for _, q := range items(alarm.Properties["Metrics"]) {
		if dig(q, "MetricStat") != nil {
			d := dig(q, "MetricStat", "Metric", "Dimensions", 0)
			metrics[word(dig(q, "MetricStat", "Metric", "MetricName"))+" of "+s.text(dig(d, "Value"))] = true
		}
	}
	for _, name := range []string{"ExecutionFailed", "ExecutionPartiallyFailed", "ExecutionTimeout"} {
		if !metrics[name+" of {feed/Lull/FeedPipe}"] {
			t.Errorf("the alarm watches %v, not %s of the feed", metrics, name)
		}
	}
	p := plainProps()
	p.Config.CommitFeed, p.Thresholds = true, map[string]float64{"pipe-failing": 3}
	if err := p.Validate(); err != nil {
		t.Errorf("a threshold of the feed's alarm: %v", err)
	}
}

// F5: FeedParallel is a fault if it is out of bounds, or if there is no feed.
func TestTheFeedReadsAsManyBatchesAsItIsTold(t *testing.T) {
	t.Parallel()
	for parallel, feed := range map[int]bool{-1: true, 11: true, 2: false} {
		p := plainProps()
		p.StateOnly, p.FeedParallel, p.Config.CommitFeed = true, parallel, feed
		if fs := Faults(p.Validate()); len(fs) != 1 || fs[0].Setting != "FeedParallel" || fs[0].Fix == "" {
			t.Errorf("%d: got %v", parallel, fs)
		}
	}
	for _, parallel := range []int{0, 1, 10} {
		p := plainProps()
		p.StateOnly, p.FeedParallel, p.Config.CommitFeed = true, parallel, true
		if err := p.Validate(); err != nil {
			t.Errorf("%d: %v", parallel, err)
		}
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

// The roles of the pipe allow exactly the calls that a pipe makes, only on these resources.
func TestTheFeedMayOnlyReadItsStreamAndTell(t *testing.T) {
	t.Parallel()
	s := stackOf(t, feedStack)
	want := map[string]string{
		"/FeedPipeRole": "dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator on {globaltable feed-shards}.StreamArn; " +
			"dynamodb:ListStreams on *; lambda:InvokeFunction on {function feed-feed}; " +
			"events:PutEvents on arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/default; " +
			"sqs:SendMessage on {feed/Lull/FeedLost}",
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
