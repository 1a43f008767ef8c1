package payload

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/lullhq/lull/source"
)

const (
	// dialTimeout bounds connecting.
	dialTimeout = 2 * time.Second
	// maxIdle is how many connections to a host are kept for the next requests.
	maxIdle = 32
	// maxHeader bounds the headers of an answer, in bytes.
	maxHeader = 64 << 10
)

// ErrForbidden says that an address may not be connected to.
var ErrForbidden = errors.New("address is not public")

// Client returns a client for hosts that senders or settings name. It follows no redirect. Its
// transport is [Transport].
func Client(allowed func(netip.Addr) bool) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     Transport(allowed),
	}
}

// Transport uses no proxy. Every address is judged when it is connected to, after its name was
// resolved: so a name cannot lead elsewhere later. What allowed refuses is [ErrForbidden].
func Transport(allowed func(netip.Addr) bool) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(to.Addr().Unmap()) {
			return ErrForbidden
		}
		return nil
	}}
	return &http.Transport{
		// No proxy: it would connect for us, to wherever it likes.
		DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: maxHeader,
	}
}

// Rules say what the answers of a kind of host mean.
type Rules struct {
	Unanswered func(error) error          // the error of a request without a whole answer
	Judge      func(*http.Response) error // nil where the body is what was asked for
	Most       int64                      // bytes of a body
	TooLarge   error                      // of a body with more
}

// Ask sends a request as it is, once, and returns the body of the answer.
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
	// The transport unpacks as it reads, so a small answer that unpacks to much costs no more.
	body, err := io.ReadAll(io.LimitReader(res.Body, r.Most+1))
	switch {
	case err != nil:
		return nil, r.Unanswered(err)
	case int64(len(body)) > r.Most:
		return nil, r.TooLarge
	}
	return body, nil
}

// Silence is why a request of a [Client] has no answer.
type Silence byte

// Why there is no answer.
const (
	Broken      Silence = iota // the connection broke, or anything else
	Forbidden                  // the host's address may not be connected to
	NoAddress                  // the host has none
	Untrusted                  // its certificate is not trusted
	Unreachable                // it cannot be connected to
	TooLate                    // the time was over
)

// WhySilent judges the error of a request without an answer.
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

// Connect opens a connection to the host that documents are fetched from, as Fetch does, and closes
// it. It sends no request: a source would log one for a document that is not there, and its
// operators would search for it.
func Connect(ctx context.Context, f source.Fetch) error {
	u, err := url.Parse(f.URL)
	if err != nil {
		return invalidFetch("its address is not one")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
	defer cancel()
	port := "443"
	if u.Scheme == "http" {
		port = "80"
	}
	conn, err := Transport(Reachable(f.Private())).DialContext(ctx, "tcp",
		net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)))
	if err != nil {
		return unanswered(err)
	}
	defer func() { _ = conn.Close() }() // nothing was said on it
	if u.Scheme == "http" {
		return nil
	}
	with := &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	if err := tls.Client(conn, with).HandshakeContext(ctx); err != nil {
		return unanswered(err)
	}
	return nil
}

// Reachable is which addresses a host of the settings may have: public ones, and private ones and
// this machine where the settings name it.
func Reachable(private bool) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return Public(a) || private && (a.IsPrivate() || a.IsLoopback()) }
}
