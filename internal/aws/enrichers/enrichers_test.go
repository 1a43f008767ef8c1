// SPDX-License-Identifier: Apache-2.0

package enrichers

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/aws/sinks"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/enrich"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const arn = "arn:aws:lambda:eu-west-1:123456789012:function:embed:live"

// opened opens the enricher of the collection. The enricher sends the requests that are meant for
// AWS to h.
func opened(t *testing.T, e config.Enrich, env string, h http.HandlerFunc) (enrich.Caller, error) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	cfg := config.Default()
	cfg.Collections = map[string]config.Collection{"c": {Enrich: &e}, "d": {}}
	cfg.Complete()
	all, err := Open(t.Context(), &cfg, "search", sinks.Account{
		Getenv: func(string) string { return env },
		AWS: func(context.Context) (aws.Config, error) {
			return aws.Config{
				Region: "us-east-1", BaseEndpoint: aws.String(s.URL), HTTPClient: s.Client(),
				Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "token"),
			}, nil
		},
	})
	if len(all) != 1 {
		t.Errorf("got %v, want one enricher, for one collection", all)
	}
	return all["c"], err
}

func TestAFunctionIsInvoked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header string
		body   string
		want   enrich.Failure
	}{
		"an answer":            {200, "", `{"documents":[]}`, enrich.Failure{}},
		"the function's error": {200, "Unhandled", `{"errorMessage":"content"}`, enrich.Failure{Smaller: true, Reason: "the function failed"}},
		"throttled":            {429, "", "", enrich.Failure{Throttled: true, Reason: "it answered 429"}},
		"no permission":        {403, "", "", enrich.Failure{Reason: "it answered 403: correct its url, or its headers"}},
		"too large":            {413, "", "", enrich.Failure{Smaller: true, Reason: "it answered 413"}},
	} {
		caller, err := opened(
			t,
			config.Enrich{Kind: config.EnrichLambda, FunctionARN: arn},
			"",
			func(w http.ResponseWriter, r *http.Request) {
				if got := r.URL.Path; got != "/2015-03-31/functions/"+arn+"/invocations" ||
					r.Method != http.MethodPost ||
					!strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/lambda/aws4_request") {
					t.Errorf("%s: got %s %s, %s", name, r.Method, got, r.Header.Get("Authorization"))
				}
				if c.header != "" {
					w.Header().Set("X-Amz-Function-Error", c.header)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		text, err := caller.Call(t.Context(), []byte("{}"))
		var f *enrich.Failure
		if errors.As(err, &f); f == nil && (c.want != enrich.Failure{} || string(text) != c.body) ||
			f != nil && *f != c.want {
			t.Errorf("%s: got %s, %v, want %+v", name, text, err, c.want)
		}
	}
}

func TestHeadersComeFromASecretOrTheEnvironment(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("X-Api-Key")
	}))
	defer service.Close()
	e := config.Enrich{
		Kind: config.EnrichHTTP, URL: service.URL, AllowPrivate: []string{"127.0.0.1"},
		Headers: config.Headers{SecretARN: "arn:aws:secretsmanager:eu-west-1:123456789012:secret:x-AbCdEf"},
	}
	secret := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"SecretString":"{\"X-Api-Key\":\"from the secret\"}"}`))
	}
	ask := func(want string) {
		t.Helper()
		caller, err := opened(t, e, `{"X-Api-Key":"from the environment"}`, secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := caller.Call(t.Context(), nil); err != nil || <-got != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	ask("from the secret")
	e.Headers = config.Headers{Env: "HEADERS"}
	ask("from the environment")
	e.Headers = config.Headers{}
	ask("")
	e.Headers = config.Headers{Env: "HEADERS"}
	for _, bad := range []string{"", "hunter2", `{"X":1}`, `{"X y":"hunter2"}`, `{"X":"hunter2\r\nY: 1"}`, `{}`} {
		if _, err := opened(t, e, bad, secret); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error that does not contain the secret", bad, err)
		}
	}
}
