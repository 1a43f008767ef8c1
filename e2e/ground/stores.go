// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	logs "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Stored is an item in a store of the stack, with all its bytes.
type Stored struct {
	Place string // the kind of store (table, bucket, log, execution or search) and the name of the item
	Old   bool   // the item is a former version of an object
	Data  []byte
}

// Stores returns everything in the stores of the stack and in OpenSearch, except the messages in
// queues. [Stack.Idle] waits until the queues are empty.
func (s *Stack) Stores(t testing.TB) (all []Stored) {
	t.Helper()
	ctx := t.Context()
	keep := func(place string, old bool, data []byte) { all = append(all, Stored{place, old, data}) }
	Must(t, errors.Join(s.items(ctx, keep), s.objects(ctx, keep), s.logged(ctx, keep), s.executed(ctx, keep)))
	Must(t, s.indexed(ctx, keep))
	return all
}

type keep func(place string, old bool, data []byte)

func (s *Stack) items(ctx context.Context, keep keep) error {
	pages := dynamodb.NewScanPaginator(dynamodb.NewFromConfig(s.Account), &dynamodb.ScanInput{
		TableName: aws.String(s.Names.Table()), ConsistentRead: aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("scan the table: %w", err)
		}
		for _, item := range page.Items {
			for name, v := range item {
				keep("table "+name, false, attribute(v))
			}
		}
	}
	return nil
}

// attribute returns the bytes of an attribute.
func attribute(v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return []byte(v.Value)
	case *types.AttributeValueMemberB:
		return v.Value
	case *types.AttributeValueMemberN, *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return nil
	case *types.AttributeValueMemberSS:
		return []byte(strings.Join(v.Value, "\n"))
	case *types.AttributeValueMemberL:
		var all []byte
		for _, v := range v.Value {
			all = append(append(all, attribute(v)...), '\n')
		}
		return all
	case *types.AttributeValueMemberM:
		var all []byte
		for name, v := range v.Value {
			all = append(append(append(all, name...), '\n'), attribute(v)...)
		}
		return all
	}
	panic(fmt.Sprintf("an attribute is a %T", v))
}

func (s *Stack) objects(ctx context.Context, keep keep) error {
	bucket := aws.String(s.Names.Bucket(s.AccountID, s.Account.Region))
	in := &s3.ListObjectVersionsInput{Bucket: bucket}
	for {
		page, err := s.Files().ListObjectVersions(ctx, in)
		if err != nil {
			return fmt.Errorf("list the bucket: %w", err)
		}
		for _, v := range page.Versions {
			in := &s3.GetObjectInput{Bucket: bucket, Key: v.Key, VersionId: v.VersionId}
			object, err := s.Files().GetObject(ctx, in)
			if err != nil {
				return fmt.Errorf("read %s: %w", *v.Key, err)
			}
			data, err := io.ReadAll(object.Body)
			if err := errors.Join(err, object.Body.Close()); err != nil {
				return fmt.Errorf("read %s: %w", *v.Key, err)
			}
			keep("bucket "+*v.Key, !aws.ToBool(v.IsLatest), data)
		}
		if !aws.ToBool(page.IsTruncated) {
			return nil
		}
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
}

func (s *Stack) logged(ctx context.Context, keep keep) error {
	groups := logs.NewDescribeLogGroupsPaginator(s.logs, &logs.DescribeLogGroupsInput{})
	for groups.HasMorePages() {
		page, err := groups.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list log groups: %w", err)
		}
		for _, g := range page.LogGroups {
			if !strings.Contains(*g.LogGroupName, s.Config.Stack) {
				continue
			}
			events := logs.NewFilterLogEventsPaginator(s.logs, &logs.FilterLogEventsInput{LogGroupName: g.LogGroupName})
			for events.HasMorePages() {
				page, err := events.NextPage(ctx)
				if err != nil {
					return fmt.Errorf("read log %s: %w", *g.LogGroupName, err)
				}
				for _, e := range page.Events {
					keep("log "+*g.LogGroupName, false, []byte(aws.ToString(e.Message)))
				}
			}
		}
	}
	return nil
}

// executed passes the inputs and outputs of all executions of the stack's state machines to keep.
// AWS keeps those of Standard executions; an Express execution has only a log.
func (s *Stack) executed(ctx context.Context, keep keep) error {
	machines := sfn.NewListStateMachinesPaginator(s.Steps, &sfn.ListStateMachinesInput{})
	for machines.HasMorePages() {
		page, err := machines.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list state machines: %w", err)
		}
		for _, m := range page.StateMachines {
			if m.Type != "STANDARD" || !strings.Contains(*m.Name, s.Config.Stack) {
				continue
			}
			of := &sfn.ListExecutionsInput{StateMachineArn: m.StateMachineArn}
			runs := sfn.NewListExecutionsPaginator(s.Steps, of)
			for runs.HasMorePages() {
				page, err := runs.NextPage(ctx)
				if err != nil {
					return fmt.Errorf("list executions of %s: %w", *m.Name, err)
				}
				for _, run := range page.Executions {
					in := &sfn.DescribeExecutionInput{ExecutionArn: run.ExecutionArn}
					x, err := s.Steps.DescribeExecution(ctx, in)
					if err != nil {
						return fmt.Errorf("describe %s: %w", *run.Name, err)
					}
					keep("execution "+*m.Name, false, []byte(aws.ToString(x.Input)+"\n"+aws.ToString(x.Output)))
				}
			}
		}
	}
	return nil
}

func (s *Stack) indexed(ctx context.Context, keep keep) error {
	if _, _, err := s.Search.send(ctx, http.MethodPost, "/_refresh", nil); err != nil {
		return err
	}
	answer, _, err := s.Search.send(ctx, http.MethodPost, "/_search?expand_wildcards=all", map[string]any{
		"size": 10_000, "query": map[string]any{"match_all": map[string]any{}},
	})
	if err != nil {
		return err
	}
	for _, hit := range answer.Get("hits.hits").Array() {
		keep("search "+hit.Get("_index").Str, false, []byte(hit.Raw))
	}
	return nil
}

// Idle waits until all queues of the stack are empty, for all sinks.
func (s *Stack) Idle(t testing.TB) {
	t.Helper()
	var queues []string
	pages := sqs.NewListQueuesPaginator(s.SQS, &sqs.ListQueuesInput{QueueNamePrefix: aws.String(s.Config.Stack + "-")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		Must(t, err)
		queues = append(queues, page.QueueUrls...)
	}
	if len(queues) < 3*len(s.Config.Sinks) {
		t.Fatalf("the stack has the queues %q", queues)
	}
	Until(t, "every queue is empty", func() (bool, string) {
		for _, queue := range queues {
			if d := s.Depth(t, queue); d != (Depth{}) {
				return false, fmt.Sprintf("%s has %+v", queue, d)
			}
		}
		return true, ""
	})
}
