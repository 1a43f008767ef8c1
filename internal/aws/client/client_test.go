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
			t.Errorf("%s is not named: %v", name, err)
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
		t.Errorf("a client would wrap the retryer: %d attempts, mode %s", cfg.RetryMaxAttempts, cfg.RetryMode)
	}
	if cfg.HTTPClient != given {
		t.Error("the caller's client was replaced")
	}
	if Plain(aws.Config{}).HTTPClient == nil {
		t.Error("there is no client")
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
		t.Error("only what was certainly not done is throttled")
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
		t.Errorf("got %v: its own time is not the caller's", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = Attempt(ended, time.Minute, wait); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's end", err)
	}
	// The transport's own time-outs pass for deadlines, too.
	if _, err = Attempt(t.Context(), time.Minute,
		func(context.Context) (int, error) { return 0, context.DeadlineExceeded }); errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if n, err := Attempt(t.Context(), time.Minute, func(context.Context) (int, error) { return 7, nil }); n != 7 ||
		err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}
