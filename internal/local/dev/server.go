package dev

import (
	"bytes"
	"context"
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

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Handler serves the engine over HTTP: a page, search, publish, and what the commands ask a stack
// for. It is meant for 127.0.0.1: there is no authentication, but what another site's page makes a
// browser send is refused.
//
//	GET  /search?q=&field=&collection=&limit=   {"hits":[{"id","collection","version","document"}]}
//	POST /publish                               one message in the body, or NDJSON; answers {"messages":n}
//	GET  /status                                the report so far, and what is left
//	POST /operate/...                           what the commands ask (package operate)
func (e *Engine) Handler(rec *Recorder) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page) // the client went away
	})
	mux.HandleFunc("GET /search", e.serveSearch)
	mux.HandleFunc("POST /publish", e.servePublish)
	mux.HandleFunc("GET /status", e.serveStatus)
	mux.Handle("/operate/", operate.Handler(e.Operator(rec)))
	return http.NewCrossOriginProtection().Handler(mux)
}

func (e *Engine) serveSearch(w http.ResponseWriter, r *http.Request) {
	q := sink.Query{
		Text: r.FormValue("q"), Field: r.FormValue("field"), Collection: shard.Collection(r.FormValue("collection")),
		Limit: 10,
	}
	if q.Text == "" {
		fail(w, http.StatusBadRequest, "q: say what to search for, such as /search?q=vienna&field=title")
		return
	}
	if l := r.FormValue("limit"); l != "" {
		n, err := strconv.Atoi(l)
		if err != nil || n < 1 || n > 1000 {
			fail(w, http.StatusBadRequest, "limit: want a number from 1 to 1000")
			return
		}
		q.Limit = n
	}
	hits := []operate.Document{}
	for _, name := range e.order {
		reader, ok := e.pipes[name].sink.(sink.Reader)
		if !ok {
			continue
		}
		found, err := reader.Search(r.Context(), q)
		if err != nil {
			fail(w, http.StatusBadGateway, "search "+name+": "+err.Error())
			return
		}
		for _, s := range found {
			hits = append(hits, operate.Document{
				ID: s.Doc.ID(), Collection: string(s.Doc.Collection()), Version: s.Version, OrderKey: s.Key,
				Fence:   int64(s.Fence),
				Indexed: s.Indexed, Document: s.Document,
			})
		}
	}
	answer(w, map[string]any{"hits": hits[:min(len(hits), q.Limit)]})
}

func (e *Engine) servePublish(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("read the request: %v", err))
		return
	}
	var in Input = newLines("request", io.NopCloser(bytes.NewReader(body)))
	if gjson.ValidBytes(body) { // one message, on however many lines
		in = &one{body: bytes.TrimSpace(body)}
	}
	for n := 0; ; n++ {
		t, err := in.Next()
		if errors.Is(err, io.EOF) {
			answer(w, map[string]any{"messages": n})
			return
		}
		if err == nil {
			err = e.Publish(r.Context(), t.Outgoing)
		}
		if err != nil {
			fail(w, http.StatusBadRequest, fmt.Sprintf("%v (%d messages before it were published)", err, n))
			return
		}
	}
}

// one is an input of one message.
type one struct{ body []byte }

func (o *one) Next() (Timed, error) {
	if o.body == nil {
		return Timed{}, io.EOF
	}
	t, err := ParseLine(o.body)
	o.body = nil
	return t, err
}

func (o *one) Close() error { return nil }

func (e *Engine) serveStatus(w http.ResponseWriter, r *http.Request) {
	report, err := e.Report(r.Context())
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, map[string]any{"report": report, "left": e.Left(), "idle": e.Idle()})
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

// Serve answers on l until ctx ends, and closes it. What is being answered then is told so by its
// context. On a loopback address it answers only to a loopback name: a page whose own name was made
// to resolve to this machine would pass for this origin otherwise.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	if at, ok := l.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		h = local(h)
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(l) }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
		err := server.Shutdown(context.WithoutCancel(ctx))
		if served := <-stopped; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
}

// local refuses requests to any name but localhost. An address is no name that somebody could bend.
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

var _ journal.Journal = (*Recorder)(nil)
