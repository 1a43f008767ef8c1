package client

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

const (
	// connectTimeout bounds a connection's set-up. Within a region it takes a few milliseconds.
	connectTimeout = 2 * time.Second
	// maxIdle keeps a connection for each of the parallel calls of one invocation: a new one costs
	// a TLS handshake.
	maxIdle = 64
)

// FromEnv returns the settings for clients of the account that the environment names: AWS_REGION,
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, as Lambda sets them, and
// AWS_ENDPOINT_URL for another endpoint than AWS's own. The error names everything that is missing.
func FromEnv(getenv func(string) string) (aws.Config, error) {
	region, key, secret := getenv("AWS_REGION"), getenv("AWS_ACCESS_KEY_ID"), getenv("AWS_SECRET_ACCESS_KEY")
	var errs []error
	for _, v := range []struct{ name, value string }{
		{"AWS_REGION", region}, {"AWS_ACCESS_KEY_ID", key}, {"AWS_SECRET_ACCESS_KEY", secret},
	} {
		if v.value == "" {
			errs = append(errs, fmt.Errorf("%s is not set", v.name))
		}
	}
	endpoint := getenv("AWS_ENDPOINT_URL")
	if endpoint != "" {
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("AWS_ENDPOINT_URL is not an http or https address"))
		}
	}
	if len(errs) > 0 {
		return aws.Config{}, fmt.Errorf("read environment: %w", errors.Join(errs...))
	}
	cfg := aws.Config{
		Region:      region,
		Credentials: credentials.NewStaticCredentialsProvider(key, secret, getenv("AWS_SESSION_TOKEN")),
	}
	if endpoint != "" {
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	return Plain(cfg), nil
}

// Plain returns the settings without the SDK's own retries and with connections enough for a
// function's parallel calls.
func Plain(cfg aws.Config) aws.Config {
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	cfg.RetryMaxAttempts, cfg.RetryMode = 0, ""
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient().
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
			WithTransportOptions(func(t *http.Transport) { t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*maxIdle, maxIdle })
	}
	return cfg
}
