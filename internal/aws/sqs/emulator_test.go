// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/queue/queuetest"
)

// create creates a queue and returns its URL and ARN. The end of the test deletes the queue.
func create(t *testing.T, api *sdk.Client, attrs map[string]string) (url, arn string) {
	t.Helper()
	out, err := api.CreateQueue(awstest.Context(t), &sdk.CreateQueueInput{
		QueueName:  aws.String(awstest.Name(t)),
		Attributes: attrs,
	})
	if err != nil {
		t.Fatalf("create queue: %v", err)
	}
	url = aws.ToString(out.QueueUrl)
	t.Cleanup(func() {
		if _, err := api.DeleteQueue(context.WithoutCancel(t.Context()),
			&sdk.DeleteQueueInput{QueueUrl: &url}); err != nil {
			t.Errorf("delete queue: %v", err)
		}
	})
	got, err := api.GetQueueAttributes(awstest.Context(t), &sdk.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatalf("get queue attributes: %v", err)
	}
	return url, got.Attributes["QueueArn"]
}

// receiver returns a function that receives messages from a queue, as the event source mapping of
// Lambda does.
func receiver(api *sdk.Client, url string) queuetest.Receive {
	return func(ctx context.Context, limit int, wait time.Duration) ([]queue.Message, error) {
		var got []queue.Message
		for end := time.Now().Add(wait); len(got) == 0; {
			seconds := int32(min(max(time.Until(end), 0), 20*time.Second).Round(time.Second) / time.Second)
			out, err := api.ReceiveMessage(ctx, &sdk.ReceiveMessageInput{
				QueueUrl: &url, MaxNumberOfMessages: int32(limit), WaitTimeSeconds: seconds,
				MessageAttributeNames:       []string{"All"},
				MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
			})
			if err != nil {
				return nil, err
			}
			for i := range out.Messages {
				m, err := message(&out.Messages[i])
				if err != nil {
					return nil, err
				}
				got = append(got, m)
			}
			if !time.Now().Before(end) {
				break
			}
		}
		return got, nil
	}
}

func message(in *types.Message) (queue.Message, error) {
	out := queue.Message{
		ID: aws.ToString(in.MessageId), Receipt: aws.ToString(in.ReceiptHandle),
		Body: aws.ToString(in.Body),
	}
	number := func(name types.MessageSystemAttributeName) int64 {
		n, err := strconv.ParseInt(in.Attributes[string(name)], 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	out.Sent = time.UnixMilli(number(types.MessageSystemAttributeNameSentTimestamp)).UTC()
	out.FirstReceived = time.UnixMilli(number(types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp)).UTC()
	out.ReceiveCount = int(number(types.MessageSystemAttributeNameApproximateReceiveCount))
	out.MovedFrom = in.Attributes[string(types.MessageSystemAttributeNameDeadLetterQueueSourceArn)]
	for name, a := range in.MessageAttributes {
		if out.Attributes == nil {
			out.Attributes = map[string]queue.Attribute{}
		}
		out.Attributes[name] = queue.Attribute{
			Type: aws.ToString(a.DataType), String: aws.ToString(a.StringValue),
			Binary: a.BinaryValue,
		}
	}
	return out, nil
}

func TestTheQueueKeepsThePromisesOfAQueue(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	api := sdk.NewFromConfig(client.Plain(cfg))
	queuetest.Run(t, func(t *testing.T, s queuetest.Settings) queuetest.Backend {
		attrs := map[string]string{
			"VisibilityTimeout":  fmt.Sprint(int(s.Visibility / time.Second)),
			"MaximumMessageSize": fmt.Sprint(queue.MaxBytes),
		}
		var b queuetest.Backend
		if s.MaxReceiveCount > 0 {
			dead, arn := create(t, api, nil)
			b.Dead = receiver(api, dead)
			attrs["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, arn,
				s.MaxReceiveCount)
		}
		url, arn := create(t, api, attrs)
		b.Queue, b.Receive, b.Moved = New(cfg, url), receiver(api, url), arn
		return b
	}, queuetest.Capabilities{Redrive: true})
}

func TestAMissingQueueSaysSo(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	url, _ := create(t, sdk.NewFromConfig(client.Plain(cfg)), nil)
	errs := New(cfg, url+"-missing").Send(awstest.Context(t), []queue.Outgoing{{Body: "x"}})
	if len(errs) != 1 || !backoff.Final(errs[0]) {
		t.Errorf("got %v, want a permanent error", errs)
	}
}
