// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestTheEnvironmentNamesTheAccount(t *testing.T) {
	t.Parallel()
	cfg, err := FromEnv(env(map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_SESSION_TOKEN": "token",
		"AWS_ENDPOINT_URL":  "http://127.0.0.1:4566",
	}))
	if err != nil {
		t.Fatalf("FromEnv: %v", err)
	}
	who, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil || who.AccessKeyID != "AKIAEXAMPLE" || who.SecretAccessKey != "secret" ||
		who.SessionToken != "token" {
		t.Errorf("got %+v, %v", who, err)
	}
	if cfg.Region != "eu-west-1" || aws.ToString(cfg.BaseEndpoint) != "http://127.0.0.1:4566" {
		t.Errorf("got region %s, endpoint %s", cfg.Region, aws.ToString(cfg.BaseEndpoint))
	}
}

func TestWhatIsMissingIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := FromEnv(env(map[string]string{"AWS_ENDPOINT_URL": "127.0.0.1:4566", "AWS_SECRET_ACCESS_KEY": "hunter2"}))
	if err == nil {
		t.Fatal("got no error")
	}
	for _, name := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "AWS_SECRET_ACCESS_KEY") {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsRetriedBelowUs(t *testing.T) {
	t.Parallel()
	given := &http.Client{}
	cfg := Plain(aws.Config{RetryMaxAttempts: 5, RetryMode: aws.RetryModeAdaptive, HTTPClient: given})
	if r := cfg.Retryer(); r.MaxAttempts() != 1 || r.IsErrorRetryable(errors.New("x")) {
		t.Errorf("the retryer allows %d attempts", r.MaxAttempts())
	}
	if cfg.RetryMaxAttempts != 0 || cfg.RetryMode != "" {
		t.Errorf("the settings make a client wrap the retryer: %d attempts, mode %s; want none", cfg.RetryMaxAttempts, cfg.RetryMode)
	}
	if cfg.HTTPClient != given {
		t.Error("Plain replaced the HTTP client of the caller")
	}
	if Plain(aws.Config{}).HTTPClient == nil {
		t.Error("Plain set no HTTP client")
	}
}

func TestCodesHaveOneSpelling(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"MessageNotInflight":                                         "MessageNotInflight",
		"com.amazonaws.sqs#MessageNotInflight":                       "MessageNotInflight",
		"AWS.SimpleQueueService.MessageNotInflight":                  "MessageNotInflight",
		"SQS.ReceiptHandleIsInvalidException":                        "ReceiptHandleIsInvalid",
		"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException": "ResourceNotFound",
		"Throttling": "Throttling",
		"":           "",
	} {
		err := fmt.Errorf("call: %w", &smithy.GenericAPIError{Code: code})
		if got := Code(err); got != want {
			t.Errorf("%s: got %s, want %s", code, got, want)
		}
	}
	if got := Code(errors.New("Throttling")); got != "" {
		t.Errorf("an error that no service sent has the code %s", got)
	}
	if !Throttled(Normal("ThrottlingException")) || Throttled(Normal("ServiceUnavailable")) || Throttled("") {
		t.Error("Throttled is wrong for ThrottlingException, ServiceUnavailable or an empty code")
	}
	if !Denied(Normal("AccessDeniedException")) || Denied(Normal("ResourceNotFoundException")) || Denied("") {
		t.Error("denied")
	}
}

func TestAnAttemptEndsByItsOwnTime(t *testing.T) {
	t.Parallel()
	wait := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 7, ctx.Err()
	}
	_, err := Attempt(t.Context(), time.Millisecond, wait)
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an error that is neither a deadline nor a cancellation of the caller", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = Attempt(ended, time.Minute, wait); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation of the caller", err)
	}
	// A time-out of the HTTP transport also looks like a deadline.
	late := func(context.Context) (int, error) { return 0, context.DeadlineExceeded }
	if _, err = Attempt(t.Context(), time.Minute, late); errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	answer := func(context.Context) (int, error) { return 7, nil }
	if n, err := Attempt(t.Context(), time.Minute, answer); n != 7 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

// silent never answers a request.
type silent struct{}

func (silent) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestEveryCallOfABoundedClientEnds(t *testing.T) {
	t.Parallel()
	given := aws.Config{Region: "eu-west-1", HTTPClient: silent{}, Credentials: aws.AnonymousCredentials{}}
	api := dynamodb.NewFromConfig(Bounded(given, time.Millisecond))
	_, err := api.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("shards")})
	if err == nil || !strings.Contains(err.Error(), "no answer within 1ms") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if len(given.APIOptions) != 0 {
		t.Error("Bounded changed the settings of the caller")
	}
}

func TestOnlyAnEmulatorOnThisMachineHasMoreTime(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]time.Duration{
		"":                                       1, // requests go to AWS
		"http://127.0.0.1:4566":                  patience,
		"http://127.8.0.1:4566":                  patience,
		"http://[::1]:4566":                      patience,
		"http://LOCALHOST:4566":                  patience,
		"http://localhost":                       patience,
		"https://localhost:4567":                 patience,
		"http://localhost.localstack.cloud:4566": patience,
		"http://sqs.us-east-1.localhost.localstack.cloud:4566": patience,

		"https://vpce-0a1b2c3d-e4f5.sqs.eu-west-1.vpce.amazonaws.com": 1,
		"https://dynamodb-fips.us-gov-west-1.amazonaws.com":           1,
		"http://10.0.0.7:4566":                                1,
		"http://host.docker.internal:4566":                    1,
		"https://localhost.example.org":                       1,
		"https://notlocalhost.localstack.cloud":               1,
		"https://proxy.example.org/?to=localhost":             1,
		"https://localhost@proxy.example.org":                 1,
		"127.0.0.1:4566":                                      1, // not a URL: FromEnv refuses it
		"http://127.0.0.1:4566\n":                             1,
		"https://evil.example.org/localhost.localstack.cloud": 1,
	} {
		cfg := aws.Config{}
		if endpoint != "" {
			cfg.BaseEndpoint = &endpoint
		}
		if got := Limit(cfg, time.Second); got != want*time.Second {
			t.Errorf("%q: got %s, want %s", endpoint, got, want*time.Second)
		}
	}
}
