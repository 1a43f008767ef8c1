// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	_ "github.com/lullhq/lull/sink/memorysink"
)

// deployed returns settings that a deployment accepts.
func deployed() config.Config {
	c := config.Default()
	s := c.Sinks["search"]
	s.Kind, s.URL = "opensearch", "https://search.example.org"
	c.Sinks["search"] = s
	return c
}

// folder returns a new folder with the settings file that the infrastructure puts beside a
// function.
func folder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, SettingsFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func settingsText(t *testing.T, c config.Config) string {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func getenv(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func wireGood(s *Setup) (Handler, error) {
	s.Name(EnvTable)
	return &Queues{Journal: s.Journal, Limit: s.Config.Receive.Timeout, Handles: map[string]Handle{
		"q": func(context.Context, []queue.Message) []string { return nil },
	}}, nil
}

func TestAFunctionIsWiredFromItsSettingsAndNames(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	empty := t.TempDir()
	env := getenv(map[string]string{EnvSink: "search", EnvTable: "shards"})
	h := New("receive", env, []string{empty, folder(t, settingsText(t, deployed()))}, &out, wireGood)
	answer, err := h.Invoke(t.Context(), messages(2))
	if err != nil || len(failures(t, answer)) != 0 {
		t.Errorf("got %s, %v: %s", answer, err, &out)
	}
}

// A stack that was created from a template has its settings in an environment variable. The
// variable overrides the settings file, and its errors read like those of the file.
func TestSettingsMayBeInTheEnvironment(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want string // a text of the log; empty if the function works
	}{
		"good":         {text: settingsText(t, deployed())},
		"not JSON":     {text: "{", want: "LULL_SETTINGS: parse settings"},
		"unknown name": {text: `{"stak":"x"}`, want: "LULL_SETTINGS: "},
	} {
		var out bytes.Buffer
		env := getenv(map[string]string{EnvSink: "search", EnvTable: "shards", EnvSettings: tt.text})
		h := New("receive", env, []string{folder(t, "broken")}, &out, wireGood)
		answer, err := h.Invoke(t.Context(), messages(2))
		works := err == nil && len(failures(t, answer)) == 0
		if works != (tt.want == "") || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: got %s, %v: %s", name, answer, err, &out)
		}
	}
}

// Each log line names the invocation that wrote it. LULL_LOG_LEVEL sets the level of the log, and
// does not affect metrics.
func TestLinesNameTheirInvocation(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]bool{"": true, "INFO": true, "WARN": false} {
		var out bytes.Buffer
		wire := func(s *Setup) (Handler, error) {
			return &Queues{Journal: s.Journal, Limit: s.Config.Receive.Timeout, Handles: map[string]Handle{
				"q": func(context.Context, []queue.Message) []string {
					s.Journal.Note(journal.Note{Step: journal.Parked})
					return nil
				},
			}}, nil
		}
		env := getenv(map[string]string{EnvSink: "search", EnvLogLevel: level})
		h := New("dlq", env, []string{folder(t, settingsText(t, deployed()))}, &out, wire)
		for _, id := range []string{"first", "second"} {
			out.Reset()
			ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: id})
			if _, err := h.Invoke(ctx, messages(1)); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), `"requestId":"`+id+`"`); got != want {
				t.Errorf("level %q: the log names invocation %s: %v, want %v: %s", level, id, got, want, &out)
			}
			if total(t, &out, metrics.Name(journal.Parked)) != 1 {
				t.Errorf("level %q: the metric is missing: %s", level, &out)
			}
		}
	}
}

// The spans of traced messages are sent at the end of the invocation.
func TestSpansLeaveWithTheirInvocation(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	sent := make(chan string, 2)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		sent <- string(text)
	}))
	t.Cleanup(collector.Close)
	cfg := deployed()
	cfg.Tracing.Endpoint = collector.URL
	wire := func(s *Setup) (Handler, error) {
		return &Queues{Journal: s.Journal, Limit: s.Config.Receive.Timeout, Handles: map[string]Handle{
			"q": func(context.Context, []queue.Message) []string {
				s.Journal.Note(journal.Note{
					Step: journal.Stale, Doc: "content#a", At: time.Now(),
					Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
				})
				return nil
			},
		}}, nil
	}
	h := New("receive", getenv(map[string]string{EnvSink: "search"}), []string{folder(t, settingsText(t, cfg))}, &out, wire)
	if _, err := h.Invoke(t.Context(), messages(1)); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-sent:
		if !strings.Contains(got, `"lull stale"`) || !strings.Contains(got, "4bf92f3577b34da6a3ce929d0e0e4736") {
			t.Errorf("got %s", got)
		}
	default:
		t.Errorf("the collector received no spans: %s", &out)
	}
}

