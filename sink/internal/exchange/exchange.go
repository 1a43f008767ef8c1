// Package exchange sends one HTTP request to an engine, and says what is known about it afterwards.
// It is for kinds of sinks. If a request did not reach the engine, its documents may be written
// again at once.
//
// A [Batch] is one write. It divides ops into requests and finds the document that caused a
// refusal. It stops when the engine accepts nothing.
//
// It promises that a request is sent once: it is never repeated, and redirects are not followed. A
// request without credentials is not sent, and only a bounded part of an answer is read.
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

// Client is where requests go. It is safe for concurrent use.
type Client struct {
	// Kind is the kind of the sink, and Product what the engine is called: errors say both.
	Kind, Product string
	// Hints say by status what helps against an answer that is an error; by 0 against any other.
	Hints map[int]string
	// Class names the error of an answer, "" for none: plain words of the engine, never content. Nil
	// names none.
	Class func(Answer) string
	// Check refuses a successful answer, such as that of another product. Nil refuses none.
	Check func(Answer) error
	// Address is the engine's, without a slash at its end: see [ParseURL].
	Address string
	// Authenticate adds credentials to a request, by changing its headers. If it fails, nothing is
	// sent. Its errors must not quote secrets. Nil adds none.
	Authenticate func(*http.Request) error
	// Transport sends requests: see [NewTransport].
	Transport http.RoundTripper
}

// Open returns the client for the engine at a URL. It sends nothing. If there is no transport, it
// makes one. Close it after use.
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
	Sent   bool  // there was a connection, so bytes may have reached the engine
	Err    error // no answer, or only a part of it; an *[AuthError] if authentication failed and nothing was sent
}

// OK reports whether the whole answer arrived and says success.
func (a Answer) OK() bool { return a.Err == nil && a.Status >= 200 && a.Status < 300 }

// AuthError says that a request was not sent because it could not be authenticated.
type AuthError struct{ Err error }

func (e *AuthError) Error() string { return e.Err.Error() }
func (e *AuthError) Unwrap() error { return e.Err }

// Unauthenticated reports whether the request was not sent because it had no credentials.
func (a Answer) Unauthenticated() bool {
	var auth *AuthError
	return errors.As(a.Err, &auth)
}

// Do sends one request, once, and reads at most limit bytes of the answer. path is escaped and
// begins with a slash. A nil body has no content type. After the deadline of ctx nothing is sent.
// Do checks the deadline by the timer and by the time of day.
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
		if err = cmp.Or(err, unsendable(req.Header)); err != nil {
			return Answer{Err: &AuthError{err}}
		}
	}
	if late(ctx) {
		return Answer{Err: errLate}
	}
	resp, err := c.Transport.RoundTrip(req) // not a client's: whatever redirects is not the engine
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

// errLate is why nothing was sent although the context has not ended.
var errLate = fmt.Errorf("%w by the time of day, not by the timer: the machine was suspended, or its clock was changed",
	context.DeadlineExceeded)

// late reports whether the deadline of ctx is over by the time of day alone. A timer does not run
// while a machine is suspended: the machine would go on with a request that others do not expect
// any more.
func late(ctx context.Context) bool {
	now := time.Now()
	at, ok := ctx.Deadline()
	return ok && now.Before(at) && !now.Round(0).Before(at.Round(0))
}

// unsendable is the error of credentials that no header can hold. The transport would say so too
// late, and as of a server that cannot be reached.
func unsendable(headers http.Header) error {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	for name, values := range headers {
		if slices.ContainsFunc(values, func(v string) bool { return strings.ContainsFunc(v, control) }) {
			return fmt.Errorf("the header %s would contain a line break or another control character: check the secret", name)
		}
	}
	return nil
}

// ParseURL reads an engine's address, which has one of the schemes and looks like the example. Its
// errors never quote the URL: it might hold a password.
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

// DialTimeout is shorter than any sensible deadline of a write: a host that does not answer must
// show as a request that was never sent, not as one whose outcome is unknown.
const DialTimeout = 2 * time.Second

// Dial makes a connection: see [DropUnsent].
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: DialTimeout, KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
	DropUnsent(conn)
	return conn, err
}

// DropUnsent lets a connection drop what it has not sent when it is closed. A server that stalls
// would otherwise get the whole of a request after we hung up, and apply it.
func DropUnsent(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // if it cannot be set, fences and leases still protect the order
	}
}

// NewTransport returns a transport for [Client]. Close it with CloseIdleConnections.
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
