package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/lambda/lambdatest"
)

// Whatever a name stands for that is not there: every letter stays in the dead-letter queue, and the log names what is missing.
func TestWhatIsMissingKeepsEveryLetterAndIsNamed(t *testing.T) {
	t.Parallel()
	for missing, says := range map[string]string{
		lambdatest.Table:  "table lull-shards or its index waiting does not exist",
		lambdatest.Bucket: "bucket lull-123456789012-eu-west-1 does not exist",
	} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			account := lambdatest.NewAccount(t)
			account.Lose(missing)
			var log bytes.Buffer
			h, err := wire(lambdatest.Setup("dlq", account.Environment(), &log))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := h.Invoke(t.Context(), lambdatest.Batch(t, "lull-search-dead", lambdatest.Put("a"), "no event"))
			if err != nil || lambdatest.Failures(t, answer) == 0 {
				t.Errorf("got %s, %v: want letters kept", answer, err)
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
