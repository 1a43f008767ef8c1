package payload

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
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

// Reachable is which addresses a host of the settings may have: public ones, and private ones and
// this machine where the settings name it.
func Reachable(private bool) func(netip.Addr) bool {
	return func(a netip.Addr) bool { return Public(a) || private && (a.IsPrivate() || a.IsLoopback()) }
}
