package functions

import (
	"io"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
	"github.com/lullhq/lull/internal/config"
	_ "github.com/lullhq/lull/sink/builtin"
)

func TestIndexWiring(t *testing.T) {
	t.Parallel()
	needed := []string{
		lambda.EnvTable, lambda.EnvBucket, lambda.EnvLiveQueue, lambda.EnvBulkQueue, lambda.EnvDeadQueue,
		lambda.EnvExpress, lambda.EnvStandard,
	}
	lambdatest.Wiring(t, "index", wireIndex, needed, func(t *testing.T, s *lambda.Setup, h lambda.Handler) {
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
		"an empty environment": {func(s *config.Sink) {
			s.Auth = config.Auth{Kind: config.AuthBasic, UserEnv: "SEARCH_USER", PasswordEnv: "SEARCH_PASSWORD"}
		}, "SEARCH_PASSWORD"},
		"signed":                    {func(s *config.Sink) { s.Auth = config.Auth{Kind: config.AuthSigV4, Service: "es"} }, ""},
		"a kind that is not linked": {func(s *config.Sink) { s.Kind = "ndjson" }, "import the package of the kind"},
		"no address":                {func(s *config.Sink) { s.URL = "search" }, "sinks.search"},
	}
	for name, tt := range tests {
		s := lambdatest.Setup("index", lambdatest.Environment(), io.Discard)
		sink := s.Config.Sinks["search"]
		tt.change(&sink)
		s.Config.Sinks["search"] = sink
		_, err := wireIndex(s)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", name, err, tt.says)
		}
	}
}
