// SPDX-License-Identifier: Apache-2.0

// Package httpcall calls an enricher over HTTP: one POST, without proxy, redirects or retries.
//
// Package httpcall connects only to addresses of the public internet, unless the settings name the
// host as private. It checks the address after the name was resolved, so that a name cannot lead to
// another place later. Neither errors nor logs contain the address, a header or a body.
package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/outbound"
)

// Caller posts requests to one address. It is safe for concurrent use.
type Caller struct {
	url    string
	header func(context.Context) (map[string]string, error)
	client *http.Client
}

// New returns a caller. header returns the headers of each request, and should cache them; it is
// nil if there are no headers. private lists the hosts that may have addresses outside of the
// public internet.
func New(address string, private []string, header func(context.Context) (map[string]string, error)) *Caller {
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	named := slices.ContainsFunc(private, func(p string) bool { return strings.EqualFold(p, host) })
	return &Caller{url: address, header: header, client: outbound.Client(outbound.Reachable(named))}
}

// Call posts a request.
func (c *Caller) Call(ctx context.Context, request []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(request))
	if err != nil {
		return nil, &enrich.Failure{Reason: "its url is not an address"}
	}
	if c.header != nil {
		headers, err := c.header(ctx)
		if err != nil {
			return nil, &enrich.Failure{Reason: "its headers cannot be read"}
		}
		for name, value := range headers {
			req.Header.Set(name, value)
		}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	return Do(c.client, req)
}

// Do sends a request and judges the answer. Only this function knows the meaning of a status.
func Do(client interface {
	Do(r *http.Request) (*http.Response, error)
}, req *http.Request,
) ([]byte, error) {
	of := outbound.Rules{Unanswered: unsent, Judge: judge, Most: enrich.MaxAnswer, TooLarge: enrich.TooLarge()}
	return of.Ask(client, req)
}

// unsent returns the failure of a request without an answer.
func unsent(err error) error {
	var failure *enrich.Failure
	if errors.As(err, &failure) {
		return failure
	}
	of := silences[outbound.WhySilent(err)]
	return &of
}

// silences has the failure for each reason why a request got no answer. A failed connect is not
// marked Smaller, because a request with fewer documents would not reach the service either.
var silences = map[outbound.Silence]enrich.Failure{
	outbound.Broken:      {Smaller: true, Reason: "the connection broke"},
	outbound.Forbidden:   {Reason: "its host has an address that is not public: name it under allowPrivate"},
	outbound.NoAddress:   {Reason: "its host has no address"},
	outbound.Untrusted:   {Reason: "its certificate is not trusted"},
	outbound.Unreachable: {Reason: "it cannot be connected to"},
	outbound.TooLate:     {Late: true, Reason: "no answer in time"},
}

func judge(res *http.Response) error {
	status := res.StatusCode
	f := &enrich.Failure{Reason: fmt.Sprintf("it answered %d", status), RetryAfter: backoff.After(res.Header, time.Now())}
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		f.Throttled = true
	case status < 400: // a redirect, or an answer without content
		f.Reason += ": redirects are not followed, and 200 is the only success"
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound,
		status == http.StatusMethodNotAllowed:
		f.Reason += ": correct its url, or its headers"
	default:
		f.Smaller = true
	}
	return f
}
