package functions

import (
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
)

func TestWhatIsMissingKeepsEveryDeadLetterAndIsNamed(t *testing.T) {
	t.Parallel()
	for _, body := range []string{put("a"), "no event"} {
		says := map[string]string{lambdatest.Table: noTable}
		if body == "no event" { // no row tells of it: it is parked at once
			says = map[string]string{lambdatest.Bucket: noBucket}
		}
		testMissing(t, "dlq", wireDLQ, says, func(t *testing.T, _ *lambda.Setup) ([]byte, func([]byte, error)) {
			t.Helper()
			return lambdatest.Batch(t, "lull-search-dead", body), func(answer []byte, err error) {
				if err != nil || failures(t, answer) != 1 {
					t.Errorf("got %s, %v: want the dead letter kept", answer, err)
				}
			}
		})
	}
}
