package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/lambda/lambdatest"
)

// Whatever a name stands for that is not there (a wrong ARN, another region, a table deleted by mistake): every message stays, and the
// log names it.
func TestWhatIsMissingKeepsEveryMessageAndIsNamed(t *testing.T) {
	t.Parallel()
	for missing, says := range map[string]string{
		lambdatest.Table:   "table lull-shards or its index waiting does not exist",
		lambdatest.Bucket:  "bucket lull-123456789012-eu-west-1 does not exist",
		lambdatest.Machine: "state machine arn:aws:states:eu-west-1:123456789012:stateMachine:lull-search does not exist",
		lambdatest.Queue:   "", // held messages stay without asking the queue
	} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			account := lambdatest.NewAccount(t)
			account.Lose(missing)
			var log bytes.Buffer
			h, err := wire(lambdatest.Setup("receive", account.Environment(), &log))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := h.Invoke(t.Context(), lambdatest.Batch(t, "lull-search-live", lambdatest.Put("a"), lambdatest.Put("b")))
			if err != nil || lambdatest.Failures(t, answer) != 2 {
				t.Errorf("got %s, %v: want both messages kept", answer, err)
			}
			if !strings.Contains(log.String(), says) || strings.Contains(log.String(), "hidden") {
				t.Errorf("want %q and no content in the log:\n%s", says, &log)
			}
			if n := account.Calls("DeleteMessage"); n != 0 {
				t.Errorf("%d requests to delete", n)
			}
		})
	}
}

// A message that is no event needs a dead letter: where the dead-letter queue is missing, it stays.
func TestALetterWithoutAQueueKeepsTheMessage(t *testing.T) {
	t.Parallel()
	account := lambdatest.NewAccount(t)
	account.Lose(lambdatest.Queue)
	var log bytes.Buffer
	h, err := wire(lambdatest.Setup("receive", account.Environment(), &log))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := h.Invoke(t.Context(), lambdatest.Batch(t, "lull-search-live", "no event"))
	if err != nil || lambdatest.Failures(t, answer) != 1 {
		t.Errorf("got %s, %v: want the message kept", answer, err)
	}
	if says := "lull-search-dead does not exist"; !strings.Contains(log.String(), says) {
		t.Errorf("want %q in the log:\n%s", says, &log)
	}
}
