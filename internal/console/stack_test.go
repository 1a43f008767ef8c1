// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	_ "github.com/lullhq/lull/source/builtin"
)

// stack is a stack in memory without running functions, with the options of a console for the
// stack.
type stack struct {
	*testing.T
	*operate.Operator
	rig     *usecasetest.Rig
	live    *memory.Queue
	index   *memorysink.Sink
	options Options
}

func newStack(t *testing.T, change ...func(*config.Config)) *stack {
	t.Helper()
	rig := usecasetest.Open(t, func(cfg *config.Config) {
		cfg.Stack = "test"
		cfg.Sinks = map[string]config.Sink{"search": {Kind: "opensearch", URL: "http://127.0.0.1:1"}}
		cfg.DefaultSink = "search"
		for _, f := range change {
			f(cfg)
		}
	})
	s := &stack{
		T: t, rig: rig, live: rig.Queue("live", time.Hour),
		index: memorysink.New(clock.System{}, memorysink.Settings{Versions: true}),
	}
	s.Operator = &operate.Operator{
		Shards: rig.Shards, Scanner: rig.Shards, Dead: rig.Letters, Schedule: memory.NewSchedule(),
		Flights: memory.NewFlights(clock.System{}), Config: &rig.Config, Sources: rig.Sources, Clock: clock.System{},
		Journal: &rig.Notes, Queues: func(string, flight.Lane) queue.Queue { return s.live },
		Counts:  func(context.Context) ([]operate.QueueStatus, error) { return nil, nil },
		Readers: map[string]sink.Reader{"search": s.index}, Sinks: map[string]sink.Sink{"search": s.index},
	}
	s.options = Options{
		API:    operatetest.Late(s.Operator.API),
		Mode:   Dev,
		Send:   true,
		By:     "tester",
		Clock:  clock.System{},
		Config: s.Config,
	}
	return s
}

// ask sends one request. If it has a body, the method is POST.
func (s *stack) ask(path, body string) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if body != "" {
		r = httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	}
	w := httptest.NewRecorder()
	New(s.options).ServeHTTP(w, r)
	return w
}

// into reads the answer to a successful request.
func (s *stack) into(to any, path, body string) {
	s.Helper()
	w := s.ask(path, body)
	if err := json.Unmarshal(w.Body.Bytes(), to); err != nil || w.Code != http.StatusOK {
		s.Fatalf("%s %s: %d %.300s (%v)", path, body, w.Code, w.Body, err)
	}
}

// refused checks that a request is refused with this status and a sentence that contains text.
func (s *stack) refused(status int, text, path, body string) {
	s.Helper()
	var answer struct{ Error string }
	w := s.ask(path, body)
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != status ||
		!strings.Contains(answer.Error, text) {
		s.Errorf("%s %s: got %d %.300s, want %d and %q", path, body, w.Code, w.Body, status, text)
	}
}

// park parks a dead letter of an event without a row.
func (s *stack) park(body string, reason deadletter.Reason, died time.Time) string {
	s.Helper()
	m := queue.Message{ID: fmt.Sprintf("m-%.8s", body), Body: body, Sent: died}
	var doc shard.DocID
	var key shard.OrderKey
	if r := s.Sources.Decode(m)[0]; r.Invalid == nil {
		doc, key = r.Event.Doc, r.Event.Key
	}
	l := deadletter.New(m, reason, "a detail", doc, key, 0, died)
	l.Sink, l.Lane = "search", "live"
	usecasetest.Must(s.rig.Letters.Park(s.Context(), l))(s)
	return l.ID
}

// deniedError is an error with the methods that an error of the AWS SDK has.
type deniedError struct{}

func (deniedError) Error() string     { return "operation error DynamoDB: Query, AccessDeniedException" }
func (deniedError) ErrorCode() string { return "AccessDeniedException" }
func (deniedError) ErrorMessage() string {
	return "User: arn:aws:sts::1:role/x is not authorized to perform: dynamodb:Query on resource: t"
}

// deniedAPI is a stack that denies everything.
var deniedAPI = (&operate.Client{Base: "http://127.0.0.1", HTTP: &http.Client{Transport: denying{}}}).API()

type denying struct{}

func (denying) RoundTrip(*http.Request) (*http.Response, error) { return nil, deniedError{} }
