package main

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/lambda"
	"github.com/lullhq/lull/internal/metrics"
)

// needed are the names that the function cannot do without.
var needed = []string{lambda.EnvTable, lambda.EnvBucket, lambda.EnvLiveQueue, lambda.EnvBulkQueue, lambda.EnvDeadQueue, lambda.EnvStateMachine}

// environment is a complete one, as the infrastructure sets it.
func environment() map[string]string {
	const queues = "https://sqs.eu-west-1.amazonaws.com/123456789012/lull-search-"
	return map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
		lambda.EnvSink: "search", lambda.EnvTable: "lull-shards", lambda.EnvBucket: "lull-123456789012-eu-west-1",
		lambda.EnvLiveQueue: queues + "live", lambda.EnvBulkQueue: queues + "bulk", lambda.EnvDeadQueue: queues + "dead",
		lambda.EnvStateMachine: "arn:aws:states:eu-west-1:123456789012:stateMachine:lull-search",
	}
}

func setup(vars map[string]string) *lambda.Setup {
	c := config.Default()
	s := c.Sinks["search"]
	s.Kind, s.URL = config.SinkOpenSearch, "https://search.example.org"
	c.Sinks["search"] = s
	return &lambda.Setup{
		Config: &c, Sink: "search", Getenv: func(name string) string { return vars[name] },
		Journal: metrics.New(&bytes.Buffer{}, slog.LevelError, metrics.Base{Stack: "lull", Sink: "search", Function: "index"}),
	}
}

func TestItIsWiredFromItsNames(t *testing.T) {
	t.Parallel()
	s := setup(environment())
	h, err := wire(s)
	if err != nil || h == nil || s.Missing() != nil {
		t.Fatalf("got %v, %v, missing %v", h, err, s.Missing())
	}
	turn, ok := h.(*lambda.Turn)
	if !ok || turn.Limit != s.Config.Index.Timeout {
		t.Errorf("got %+v, want turns of index.timeout", h)
	}
}

func TestItSaysWhichNamesItNeeds(t *testing.T) {
	t.Parallel()
	vars := environment()
	for _, name := range slices.Collect(maps.Keys(vars)) {
		if strings.HasPrefix(name, "LULL_") {
			delete(vars, name)
		}
	}
	s := setup(vars)
	if _, err := wire(s); err != nil {
		t.Fatalf("wire: %v", err)
	}
	err := s.Missing()
	if err == nil {
		t.Fatal("nothing is missing")
	}
	for name := range environment() {
		if strings.HasPrefix(name, "LULL_") && name != lambda.EnvSink && strings.Contains(err.Error(), name) != slices.Contains(needed, name) {
			t.Errorf("%s: needed %v: %v", name, slices.Contains(needed, name), err)
		}
	}
}

func TestItNeedsCredentials(t *testing.T) {
	t.Parallel()
	vars := environment()
	delete(vars, "AWS_ACCESS_KEY_ID")
	if _, err := wire(setup(vars)); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v", err)
	}
}

func TestTheSinkIsWhatTheSettingsSay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*config.Sink)
		says   string
	}{
		"no authentication": {func(*config.Sink) {}, ""},
		"a secret": {func(s *config.Sink) {
			s.Auth = config.Auth{Kind: config.AuthBasic, SecretARN: "arn:aws:secretsmanager:eu-west-1:123456789012:secret:search-AbCdEf"}
		}, ""},
		"the environment": {func(s *config.Sink) {
			s.Auth = config.Auth{Kind: config.AuthBasic, UserEnv: "SEARCH_USER", PasswordEnv: "SEARCH_PASSWORD"}
		}, ""},
		"signed":         {func(s *config.Sink) { s.Auth = config.Auth{Kind: config.AuthSigV4, Service: "es"} }, ""},
		"in one process": {func(s *config.Sink) { s.Kind = config.SinkBleve }, "bleve"},
		"no address":     {func(s *config.Sink) { s.URL = "search" }, "sink search"},
	}
	for name, tt := range tests {
		s := setup(environment())
		sink := s.Config.Sinks["search"]
		tt.change(&sink)
		s.Config.Sinks["search"] = sink
		_, err := wire(s)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", name, err, tt.says)
		}
	}
}

func TestALoginFromTheEnvironmentIsThereOrNamed(t *testing.T) {
	t.Parallel()
	auth := config.Auth{Kind: config.AuthBasic, UserEnv: "SEARCH_USER", PasswordEnv: "SEARCH_PASSWORD"}
	vars := map[string]string{"SEARCH_USER": "lull"}
	get := login(aws.Config{}, auth, func(name string) string { return vars[name] })
	if _, _, err := get(t.Context()); err == nil || !strings.Contains(err.Error(), "SEARCH_PASSWORD") {
		t.Errorf("got %v", err)
	}
	vars["SEARCH_PASSWORD"] = "secret"
	if user, password, err := get(t.Context()); err != nil || user != "lull" || password != "secret" {
		t.Errorf("got %s, %s, %v", user, password, err)
	}
}
