package lambdatest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
)

// Missing tests what a function does in an account that lacks something that a name of its
// environment stands for: a wrong ARN, another region, a table deleted by mistake. says is what the
// log has to name, by what is missing; it never quotes a document, and nothing is ever deleted.
// prepare runs before it is missing, and returns the event to invoke the function with and what to
// check of its answer.
func Missing(t *testing.T, function string, wire lambda.Wire, says map[string]string,
	prepare func(t *testing.T, s *lambda.Setup) (event []byte, check func(answer []byte, err error)),
) {
	for missing, want := range says {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			account := NewAccount(t)
			var log bytes.Buffer
			s := Setup(function, account.Environment(), &log)
			event, check := prepare(t, s)
			account.Lose(missing)
			h, err := wire(s)
			if err != nil {
				t.Fatal(err)
			}
			check(h.Invoke(t.Context(), event))
			if !strings.Contains(log.String(), want) || strings.Contains(log.String(), content) {
				t.Errorf("want %q and no content in the log:\n%s", want, &log)
			}
			if n := account.calls("Delete") + account.calls("DELETE"); n != 0 {
				t.Errorf("%d requests to delete", n)
			}
		})
	}
}

// What the log says of a table or a bucket that is not there.
const (
	NoTable  = "table lull-shards or its index waiting does not exist"
	NoBucket = "bucket lull-123456789012-eu-west-1 does not exist"
)
