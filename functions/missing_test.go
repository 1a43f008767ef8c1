// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
)

// If a resource is missing, each message stays, and a run of prune fails.
func TestWhatIsMissingKeepsEveryMessageAndIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		function string
		wire     lambda.Wire
		queue    string // queue of the messages; empty for a run of prune
		messages []string
		says     map[string]string
	}{
		"receive": {
			"receive", wireReceive, "lull-search-live",
			[]string{put("a"), put("b")},
			map[string]string{
				lambdatest.Table: noTable, lambdatest.Bucket: noBucket,
				lambdatest.Machine: "state machine arn:aws:states:eu-west-1:123456789012:stateMachine:" +
					"lull-search-express does not exist",
				lambdatest.Queue: "", // receive holds the messages without a call to this queue
			},
		},
		"dlq": {
			"dlq", wireDLQ, "lull-search-dead",
			[]string{put("a")},
			map[string]string{lambdatest.Table: noTable},
		},
		"dlq, a message that is not an event": { // such a message has no row, so it is parked at once
			"dlq", wireDLQ, "lull-search-dead", []string{"no event"}, map[string]string{lambdatest.Bucket: noBucket},
		},
		"prune": {
			"prune", wirePrune, "", nil, map[string]string{lambdatest.Table: noTable, lambdatest.Bucket: noBucket},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prepare := func(t *testing.T, _ *lambda.Setup) ([]byte, func([]byte, error)) {
				t.Helper()
				if tt.queue == "" {
					return []byte("{}"), func(answer []byte, err error) {
						if err == nil {
							t.Errorf("got %s, want an error", answer)
						}
					}
				}
				return lambdatest.Batch(t, tt.queue, tt.messages...), func(answer []byte, err error) {
					if err != nil || failures(t, answer) != len(tt.messages) {
						t.Errorf("got answer %s, error %v: want every message kept", answer, err)
					}
				}
			}
			testMissing(t, tt.function, tt.wire, tt.says, prepare)
		})
	}
}

// A message that is not an event needs a dead letter. If the dead-letter queue is missing, the
// message stays in its queue.
func TestADeadLetterWithoutAQueueKeepsTheMessage(t *testing.T) {
	t.Parallel()
	account := lambdatest.NewAccount(t)
	account.Lose(lambdatest.Queue)
	var log bytes.Buffer
	h, err := wireReceive(lambdatest.Setup("receive", account.Environment(), &log))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := h.Invoke(t.Context(), lambdatest.Batch(t, "lull-search-live", "no event"))
	if err != nil || failures(t, answer) != 1 {
		t.Errorf("got %s, %v: want the message kept", answer, err)
	}
	if says := "lull-search-dead does not exist"; !strings.Contains(log.String(), says) {
		t.Errorf("want %q in the log:\n%s", says, &log)
	}
}
