package functions

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
)

func TestWhatIsMissingKeepsEveryMessageAndIsNamed(t *testing.T) {
	t.Parallel()
	says := map[string]string{
		lambdatest.Table: noTable, lambdatest.Bucket: noBucket,
		lambdatest.Machine: "state machine arn:aws:states:eu-west-1:123456789012:stateMachine:lull-search-express does not " +
			"exist",
		lambdatest.Queue: "", // held messages stay without asking the queue
	}
	testMissing(t, "receive", wireReceive, says, func(t *testing.T, _ *lambda.Setup) ([]byte, func([]byte, error)) {
		t.Helper()
		return lambdatest.Batch(t, "lull-search-live", put("a"), put("b")),
			func(answer []byte, err error) {
				if err != nil || failures(t, answer) != 2 {
					t.Errorf("got %s, %v: want both messages kept", answer, err)
				}
			}
	})
}

// A message that is not an event needs a dead letter. Where the dead-letter queue is missing, it
// stays.
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
