// SPDX-License-Identifier: Apache-2.0

package lambdatest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// Batch returns an SQS event with a message for each body, which was sent now. The ids are
// message-0, message-1 and so on.
func Batch(t testing.TB, queue string, bodies ...string) []byte {
	t.Helper()
	records := make([]map[string]any, len(bodies))
	now := fmt.Sprint(time.Now().UnixMilli())
	for i, body := range bodies {
		records[i] = map[string]any{
			"messageId": fmt.Sprintf("message-%d", i), "receiptHandle": fmt.Sprintf("receipt-%d", i), "body": body,
			"attributes": map[string]string{
				"SentTimestamp": now, "ApproximateFirstReceiveTimestamp": now, "ApproximateReceiveCount": "1",
			},
			"eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:" + queue,
		}
	}
	event, err := json.Marshal(map[string]any{"Records": records})
	if err != nil {
		t.Fatal(err)
	}
	return event
}
