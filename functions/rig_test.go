// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
)

// testWiring tests how a function is wired. A complete environment is enough. An incomplete one
// gives an error that names all missing names at once, and no others. The function also needs
// credentials. fits judges what a complete environment makes.
func testWiring(t *testing.T, function string, wire lambda.Wire, needed []string,
	fits func(s *lambda.Setup, h lambda.Handler) bool,
) {
	t.Run("ItIsWiredFromItsNames", func(t *testing.T) {
		t.Parallel()
		s := lambdatest.Setup(function, lambdatest.Environment(), io.Discard)
		h, err := wire(s)
		if err != nil || s.Missing() != nil || !fits(s, h) {
			t.Fatalf("got %+v, %v, missing %v", h, err, s.Missing())
		}
	})
	t.Run("ItSaysWhichNamesItNeeds", func(t *testing.T) {
		t.Parallel()
		vars := lambdatest.Environment()
		maps.DeleteFunc(vars, func(name, _ string) bool { return strings.HasPrefix(name, "LULL_") })
		s := lambdatest.Setup(function, vars, io.Discard)
		if _, err := wire(s); err != nil {
			t.Fatalf("wire: %v", err)
		}
		err := s.Missing()
		if err == nil {
			t.Fatal("no name is missing, want an error about missing names")
		}
		for name := range lambdatest.Environment() {
			if strings.HasPrefix(name, "LULL_") && name != lambda.EnvSink &&
				strings.Contains(err.Error(), name) != slices.Contains(needed, name) {
				t.Errorf("%s: needed %v: %v", name, slices.Contains(needed, name), err)
			}
		}
	})
	t.Run("ItNeedsCredentials", func(t *testing.T) {
		t.Parallel()
		vars := lambdatest.Environment()
		delete(vars, "AWS_ACCESS_KEY_ID")
		if _, err := wire(lambdatest.Setup(function, vars, io.Discard)); err == nil ||
			!strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
			t.Errorf("got %v", err)
		}
	})
}

// testMissing tests a function in an account that lacks a resource of its environment. The cause
// is a wrong ARN, another region, or a table deleted by mistake. For each missing resource, says
// has the text that the log must contain. The log never quotes a document. No message is deleted.
// prepare runs while the resource exists. It returns the event for the function, and the check of
// the function's answer.
func testMissing(t *testing.T, function string, wire lambda.Wire, says map[string]string,
	prepare func(t *testing.T, s *lambda.Setup) (event []byte, check func(answer []byte, err error)),
) {
	for missing, want := range says {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			account := lambdatest.NewAccount(t)
			var log bytes.Buffer
			s := lambdatest.Setup(function, account.Environment(), &log)
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
			if n := account.Calls("Delete") + account.Calls("DELETE"); n != 0 {
				t.Errorf("%d requests to delete a message, want none", n)
			}
		})
	}
}

// These are the texts in the log about a missing table or bucket.
const (
	noTable  = "table lull-shards or its index waiting does not exist"
	noBucket = "bucket lull-123456789012-eu-west-1 does not exist"
)

// failures returns how many messages an answer keeps.
func failures(t testing.TB, answer []byte) int {
	t.Helper()
	var a struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatalf("answer %q: %v", answer, err)
	}
	return len(a.BatchItemFailures)
}

// content is the content of the documents, which must not appear in any log.
const content = "hidden"

// put returns the body of an event that puts a document.
func put(id string) string {
	return fmt.Sprintf(`{"type":"doc.changed","collection":"content","subject":%q,"sequence":"1","data":{"title":%q}}`,
		id, content)
}
