// Package server serves a `lull dev` over HTTP: a page, search, publish, and what the commands ask
// a stack for.
//
// It promises to answer this machine only: without authentication, it refuses what another site's
// page makes a browser send, and on a loopback address it refuses every name but localhost.
package server

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/feed"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/story"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

//go:embed page.html
var page string

// Handler serves an engine; rec keeps the decisions that it tells.
//
//	GET  /search?q=&field=&collection=&limit=   {"hits":[{"id","collection","version","document"}]}
//	POST /publish                               one message in the body, or NDJSON; answers {"messages":n}
//	GET  /status                                the report so far, what remains, and why the disk cannot be written
//	POST /operate/...                           what the commands ask (package operate)
func Handler(e *dev.Engine, rec *story.Recorder) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page) // the client went away
	})
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) { search(w, r, e) })
	mux.HandleFunc("POST /publish", func(w http.ResponseWriter, r *http.Request) { publish(w, r, e) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { status(w, r, e) })
	mux.Handle("/operate/", operate.Handler(e.Operator(rec)))
	return http.NewCrossOriginProtection().Handler(mux)
}

func search(w http.ResponseWriter, r *http.Request, e *dev.Engine) {
	q := sink.Query{
		Text: r.FormValue("q"), Field: r.FormValue("field"), Collection: shard.Collection(r.FormValue("collection")),
		Limit: 10,
	}
	if q.Text == "" {
		fail(w, http.StatusBadRequest, "q: say what to search for, such as /search?q=vienna&field=title")
		return
	}
	if l := r.FormValue("limit"); l != "" {
		var err error
		if q.Limit, err = strconv.Atoi(l); err != nil || q.Limit < 1 || q.Limit > 1000 {
			fail(w, http.StatusBadRequest, "limit: want a number from 1 to 1000")
			return
		}
	}
	found, err := e.Search(r.Context(), q)
	if err != nil {
		fail(w, http.StatusBadGateway, err.Error())
		return
	}
	hits := []operate.Document{}
	for _, s := range found[:min(len(found), q.Limit)] {
		hits = append(hits, operate.AsDocument(s))
	}
	answer(w, map[string]any{"hits": hits})
}

func publish(w http.ResponseWriter, r *http.Request, e *dev.Engine) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, feed.MaxLine))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("read the request: %v", err))
		return
	}
	in := feed.Request(body)
	for n := 0; ; n++ {
		t, err := in.Next()
		if errors.Is(err, io.EOF) {
			answer(w, map[string]any{"messages": n})
			return
		}
		status := http.StatusBadRequest
		if err == nil {
			if err = e.Publish(r.Context(), t.Outgoing); errors.Is(err, queue.ErrTooLarge) {
				status, err = http.StatusRequestEntityTooLarge, fmt.Errorf("%w: send the payload by dataref", err)
			}
		}
		if err != nil {
			fail(w, status, fmt.Sprintf("message %d: %v (%d messages before it were published)", n+1, err, n))
			return
		}
	}
}

func status(w http.ResponseWriter, r *http.Request, e *dev.Engine) {
	report, err := e.Report(r.Context())
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	state := map[string]any{"report": report, "left": e.Left(), "idle": e.Idle()}
	if err := e.Trouble(); err != nil {
		state["trouble"] = err.Error()
	}
	answer(w, state)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client went away
}

func fail(w http.ResponseWriter, status int, problem string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": problem}) // the client went away
}

// How long a request may take to arrive, and how long the end waits for those under way. A request
// that is never finished keeps neither a connection nor the end of the run. Answers have no limit:
// a redrive at a low rate takes hours.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute // from its first byte to its last
	maxHeaderBytes = 64 << 10
	goodbye        = 3 * time.Second
)

// Serve answers on l until ctx ends, and closes it. The contexts of requests that are being
// answered then end with it; what has not ended three seconds later is cut off. On a loopback
// address it answers only to a loopback name: otherwise a page could let its own name resolve to
// this machine and pass for this origin.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	if at, ok := l.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		h = local(h)
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(l) }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer cancel()
		err := server.Shutdown(patient)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		if served := <-stopped; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
}

// local refuses requests to any name but localhost. Addresses pass: a name server cannot redirect
// an address.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := url.URL{Host: r.Host}
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		if host != "" && host != "localhost" && !strings.HasSuffix(host, ".localhost") && net.ParseIP(host) == nil {
			fail(w, http.StatusMisdirectedRequest, "this is localhost, not the host that was asked for")
			return
		}
		h.ServeHTTP(w, r)
	})
}
