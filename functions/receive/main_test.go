package main

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

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
		Journal: metrics.New(&bytes.Buffer{}, slog.LevelError, metrics.Base{Stack: "lull", Sink: "search", Function: "receive"}),
	}
}

func TestItIsWiredFromItsNames(t *testing.T) {
	t.Parallel()
	s := setup(environment())
	h, err := wire(s)
	if err != nil || h == nil || s.Missing() != nil {
		t.Fatalf("got %v, %v, missing %v", h, err, s.Missing())
	}
	q, ok := h.(*lambda.Queues)
	if !ok || len(q.Handles) != 2 || q.Handles["lull-search-live"] == nil || q.Handles["lull-search-bulk"] == nil {
		t.Errorf("got %+v, want a handle for each lane", h)
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
