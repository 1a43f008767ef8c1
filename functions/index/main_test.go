package main

import (
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
	"github.com/lullhq/lull/internal/config"
)

func TestWiring(t *testing.T) {
	t.Parallel()
	needed := []string{
		lambda.EnvTable, lambda.EnvBucket, lambda.EnvLiveQueue, lambda.EnvBulkQueue, lambda.EnvDeadQueue,
		lambda.EnvStateMachine,
	}
	lambdatest.Wiring(t, "index", wire, needed, func(t *testing.T, s *lambda.Setup, h lambda.Handler) {
		t.Helper()
		turn, ok := h.(*lambda.Turn)
		if !ok || turn.Limit != s.Config.Index.Timeout {
			t.Errorf("got %+v, want turns of index.timeout", h)
		}
	})
}

func TestTheSinkIsWhatTheSettingsSay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*config.Sink)
		says   string
	}{
		"no authentication": {func(*config.Sink) {}, ""},
		"a secret": {func(s *config.Sink) {
			s.Auth = config.Auth{
				Kind:      config.AuthBasic,
				SecretARN: "arn:aws:secretsmanager:eu-west-1:123456789012:secret:search-AbCdEf",
			}
		}, ""},
		"the environment": {func(s *config.Sink) {
			s.Auth = config.Auth{Kind: config.AuthBasic, UserEnv: "SEARCH_USER", PasswordEnv: "SEARCH_PASSWORD"}
		}, ""},
		"signed":         {func(s *config.Sink) { s.Auth = config.Auth{Kind: config.AuthSigV4, Service: "es"} }, ""},
		"in one process": {func(s *config.Sink) { s.Kind = config.SinkBleve }, "bleve"},
		"no address":     {func(s *config.Sink) { s.URL = "search" }, "sink search"},
	}
	for name, tt := range tests {
		s := lambdatest.Setup("index", lambdatest.Environment(), io.Discard)
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
