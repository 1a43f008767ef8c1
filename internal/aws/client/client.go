// SPDX-License-Identifier: Apache-2.0

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
	// connectTimeout is the time-out for setting up a connection. Within a region this takes a few
	// milliseconds.
	connectTimeout = 2 * time.Second
	// maxIdle is how many idle connections are kept: one for each of the parallel calls of an
	// invocation. A new connection costs a TLS handshake.
	maxIdle = 64
)

// FromEnv returns the settings for clients from environment variables. Lambda sets AWS_REGION,
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. AWS_ENDPOINT_URL is optional and
// replaces the endpoint of AWS. The error names all missing variables.
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

// Plain returns the settings with the retries of the SDK switched off, and with enough idle
// connections for the parallel calls of a function.
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
