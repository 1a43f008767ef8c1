// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
)

//go:embed assets
var embedded embed.FS

// assetsPath is the path of the page's files, and prefix is the path to which its views send
// requests.
const (
	assetsPath = "/assets/"
	prefix     = "/console/"
)

// Options are the parts of a stack that a console shows. A view is hidden if an optional part that
// it needs is missing.
type Options struct {
	API   operate.API
	Mode  Mode
	Stack string // the name of the stack, for people
	// Token is the guard's token. The console of `lull dev` puts the token into its page. For a
	// deployed stack, the token is in the address that `lull console` prints.
	Token string
	// Send says that messages may be published.
	Send bool
	// By names the user, for the audit of changes.
	By string
	// Config is the stack's settings.
	Config *config.Config
	// Clock is the stack's clock. All times in answers are of this clock.
	Clock clock.Clock
	// Speed is how many times faster than real time the clock runs; 0 means 1.
	Speed float64

	Meter     Meter     // counts events by outcome
	Simulator Simulator // computes the comparisons of the view What if
	Breaker   Breaker   // causes the failures of the view Break it; if it is nil, the view is hidden
	// Tail returns the newest decisions for the view Live tail. If Tail is nil, the view is hidden.
	Tail func(operate.TailQuery) (operate.TailPage, error)
}

// Mode is the kind of stack that the console shows.
type Mode string

// The modes.
const (
	Dev Mode = "dev" // one process, on this machine
	AWS Mode = "aws" // a deployed stack
)

// statusInterval is the time between two reads of the stack's status while a page is open. The
// status of a deployed stack is read less often, because AWS bills each request.
func (m Mode) statusInterval() time.Duration {
	if m == AWS {
		return 7 * time.Second
	}
	return time.Second
}

// console serves the page and the requests of its views.
type console struct {
	Options
	boot    string // a random id of this run of the server
	live    *live
	began   began
	pages   chan struct{} // one item for each open stream of events
	answers chan struct{} // one item for each running answer of several lines
	can     map[string]bool
}

// New serves the console at / and under /console/. Put a [Guard] in front of it.
func New(o Options) http.Handler {
	c := &console{
		Options: o, boot: NewToken()[:8], pages: make(chan struct{}, maxStreams),
		answers: make(chan struct{}, maxStreams),
		can:     map[string]bool{"dead": true, "search": true, "whatif": true, "tail": o.Tail != nil},
	}
	c.live = &live{every: o.Mode.statusInterval(), ask: c.tick}
	mux := http.NewServeMux()
	for _, view := range []routes{
		{
			"GET /{$}": c.page, "GET " + assetsPath: c.asset, "GET /console/events": c.events,
			"GET /console/about": answered(reader, func(*http.Request) (any, error) { return c.about(), nil }),
			prefix: func(w http.ResponseWriter, r *http.Request) {
				Fail(w, http.StatusNotFound, "the console has nothing at "+r.URL.Path)
			},
		},
		c.nowRoutes(), c.documentRoutes(), c.deadRoutes(), c.searchRoutes(), c.sendRoutes(), c.whatifRoutes(),
		c.breakitRoutes(), c.rebuildRoutes(), c.jobRoutes(), c.pauseRoutes(), c.tailRoutes(),
	} {
		for pattern, h := range view {
			mux.HandleFunc(pattern, h)
		}
	}
	return mux
}

// routes are the handlers of a view, by patterns of [http.ServeMux].
type routes map[string]http.HandlerFunc

// about is what a page loads before it shows anything.
type about struct {
	Mode  Mode            `json:"mode"`
	Stack string          `json:"stack"`
	Boot  string          `json:"boot"`
	Now   time.Time       `json:"now"`
	Speed float64         `json:"speed"`
	Can   map[string]bool `json:"can"`
	Views []string        `json:"views"` // the names of the files in assets/views, in the order of the navigation
	// Collections and Sinks are the names in the settings.
	Collections []string     `json:"collections"`
	Sinks       []string     `json:"sinks"`
	Sources     []sourceInfo `json:"sources"`
	Docs        string       `json:"docs"` // the address of the documents, for links that people follow
}

