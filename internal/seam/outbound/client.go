// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

const (
	// DialTimeout bounds how long connecting to a host takes.
	DialTimeout = 2 * time.Second
	// maxIdle is how many idle connections to a host are kept.
	maxIdle = 32
	// maxHeader bounds the headers of an answer, in bytes.
	maxHeader = 64 << 10
)

// ErrForbidden says that lull may not connect to an address.
var ErrForbidden = errors.New("address is not public")

// Client returns a client for hosts that senders or settings name. The client follows no redirects,
// and uses [Transport].
func Client(allowed func(netip.Addr) bool) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     Transport(allowed),
	}
}

// Transport returns a transport that uses no proxy. The transport checks every address when it
// connects, after the name was resolved. So a name cannot lead to another address later. If allowed
// refuses the address, the error is [ErrForbidden].
func Transport(allowed func(netip.Addr) bool) *http.Transport {
	dialer := &net.Dialer{Timeout: DialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(to.Addr().Unmap()) {
			return ErrForbidden
		}
		return nil
	}}
	return &http.Transport{
		// No Proxy: a proxy would connect to any address for lull.
		DialContext: dialer.DialContext, TLSHandshakeTimeout: DialTimeout, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: maxHeader,
	}
}

// Rules say what the answers of a kind of host mean.
type Rules struct {
	Unanswered func(error) error          // the error of a request without a complete answer
	Judge      func(*http.Response) error // returns nil if the body is the requested data
	Most       int64                      // the largest body, in bytes
	TooLarge   error                      // the error for a larger body
}

// Ask sends a request once, and returns the body of the answer.
func (r Rules) Ask(client interface {
	Do(r *http.Request) (*http.Response, error)
}, req *http.Request,
) ([]byte, error) {
	res, err := client.Do(req)
	if err != nil {
		return nil, r.Unanswered(err)
	}
	defer res.Body.Close()
	if err := r.Judge(res); err != nil {
		return nil, err
	}
	if res.ContentLength > r.Most {
		return nil, r.TooLarge
	}
	// The transport decompresses while it reads, so the limit also holds for a small compressed
	// answer.
	body, err := io.ReadAll(io.LimitReader(res.Body, r.Most+1))
	switch {
	case err != nil:
		return nil, r.Unanswered(err)
	case int64(len(body)) > r.Most:
		return nil, r.TooLarge
	}
	return body, nil
}

// Silence is the reason why a request of a [Client] has no answer.
type Silence byte

// The reasons why there is no answer.
const (
	Broken      Silence = iota // the connection broke, or any other reason
	Forbidden                  // lull may not connect to the host's address
	NoAddress                  // the host's name has no address
	Untrusted                  // the host's certificate is not trusted
	Unreachable                // lull cannot connect to the host
	TooLate                    // the host did not answer in time
)

// WhySilent finds the reason in the error of a request without an answer.
func WhySilent(err error) Silence {
	var dns *net.DNSError
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrForbidden):
		return Forbidden
	case errors.As(err, &dns):
		return NoAddress
	case errors.As(err, &certificate):
		return Untrusted
	case errors.As(err, &dial) && dial.Op == "dial":
		return Unreachable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return TooLate
	}
	return Broken
}

// Reachable returns a function that reports whether a host in the settings may have an address.
// Public addresses are allowed. If the settings name the host as private, private addresses and
// this machine are allowed too. The address of a cloud's own service, such as 169.254.169.254, is
// never allowed.
func Reachable(private bool) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		a = a.Unmap().WithZone("")
		return Public(a) || private && (a.IsPrivate() && !ofPlatform(a) || a.IsLoopback())
	}
}
