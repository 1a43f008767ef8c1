package functions

import (
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
)

func TestWhatIsMissingFailsTheRunAndIsNamed(t *testing.T) {
	t.Parallel()
	says := map[string]string{lambdatest.Table: noTable, lambdatest.Bucket: noBucket}
	testMissing(t, "prune", wirePrune, says, func(t *testing.T, _ *lambda.Setup) ([]byte, func([]byte, error)) {
		t.Helper()
		return []byte("{}"), func(answer []byte, err error) {
			if err == nil {
				t.Errorf("got %s, want an error", answer)
			}
		}
	})
}