func TestBadSettingsKeepEveryMessageAndSaySo(t *testing.T) {
	t.Parallel()
	good := settingsText(t, deployed())
	contradictory := deployed()
	contradictory.Queues.Visibility = 1_000_000_000
	local := config.Default()
	local.Sinks = map[string]config.Sink{"search": {Kind: "memory"}}
	local.Complete()
	names := map[string]string{EnvSink: "search", EnvTable: "shards", "AWS_LAMBDA_FUNCTION_NAME": "prod-search-receive"}
	tests := map[string]struct {
		settings string // empty if there is no settings file
		env      map[string]string
		wire     Wire
		says     string
	}{
		"no settings":                    {"", names, wireGood, "config.json"},
		"no JSON":                        {"{", names, wireGood, "config.json"},
		"an unknown setting":             {`{"quite":"5s"}`, names, wireGood, "quite"},
		"contradictory settings":         {settingsText(t, contradictory), names, wireGood, "queues.visibility"},
		"a sink that is only in memory":  {settingsText(t, local), names, wireGood, "sinks.search.kind"},
		"no sink":                        {good, map[string]string{EnvTable: "shards"}, wireGood, EnvSink},
		"another sink":                   {good, map[string]string{EnvSink: "other"}, wireGood, `"other"`},
		"a missing environment variable": {good, map[string]string{EnvSink: "search"}, wireGood, EnvTable},
		"wiring fails": {
			good, names, func(*Setup) (Handler, error) { return nil, errors.New("sources: no") },
			"sources: no",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tt.settings != "" {
				dir = folder(t, tt.settings)
			}
			var out bytes.Buffer
			h := New("receive", getenv(tt.env), []string{dir}, &out, tt.wire)
			for range 2 { // every invocation reports the error, not only the first one
				out.Reset()
				answer, err := h.Invoke(t.Context(), messages(3))
				if err != nil || len(failures(t, answer)) != 3 {
					t.Errorf("got %s, %v, want all 3 messages as failed", answer, err)
				}
				if total(t, &out, metrics.ConfigurationErrors) != 1 ||
					!strings.Contains(out.String(), strings.ReplaceAll(tt.says, `"`, `\"`)) {
					t.Errorf("the log must count one ConfigurationErrors and say %q: %s", tt.says, &out)
				}
			}
			if !strings.Contains(out.String(), `"Stack":"lull"`) && !strings.Contains(out.String(), `"Stack":"prod"`) {
				t.Errorf("the metric has no dimension Stack, so no alarm finds it: %s", &out)
			}
			// An event that is not from SQS makes the invocation fail. The state machine and the
			// EventBridge rule count such a failure.
			out.Reset()
			if answer, err := h.Invoke(t.Context(), []byte(`{"schema":1,"flight":"f"}`)); err == nil {
				t.Errorf("got %s, want an error", answer)
			}
			if !strings.Contains(out.String(), `"flight":"f"`) {
				t.Errorf("the log line does not name the flight: %s", &out)
			}
		})
	}
}

func TestRowsAreCountedPerInvocation(t *testing.T) {
	t.Parallel()
	j, out := newJournal()
	var r, w, n int64
	(&Setup{Journal: j}).Table(func() (int64, int64, int64) { return r, w, n })
	for i := range 3 {
		r, w, n = r+10, w+5, n+int64(i)
		out.Reset()
		j.finish(t.Context())
		if total(t, out, metrics.RowReads) != 10 || total(t, out, metrics.RowWrites) != 5 ||
			total(t, out, metrics.RowRefusals) != float64(i) {
			t.Errorf("invocation %d: %s", i, out)
		}
	}
}

func TestAQueueIsKnownByItsName(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"arn:aws:sqs:eu-west-1:123456789012:lull-search-live",
		"https://sqs.eu-west-1.amazonaws.com/123456789012/lull-search-live",
		"http://127.0.0.1:4566/000000000000/lull-search-live",
		"http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/lull-search-live",
	} {
		if got := queueName(s); got != "lull-search-live" {
			t.Errorf("%s: got %s", s, got)
		}
	}
}

// A function of a stack needs no sink, and answers no request if its settings are invalid.
func TestAFunctionOfAStackNeedsNoSink(t *testing.T) {
	t.Parallel()
	event := []byte(`{"rawPath":"/","requestContext":{"http":{"method":"GET"}}}`)
	wire := func(s *Setup) (Handler, error) {
		s.Name(EnvTable)
		return &URL{Handler: http.NotFoundHandler(), Limit: time.Minute, Journal: s.Journal}, nil
	}
	for name, tt := range map[string]struct {
		vars map[string]string
		text string
		want string // a text of the log; empty if the function works
	}{
		"good":              {map[string]string{EnvTable: "shards"}, settingsText(t, deployed()), ""},
		"no table":          {nil, settingsText(t, deployed()), "not set: LULL_TABLE"},
		"settings not JSON": {map[string]string{EnvTable: "shards"}, "{", "parse settings"},
	} {
		var out bytes.Buffer
		h := NewOfStack("searchable", getenv(tt.vars), []string{folder(t, tt.text)}, &out, wire)
		answer, err := h.Invoke(t.Context(), event)
		if works := err == nil && strings.Contains(string(answer), "404"); works != (tt.want == "") ||
			!strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: got %s, %v: %s", name, answer, err, &out)
		}
	}
}
