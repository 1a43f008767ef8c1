// SPDX-License-Identifier: Apache-2.0

// Package exchange sends HTTP requests to a search engine, for packages that implement a sink.
// After each request, the package says whether the request may have reached the engine. If the
// request did not reach the engine, its documents may be written again at once.
//
// A [Batch] is one call of Write. The package divides the ops into requests and finds the document
// that caused a refusal. The package stops if the engine accepts nothing.
//
// The package promises to send each request at most once: it does not repeat a request, and it does
// not follow redirects. The package does not send a request without credentials. The package reads
// only a bounded part of an answer.
package exchange

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Client sends requests to one engine. A Client is safe for concurrent use.
type Client struct {
	// Kind is the kind of the sink, and Product is the name of the engine. Errors name both.
	Kind, Product string
	// Hints maps the status of a failed answer to what the operator can do. The entry for 0 is for
	// every status that is not listed.
	Hints map[int]string
	// Class returns the engine's name of the error in an answer, or "" if there is none. The name
	// must not quote content of documents. A nil Class means that errors have no name.
	Class func(Answer) string
	// Check returns an error for a successful answer that must not be used, such as an answer of
	// another product. A nil Check accepts every answer.
	Check func(Answer) error
	// Address is the address of the engine, without a slash at the end: see [ParseURL].
	Address string
	// Authenticate adds credentials to a request, by changing its headers. If Authenticate fails,
	// the request is not sent. The errors of Authenticate must not quote secrets. A nil
	// Authenticate adds nothing.
	Authenticate func(*http.Request) error
	// Transport sends requests: see [NewTransport].
	Transport http.RoundTripper
}

// Open returns the client for the engine at a URL. Open sends nothing. If Transport is nil, Open
// makes one. Close the client after use.
func (c Client) Open(url string) (*Client, error) {
	address, err := ParseURL(url, "http://host:port or https://host", "http", "https")
	if err != nil {
		return nil, err
	}
	c.Address = strings.TrimRight(address.String(), "/")
	if c.Transport == nil {
		c.Transport = NewTransport()
	}
	return &c, nil
}

// Close closes idle connections.
func (c *Client) Close() error {
	if t, ok := c.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// Answer is the result of one request.
type Answer struct {
	Status int // 0 if no status line arrived
	Header http.Header
	Body   []byte
	Sent   bool // the request got a connection, so bytes may have reached the engine
	// set if no answer arrived, or only a part of it; an *[AuthError] if authentication failed and
	// nothing was sent
	Err error
}

// OK reports whether the whole answer arrived and its status is a success.
func (a Answer) OK() bool { return a.Err == nil && a.Status >= 200 && a.Status < 300 }

// AuthError says that a request was not sent because authenticating it failed.
type AuthError struct{ Err error }

func (e *AuthError) Error() string { return e.Err.Error() }
func (e *AuthError) Unwrap() error { return e.Err }

// Unauthenticated reports whether the request was not sent because it had no credentials.
func (a Answer) Unauthenticated() bool {
	var auth *AuthError
	return errors.As(a.Err, &auth)
}

// Do sends one request, once, and reads at most limit bytes of the answer. path is escaped and
// begins with a slash. A request with a nil body has no content type. After the deadline of ctx, Do
// sends nothing. Do checks the deadline by the timer and by the wall clock.
func (c *Client) Do(ctx context.Context, method, path, contentType string, body []byte, limit int64) Answer {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	var reader io.Reader = http.NoBody
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Address+path, reader)
	if err != nil {
		return Answer{Err: fmt.Errorf("make request: %w", err)}
	}
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if c.Authenticate != nil {
		err := c.Authenticate(req)
		if err = cmp.Or(err, checkHeaders(req.Header)); err != nil {
			return Answer{Err: &AuthError{err}}
		}
	}
	if late(ctx) {
		return Answer{Err: errLate}
	}
	// not http.Client.Do, which would follow redirects: the engine never redirects
	resp, err := c.Transport.RoundTrip(req)
	if err != nil {
		return Answer{Sent: sent.Load(), Err: fmt.Errorf("%s %s: %w", method, c.Address+path, err)}
	}
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Sent: true}
	a.Body, a.Err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case a.Err != nil:
		a.Err = fmt.Errorf("read answer: %w", a.Err)
	case int64(len(a.Body)) > limit:
		a.Err = fmt.Errorf("answer exceeds %d bytes", limit)
	}
	return a
}

// errLate is the error of a request that was not sent although its context has not ended.
var errLate = fmt.Errorf("%w by the time of day, not by the timer: the machine was suspended, or its clock was changed",
	context.DeadlineExceeded)

// late reports whether the deadline of ctx has passed by the wall clock, but not by the timer. A
// timer does not run while a machine is suspended. Without this check, the machine would then send
// a request that other machines no longer expect.
func late(ctx context.Context) bool {
	now := time.Now()
	at, ok := ctx.Deadline()
	return ok && now.Before(at) && !now.Round(0).Before(at.Round(0))
}

// checkHeaders returns an error if credentials cannot be sent in a header. The transport would
// notice that too late, and its error would look as if the server could not be reached.
func checkHeaders(headers http.Header) error {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	for name, values := range headers {
		if slices.ContainsFunc(values, func(v string) bool { return strings.ContainsFunc(v, control) }) {
			return fmt.Errorf("the header %s would contain a line break or another control character: check the secret", name)
		}
	}
	return nil
}

// ParseURL reads an engine's address, which must have one of the schemes. The errors of ParseURL
// show the example. They never quote the given URL, because the URL might contain a password.
func ParseURL(text, example string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("sink url: this is not a URL")
	case !slices.Contains(schemes, u.Scheme) || u.Host == "":
		return nil, errors.New("sink url: use " + example)
	case u.User != nil:
		return nil, errors.New("sink url: it contains credentials: set them in auth instead")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("sink url: it has a query or a fragment: remove it")
	}
	return u, nil
}

// DialTimeout is shorter than any sensible deadline of a write: if a host does not answer, the
// request counts as never sent, and its outcome is not unknown.
const DialTimeout = 2 * time.Second

// Dial makes a connection and calls [DropUnsent] for it.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: DialTimeout, KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
	DropUnsent(conn)
	return conn, err
}

// DropUnsent makes a connection discard unsent bytes when it is closed. Otherwise a server that
// stalls could get the whole request after lull hung up, and apply it.
func DropUnsent(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // if this fails, fences and leases still protect the order of writes
	}
}

// NewTransport returns a transport for [Client]. Close the transport with CloseIdleConnections.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         Dial,
		TLSHandshakeTimeout: DialTimeout,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     30 * time.Second,
	}
}
