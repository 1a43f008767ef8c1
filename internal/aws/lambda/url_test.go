// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/metrics"
)

// A request of a function URL arrives as AWS documents it, and the answer has its form.
func TestAURLAnswersARequest(t *testing.T) {
	t.Parallel()
	var got *http.Request
	u := &URL{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"key"}`)
		}),
		Limit: time.Minute, Journal: NewJournal(io.Discard, slog.LevelInfo, metrics.Base{}),
	}
	out, err := u.Invoke(t.Context(), []byte(`{"version":"2.0","rawPath":"/searchable","rawQueryString":"key=content%23%C3%A4",
		"headers":{"authorization":"secret"},"requestContext":{"authorizer":{"iam":{}},"http":{"method":"GET","path":"/searchable"}},
		"isBase64Encoded":false}`))
	if err != nil || string(out) != `{"statusCode":400,"headers":{"Content-Type":"application/json"},"body":"{\"error\":\"key\"}"}` {
		t.Errorf("got %s, %v", out, err)
	}
	if got.Method != http.MethodGet || got.URL.Path != "/searchable" || got.FormValue("key") != "content#ä" || len(got.Header) > 0 {
		t.Errorf("the handler got %+v", got)
	}
	if end, ok := got.Context().Deadline(); !ok || time.Until(end) > time.Minute-answerMargin {
		t.Errorf("the request ends at %s, %t", end, ok)
	}
}

// An event of another service, or a panic, fails the invocation. The log does not quote the event.
func TestAURLFailsAnInvocationThatIsNoRequest(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"", "{", `{"Records":[]}`, `{"rawPath":7}`, `[]`, `{"secret":"hidden"}`} {
		var log bytes.Buffer
		u := &URL{
			Handler: http.NotFoundHandler(), Limit: time.Minute,
			Journal: NewJournal(&log, slog.LevelInfo, metrics.Base{}),
		}
		if out, err := u.Invoke(t.Context(), []byte(event)); err == nil || strings.Contains(log.String(), "hidden") ||
			!strings.Contains(log.String(), metrics.InvalidEvents) {
			t.Errorf("%q: got %s, %v, logged %s", event, out, err, &log)
		}
	}
	u := &URL{
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }), Limit: time.Minute,
		Journal: NewJournal(io.Discard, slog.LevelInfo, metrics.Base{}),
	}
	if out, err := u.Invoke(t.Context(), []byte(`{"requestContext":{"http":{"method":"GET"}}}`)); err == nil {
		t.Errorf("a panic: got %s", out)
	}
}

// Whatever the event is, an answer is a JSON object with a status, or there is none.
func FuzzAURLAnswersOrFails(f *testing.F) {
	f.Add([]byte(`{"rawPath":"/","requestContext":{"http":{"method":"GET"}}}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		u := &URL{
			Handler: http.NotFoundHandler(), Limit: time.Minute,
			Journal: NewJournal(io.Discard, slog.LevelInfo, metrics.Base{}),
		}
		var answer struct{ StatusCode int }
		out, err := u.Invoke(t.Context(), event)
		if err == nil && (json.Unmarshal(out, &answer) != nil || answer.StatusCode != http.StatusNotFound) {
			t.Errorf("got %s", out)
		}
	})
}
