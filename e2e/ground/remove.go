// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// kindBucket is CloudFormation's type of a bucket.
const kindBucket = "AWS::S3::Bucket"

// EmptyBucket deletes all objects of a bucket, with their old versions. It does nothing if there is
// no such bucket.
func (g *Ground) EmptyBucket(ctx context.Context, bucket string) error {
	exists, err := g.Exists(ctx, kindBucket, bucket)
	if !exists || err != nil {
		return err
	}
	in := &s3.ListObjectVersionsInput{Bucket: &bucket}
	for {
		page, err := g.Files().ListObjectVersions(ctx, in)
		if err != nil {
			return fmt.Errorf("list the bucket %s: %w", bucket, err)
		}
		var all []types.ObjectIdentifier
		for _, v := range page.Versions {
			all = append(all, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			all = append(all, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		for from := 0; from < len(all); from += 1000 { // the most that S3 takes in a request
			out, err := g.Files().DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{
				Objects: all[from:min(from+1000, len(all))], Quiet: aws.Bool(true),
			}})
			if err != nil {
				return fmt.Errorf("empty the bucket %s: %w", bucket, err)
			}
			for _, e := range out.Errors {
				return fmt.Errorf("empty the bucket %s: delete %s: %s", bucket, aws.ToString(e.Key), aws.ToString(e.Message))
			}
		}
		if !aws.ToBool(page.IsTruncated) {
			return nil
		}
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
}

// owner returns the end of the names of the tests' buckets. All accounts of AWS share the names of
// buckets, so the name has the account.
func (g *Ground) owner() string {
	if g.Real {
		return "-" + g.AccountID
	}
	return ""
}

// bucketOf returns the name of a bucket of the tests.
func (g *Ground) bucketOf(stack, name string) string { return stack + "-" + name + g.owner() }

// RemoveUpstreams deletes what tests made outside of a stack: its topic, its bus, and the buckets
// whose names begin with the stack's name.
func (g *Ground) RemoveUpstreams(ctx context.Context, stack string) error {
	topic := "arn:aws:sns:" + g.Account.Region + ":" + g.AccountID + ":" + stack + "-changes"
	// SNS and EventBridge answer with success if the topic or the bus does not exist.
	_, err := g.Query(ctx, "sns", "2010-03-31", "DeleteTopic", url.Values{"TopicArn": {topic}})
	err = errors.Join(err, g.target(ctx, "events", "AWSEvents.DeleteEventBus", map[string]any{"Name": stack + "-changes"}, nil))
	if err != nil {
		return fmt.Errorf("delete the upstreams: %w", err)
	}
	for _, name := range []string{"exports", "catalogue"} {
		bucket := g.bucketOf(stack, name)
		exists, err := g.Exists(ctx, kindBucket, bucket)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		if err := g.EmptyBucket(ctx, bucket); err != nil {
			return err
		}
		if _, err := g.Files().DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket}); err != nil {
			return fmt.Errorf("delete the bucket %s: %w", bucket, err)
		}
	}
	return nil
}

// Remove deletes the indices of a stack.
func (s *Search) Remove(ctx context.Context, stack string) error {
	for _, pattern := range []string{stack + "-", "archive-of-" + stack + "-"} {
		answer, found, err := s.send(ctx, http.MethodGet, "/_cat/indices/"+pattern+"*?format=json&h=index", nil)
		if err != nil {
			return err
		}
		for _, index := range answer.Array() {
			name := index.Get("index").Str
			if !found || !strings.HasPrefix(name, pattern) {
				continue
			}
			if _, _, err := s.send(ctx, http.MethodDelete, "/"+name, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// Exists reports whether a resource exists. It asks the resource's service, because CloudFormation
// forgets a stack that it has deleted. It knows the types that keep data, cost money or keep a
// name. For other types it returns false.
func (g *Ground) Exists(ctx context.Context, kind, name string) (bool, error) {
	switch kind {
	case "AWS::DynamoDB::GlobalTable", "AWS::DynamoDB::Table":
		_, err := sdk.NewFromConfig(g.Account).DescribeTable(ctx, &sdk.DescribeTableInput{TableName: &name})
		var none *dynamotypes.ResourceNotFoundException
		return found(err, errors.As(err, &none))
	case kindBucket:
		_, err := g.Files().HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
		var none *types.NotFound
		return found(err, errors.As(err, &none))
	case "AWS::SQS::Queue":
		_, err := sqs.NewFromConfig(g.Account).GetQueueUrl(ctx, &sqs.GetQueueUrlInput{
			QueueName: aws.String(name[strings.LastIndex(name, "/")+1:]),
		})
		var none *sqstypes.QueueDoesNotExist
		return found(err, errors.As(err, &none))
	case "AWS::Logs::LogGroup":
		out, err := cloudwatchlogs.NewFromConfig(g.Account).DescribeLogGroups(ctx,
			&cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &name})
		return err == nil && len(out.LogGroups) > 0, err
	case "AWS::StepFunctions::StateMachine":
		out, err := sfn.NewFromConfig(g.Account).DescribeStateMachine(ctx,
			&sfn.DescribeStateMachineInput{StateMachineArn: &name})
		var none *sfntypes.StateMachineDoesNotExist
		exists, err := found(err, errors.As(err, &none))
		return exists && out.Status != sfntypes.StateMachineStatusDeleting, err
	case "AWS::Lambda::Function":
		err := g.json(ctx, "lambda", http.MethodGet, "/2015-03-31/functions/"+name, nil, nil, http.Header{})
		return found(err, err != nil && strings.Contains(err.Error(), "status 404"))
	case "AWS::IAM::Role":
		_, err := g.Query(ctx, "iam", iamVersion, "GetRole", url.Values{"RoleName": {name}})
		return found(err, err != nil && strings.Contains(err.Error(), "NoSuchEntity"))
	}
	return false, nil
}

// found turns the error of a request for a resource into an answer.
func found(err error, none bool) (bool, error) {
	if none {
		return false, nil
	}
	return err == nil, err
}
