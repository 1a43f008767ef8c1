// SPDX-License-Identifier: Apache-2.0

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

// patience is the factor by which time-outs are longer for an emulator, because an emulator shares
// its processors with the caller.
const patience = 5

// Bounded returns the settings of Plain, with a time-out for each call, as in Attempt. S3's
// GetObject returns before its answer is read. For such a call, use Attempt around the call and the
// reading, and remove the client's APIOptions from the call.
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

// Limit returns the time-out for a request to the endpoint of these settings. AWS answers in
// milliseconds, so a longer wait is useless. An endpoint on this machine is an emulator, which
// answers late on a busy machine, so the time-out is longer. Every other endpoint may be AWS: VPC
// endpoints and FIPS proxies also have special addresses.
func Limit(cfg aws.Config, limit time.Duration) time.Duration {
	u, err := url.Parse(aws.ToString(cfg.BaseEndpoint))
	if err != nil {
		return limit
	}
	host := strings.ToLower(u.Hostname())
	ip, err := netip.ParseAddr(host)
	local := err == nil && ip.Unmap().IsLoopback() || host == "localhost" ||
		strings.HasSuffix("."+host, ".localhost.localstack.cloud") // a name with which LocalStack names this machine
	if local {
		limit *= patience
	}
	return limit
}

// Attempt makes one request with the time-out limit. If no answer arrives in that time, Attempt
// does not return the error of the context, because the caller still has time. The outcome of the
// request is then unknown.
func Attempt[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	call, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := f(call)
	if err != nil && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || call.Err() != nil) {
		// Do not wrap err: an error that wraps a deadline would count as final, and would not be
		// retried.
		return out, fmt.Errorf("no answer within %s", limit)
	}
	return out, err
}
