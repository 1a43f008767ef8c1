package console

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// TokenHeader carries the token of a request.
const TokenHeader = "X-Lull-Token" //nolint:gosec // its name, not its value

// NewToken is a token for one life of a server.
func NewToken() string { return rand.Text() }

// Guard says who may ask a server what.
type Guard struct {
	// Token is what a page has to send with what changes something.
	Token string
	// Always asks everybody for the token, even for what only looks: the files of the page are free.
	// Without it, a request that no page has sent needs no token: curl and the commands send none.
	Always bool
}

// The headers of every answer. The policy lets a page load its own files and nothing else, and no
// text can become a script.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
		"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
}

// Protect puts the guard in front of a handler. Loopback says that the server's address is one of
// this machine: it then answers only to a name of this machine. Otherwise a page could let its own
// name resolve to this machine and pass for this origin.
func (g Guard) Protect(h http.Handler, loopback bool) http.Handler {
	foreign := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case loopback && !localName(r.Host):
			Fail(w, http.StatusMisdirectedRequest, "this is localhost, not the host that was asked for")
		case foreign.Check(r) != nil || !free(r) && otherSite(r):
			Fail(w, http.StatusForbidden, "the request comes from a page of another site")
		case !g.known(r) && (g.Always && !free(r) || !reads && byBrowser(r)):
			Fail(w, http.StatusForbidden, "the token is missing or is that of an earlier run: "+
				"open the address that lull printed when it started, or reload the page")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// free is what holds nothing of a stack: the files of the page.
func free(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, assetsPath))
}

// byBrowser reports whether a page sent the request: browsers name the origin of what changes
// something.
func byBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// otherSite reports whether a page of another origin asks. It could not read the answer, but could
// make the server work. A link that somebody follows may lead here. Old browsers do not say from
// which site they come, but name the origin of a stream and of a WebSocket.
func otherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if origin := r.Header.Get("Origin"); site == "" && origin != "" {
		from, err := url.Parse(origin)
		return err != nil || from.Host != r.Host
	}
	return (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// known compares in a time that says nothing about the token.
func (g Guard) known(r *http.Request) bool {
	return g.Token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(TokenHeader)), []byte(g.Token)) == 1
}

// localName reports whether a host is localhost, or an address: a name server cannot redirect an
// address. Not 0.0.0.0, though it leads here: browsers do not say from which site they come to it.
func localName(host string) bool {
	u := url.URL{Host: host}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip := net.ParseIP(name)
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || ip != nil && !ip.IsUnspecified()
}
