// SPDX-License-Identifier: Apache-2.0

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
const TokenHeader = "X-Lull-Token" //nolint:gosec // the name of the header, and not a token

// NewToken makes a random token, for one run of a server.
func NewToken() string { return rand.Text() }

// Guard decides which requests a server answers.
type Guard struct {
	// Token is required in requests of a page that change something.
	Token string
	// Always requires the token in all requests, except for the files of the page. Without Always,
	// only a page needs the token: curl and the commands have no token.
	Always bool
}

// headers are set in every answer. The content security policy allows a page to load only its own
// files, and prevents a text from being run as a script.
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

// Protect puts the guard in front of a handler. If loopback is true, the server listens only on
// this machine, and the guard refuses a request that names another host. Otherwise, another site
// could let its name resolve to this machine, and its pages would count as the same origin.
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
		case !g.hasToken(r) && (g.Always && !isPageFile(r) || !reads && byBrowser(r)):
			Fail(w, http.StatusForbidden, "the token is missing or is that of an earlier run: "+
				"open the address that lull printed when it started, or reload the page")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// isPageFile reports whether a request is for a file of the page. These files contain no data of a
// stack.
func isPageFile(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, assetsPath))
}

// byBrowser reports whether a page sent the request. A browser sends an origin with each request
// that changes something.
func byBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// otherSite reports whether a page of another origin sent a request that is not allowed. Such a
// page could not read the answer, but its requests could cause work. A link to the console may open
// in a tab, but not in a frame. Old browsers do not send the header Sec-Fetch-Site, but they send
// the origin for streams and WebSockets.
func otherSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if origin := r.Header.Get("Origin"); site == "" && origin != "" {
		from, err := url.Parse(origin)
		return !isPageFile(r) && (err != nil || from.Host != r.Host)
	}
	if site != "cross-site" && site != "same-site" {
		return false
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return r.Header.Get("Sec-Fetch-Dest") != "document"
	}
	return !isPageFile(r)
}

// hasToken reports whether a request has the right token. The comparison takes constant time, so
// that its duration does not reveal parts of the token.
func (g Guard) hasToken(r *http.Request) bool {
	return g.Token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(TokenHeader)), []byte(g.Token)) == 1
}

// localName reports whether a host is localhost or an IP address, which a name server cannot
// redirect. It refuses 0.0.0.0, although that address reaches this machine, because browsers do not
// send the header Sec-Fetch-Site for it.
func localName(host string) bool {
	u := url.URL{Host: host}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip := net.ParseIP(name)
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || ip != nil && !ip.IsUnspecified()
}
