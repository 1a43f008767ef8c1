package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/lambda/lambdatest"
)

// Whatever a name stands for that is not there: the run fails and says what; it deletes nothing.
func TestWhatIsMissingFailsTheRunAndIsNamed(t *testing.T) {
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
			h, err := wire(lambdatest.Setup("prune", account.Environment(), &log))
			if err != nil {
				t.Fatal(err)
			}
			if answer, err := h.Invoke(t.Context(), []byte("{}")); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %s, %v: want %q", answer, err, says)
			}
			if !strings.Contains(log.String(), says) {
				t.Errorf("want %q in the log:\n%s", says, &log)
			}
			if n := account.Calls("Delete") + account.Calls("DELETE"); n != 0 {
				t.Errorf("%d requests to delete", n)
			}
		})
	}
}
