package console

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// TokenHeader is the header with the token of a request.
const TokenHeader = "X-Lull-Token" //nolint:gosec // its name, not its value

// NewToken makes a random token, for one run of a server.
func NewToken() string { return rand.Text() }

// Guard decides which requests a server answers.
type Guard struct {
	// Token is required in requests of a page that change something.
	Token string
	// Always requires the token in all requests, except for the files of the page. Without Always,
	// a request that no page sent needs no token, because curl and the commands have none.
	Always bool
}

// headers are set in every answer. The policy allows a page to load only its own files, and
// prevents that a text becomes a script.
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

// Protect puts the guard in front of a handler. loopback says that the server listens on this
// machine only. The guard then refuses a request for the name of another host. Otherwise another
// site could let its name resolve to this machine, and so count as the same origin.
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
		case foreign.Check(r) != nil || otherSite(r):
			Fail(w, http.StatusForbidden, "the request comes from a page of another site")
		case !g.known(r) && (g.Always && !free(r) || !reads && byBrowser(r)):
			Fail(w, http.StatusForbidden, "the token is missing or is that of an earlier run: "+
				"open the address that lull printed when it started, or reload the page")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// free reports whether a request is for the files of the page, which hold no data of a stack.
func free(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, assetsPath))
}

// byBrowser reports whether a page sent the request. A browser sends an origin with each request
// that changes something.
func byBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// otherSite reports whether a page of another origin sent a request that is not allowed. That page
// could not read the answer, but could cause work. A link to the console is allowed in a tab, but
// not in a frame. Old browsers do not send the site, but send the origin for streams and
// WebSockets.
func otherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if origin := r.Header.Get("Origin"); site == "" && origin != "" {
		from, err := url.Parse(origin)
		return !free(r) && (err != nil || from.Host != r.Host)
	}
	if site != "cross-site" && site != "same-site" {
		return false
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return r.Header.Get("Sec-Fetch-Dest") != "document"
	}
	return !free(r)
}

// known checks the token in constant time, so that the time does not reveal parts of it.
func (g Guard) known(r *http.Request) bool {
	return g.Token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(TokenHeader)), []byte(g.Token)) == 1
}

// localName reports whether a host is localhost or an IP address, which a name server cannot
// redirect. 0.0.0.0 is refused, although it reaches this machine: browsers do not send the site for
// it.
func localName(host string) bool {
	u := url.URL{Host: host}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip := net.ParseIP(name)
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || ip != nil && !ip.IsUnspecified()
}