// sourceInfo describes a source of the settings.
type sourceInfo struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Class string `json:"class"`           // the class of the source's versions
	Fetch string `json:"fetch,omitempty"` // the host that documents are fetched from; empty if messages have them
}

// docs is the address of the documents.
const docs = "https://github.com/lullhq/lull/blob/main/docs/"

// origins lists the sources by name.
func origins(cfg *config.Config) []sourceInfo {
	all := []sourceInfo{}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sources)) {
		s := cfg.Sources[name]
		o := sourceInfo{Name: name, Kind: s.Kind, Class: string(s.Class)}
		if s.Fetch != nil {
			o.Fetch = s.Fetch.Host()
		}
		all = append(all, o)
	}
	return all
}

func (c *console) about() about {
	return about{
		Mode: c.Mode, Stack: c.Stack, Boot: c.boot, Now: c.Clock.Now().UTC(), Speed: cmp.Or(c.Speed, 1),
		Can: c.can, Views: views, Collections: slices.Sorted(maps.Keys(c.Config.Collections)),
		Sinks:   slices.Sorted(maps.Keys(c.Config.Sinks)),
		Sources: origins(c.Config), Docs: docs,
	}
}

// views are the names of the files in assets/views, in the order of the navigation.
var views = []string{"now", "documents", "tail", "dead", "jobs", "search", "send", "whatif", "breakit"}

// page serves the only page. In `lull dev` it contains the token, because no other site can read
// it.
func (c *console) page(w http.ResponseWriter, _ *http.Request) {
	text, _ := embedded.ReadFile("assets/index.html") // the file is embedded, so it exists
	token := ""
	if c.Mode == Dev {
		token = html.EscapeString(c.Token)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, strings.Replace(string(text), "{{token}}", token, 1)) // fails if the client is gone
}

// kinds maps the extension of a file of the page to its media type. The table of the operating
// system may differ.
var kinds = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

func (c *console) asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	kind := kinds[path.Ext(name)]
	text, err := embedded.ReadFile(name)
	if err != nil || kind == "" {
		Fail(w, http.StatusNotFound, "the console has no such file")
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(text) //nolint:gosec // the text is embedded; a write fails only if the client is gone
}

// maxRequest is the largest request that the console reads, in bytes. A message of SQS in JSON is
// smaller.
const maxRequest = 4 << 20

// body reads a request's body, of at most this many bytes.
func body(r *http.Request, most int64) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	if errors.As(err, new(*http.MaxBytesError)) {
		return nil, Problemf(http.StatusRequestEntityTooLarge, "the request is too large: at most %d bytes", most)
	}
	return text, err
}

// read decodes a request's body.
func read[Q any](r *http.Request) (q Q, err error) {
	text, err := body(r, maxRequest)
	if err != nil {
		return q, err
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return q, badf("the request is not the JSON that is expected: %v", err)
	}
	return q, nil
}

// limitOf returns how many items the request asks for. It returns 0 if the request does not say.
func limitOf(r *http.Request, most int) (n int, err error) {
	if text := r.FormValue("limit"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > most {
			return 0, badf("limit: use a number from 1 to %d", most)
		}
	}
	return n, nil
}

// problem is an error and the HTTP status of the answer.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

// Problemf returns an error that is answered with this HTTP status.
func Problemf(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// badf returns an error about a faulty request, with status 400.
func badf(format string, args ...any) error { return Problemf(http.StatusBadRequest, format, args...) }

// Answered answers a request with the result of f, or with its error.
func Answered(f func(r *http.Request) (any, error)) http.HandlerFunc { return answered(reader, f) }

// answered answers a request with the result of f, or with its error. If AWS denied access, the
// error names the role that has the right.
func answered(who role, f func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := f(r)
		if err != nil {
			failed(w, err, who)
			return
		}
		Answer(w, a)
	}
}

// Answer writes v as JSON.
func Answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // fails if the client is gone
}

// Fail answers with an error.
func Fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // fails if the client is gone
}

// failed answers with an error of the stack.
func failed(w http.ResponseWriter, err error, who role) { Fail(w, statusOf(err), errorText(err, who)) }

func statusOf(err error) int {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p.status
	case errors.Is(err, operate.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, operate.ErrInput):
		return http.StatusBadRequest
	case rightLacked(err) != "":
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}
