package client

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
)

// patience is how many times longer a request to an emulator may take: an emulator shares its
// processors with the caller.
const patience = 5

// Bounded is Plain for clients whose calls end after limit, as Attempt ends them. A call whose
// answer is read after it has returned (S3's GetObject) needs Attempt around both: leave the
// client's APIOptions out of that call.
func Bounded(cfg aws.Config, limit time.Duration) aws.Config {
	cfg = Plain(cfg)
	limit = Limit(cfg, limit)
	call := func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
		out middleware.InitializeOutput, about middleware.Metadata, err error,
	) {
		out, err = Attempt(ctx, limit, func(ctx context.Context) (out middleware.InitializeOutput, err error) {
			out, about, err = next.HandleInitialize(ctx, in)
			return out, err
		})
		return out, about, err
	}
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), func(s *middleware.Stack) error {
		return s.Initialize.Add(middleware.InitializeMiddlewareFunc("limit", call), middleware.Before)
	})
	return cfg
}

// Limit is the limit for a request to the endpoint of these settings. AWS answers in milliseconds,
// and a late answer is as good as none. An endpoint on this very machine is an emulator, which
// answers late on a busy machine. Every other endpoint may be AWS: VPC endpoints and FIPS proxies
// also have special addresses.
func Limit(cfg aws.Config, limit time.Duration) time.Duration {
	u, err := url.Parse(aws.ToString(cfg.BaseEndpoint))
	if err != nil {
		return limit
	}
	host := strings.ToLower(u.Hostname())
	ip, err := netip.ParseAddr(host)
	local := err == nil && ip.Unmap().IsLoopback() || host == "localhost" ||
		strings.HasSuffix("."+host, ".localhost.localstack.cloud") // LocalStack's name for this machine
	if local {
		limit *= patience
	}
	return limit
}

// Attempt makes one request that may take no longer than limit. If no answer arrives in that time,
// Attempt returns its own error and not the context's. The caller still has time, and the outcome
// of the request is unknown.
func Attempt[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	call, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := f(call)
	if err != nil && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || call.Err() != nil) {
		// Not wrapped: a deadline in the chain would say that repeating is useless.
		return out, fmt.Errorf("no answer within %s", limit)
	}
	return out, err
}
