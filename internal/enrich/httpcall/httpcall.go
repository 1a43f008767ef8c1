// Package httpcall asks an enricher over HTTP: one POST, no proxy, no redirect, no retry.
//
// It connects to addresses of the public internet only, unless the settings name the host. An
// address is judged after the name was resolved, so a name cannot lead elsewhere later. Neither
// errors nor logs hold the address, a header or a body.
package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lullhq/lull/internal/enrich"
	"github.com/lullhq/lull/internal/payload"
)

const (
	dialTimeout = 2 * time.Second
	// maxRetryAfter bounds what a service may ask for: a slip in its clock must not stop anything for
	// a day.
	maxRetryAfter = time.Hour
)

// Caller posts requests to one address. It is safe for concurrent use.
type Caller struct {
	url    string
	header func(context.Context) (map[string]string, error)
	client *http.Client
}

// New returns a caller. header gives the headers of each request by name, nil for none; it should
// cache. private are the hosts that may have addresses outside the public internet.
func New(address string, private []string, header func(context.Context) (map[string]string, error)) *Caller {
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	named := slices.ContainsFunc(private, func(p string) bool { return strings.EqualFold(p, host) })
	dialer := &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if a := to.Addr().Unmap(); err != nil || !payload.Public(a) && !(named && (a.IsPrivate() || a.IsLoopback())) {
			return errForbidden
		}
		return nil
	}}
	return &Caller{url: address, header: header, client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			// No proxy: it would connect for us, to wherever it likes.
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
		},
	}}
}

var errForbidden = errors.New("address is not public")

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

// Do sends a request and judges the answer. It is the one place that knows what a status means.
func Do(client interface {
	Do(r *http.Request) (*http.Response, error)
}, req *http.Request,
) ([]byte, error) {
	res, err := client.Do(req)
	if err != nil {
		return nil, unsent(err)
	}
	defer res.Body.Close()
	if f := judge(res); f != nil {
		return nil, f
	}
	if res.ContentLength > enrich.MaxAnswer {
		return nil, enrich.TooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, enrich.MaxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err) // its reason is not shown: see enrich.Ask
	}
	return body, nil
}

// unsent judges a request without an answer. One that reached nobody would reach nobody with
// fewer documents.
func unsent(err error) error {
	var failure *enrich.Failure
	var dial *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.Is(err, errForbidden):
		return &enrich.Failure{Reason: "its host has an address that is not public: name it under allowPrivate"}
	case errors.As(err, &dns):
		return &enrich.Failure{Reason: "its host has no address"}
	case errors.As(err, &dial) && dial.Op == "dial":
		return &enrich.Failure{Reason: "it cannot be connected to"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &enrich.Failure{Late: true, Reason: "no answer in time"}
	}
	return &enrich.Failure{Smaller: true, Reason: "the connection broke"}
}

func judge(res *http.Response) *enrich.Failure {
	status := res.StatusCode
	f := &enrich.Failure{Reason: fmt.Sprintf("it answered %d", status), RetryAfter: retryAfter(res.Header)}
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

// retryAfter reads seconds, or an HTTP date, which is relative to the answer's own.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	date, dated := http.ParseTime(h.Get("Date"))
	if err != nil || dated != nil {
		return 0
	}
	return min(max(at.Sub(date), 0), maxRetryAfter)
}
