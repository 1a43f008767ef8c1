// Package server serves a `lull dev` over HTTP: the console, search, publish, and what the commands
// ask a stack for. It has no authentication: put a [console.Guard] in front of it.
package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/commitfeed"
	"github.com/lullhq/lull/internal/console"
	"github.com/lullhq/lull/internal/feed"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Handler serves an engine, and the console that o describes; o.API answers the commands, too.
//
//	GET  /                                      the console (package console)
//	GET  /search?q=&field=&collection=&limit=&prefix=
//	     {"hits":[{"id","collection","version","document"}],"more":true,"notes":["a sink that was not searched"]}
//	POST /publish?source=                       one message in the body, or NDJSON; answers {"messages":n}
//	GET  /status                                the report so far, what remains, and why the disk cannot be written
//	GET  /feed                                  commits from now on, as server-sent events (package commitfeed)
//	POST /operate/...                           what the commands ask (package operate)
func Handler(e *dev.Engine, o console.Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", console.New(o))
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) { search(w, r, o.API) })
	mux.HandleFunc("POST /publish", func(w http.ResponseWriter, r *http.Request) { publish(w, r, e) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { status(w, r, e) })
	mux.HandleFunc("GET /feed", func(w http.ResponseWriter, r *http.Request) { commits(w, r, e) })
	mux.Handle("/operate/", operate.Handler(o.API))
	return mux
}

func search(w http.ResponseWriter, r *http.Request, api operate.API) {
	q := operate.Search{
		Text: r.FormValue("q"), Field: r.FormValue("field"), Collection: shard.Collection(r.FormValue("collection")),
		Prefix: r.FormValue("prefix") == "true",
	}
	if q.Text == "" {
		console.Fail(w, http.StatusBadRequest, "q: say what to search for, such as /search?q=vienna&field=title")
		return
	}
	if l := r.FormValue("limit"); l != "" {
		var err error
		if q.Limit, err = strconv.Atoi(l); err != nil || q.Limit < 1 || q.Limit > 1000 {
			console.Fail(w, http.StatusBadRequest, "limit: want a number from 1 to 1000")
			return
		}
	}
	found, err := api.Search(r.Context(), q)
	switch {
	case errors.Is(err, operate.ErrInput):
		console.Fail(w, http.StatusBadRequest, err.Error())
	case err != nil:
		console.Fail(w, http.StatusBadGateway, err.Error())
	default:
		console.Answer(w, found)
	}
}

func publish(w http.ResponseWriter, r *http.Request, e *dev.Engine) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, feed.MaxLine))
	if err != nil {
		console.Fail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("read the request: %v", err))
		return
	}
	source := r.URL.Query().Get("source")
	if known := e.Sources(); source != "" && !slices.Contains(known, source) {
		console.Fail(w, http.StatusBadRequest, fmt.Sprintf("source: there is no such source: want %s", strings.Join(known, ", ")))
		return
	}
	in := feed.Request(body)
	for n := 0; ; n++ {
		t, err := in.Next()
		if errors.Is(err, io.EOF) {
			console.Answer(w, map[string]any{"messages": n})
			return
		}
		status := http.StatusBadRequest
		if err == nil {
			if _, named := t.Attributes[queue.AttrSource]; source != "" && !named {
				t.Attributes = maps.Clone(t.Attributes)
				if t.Attributes == nil {
					t.Attributes = map[string]queue.Attribute{}
				}
				t.Attributes[queue.AttrSource] = queue.Text(source)
			}
			if err = e.Publish(r.Context(), t.Outgoing); errors.Is(err, queue.ErrTooLarge) {
				status, err = http.StatusRequestEntityTooLarge, fmt.Errorf("%w: send the payload by dataref", err)
			}
		}
		if err != nil {
			console.Fail(w, status, fmt.Sprintf("message %d: %v (%d messages before it were published)", n+1, err, n))
			return
		}
	}
}

func status(w http.ResponseWriter, r *http.Request, e *dev.Engine) {
	report, err := e.Report(r.Context())
	if err != nil {
		console.Fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	state := map[string]any{"report": report, "left": e.Left(), "idle": e.Idle()}
	if err := e.Trouble(); err != nil {
		state["trouble"] = err.Error()
	}
	console.Answer(w, state)
}

// breath is how often a quiet feed says that it is there, so that nothing between cuts it off.
const breath = 15 * time.Second

// commits answers with each commit until the client goes away. A client that does not keep up is
// cut off.
func commits(w http.ResponseWriter, r *http.Request, e *dev.Engine) {
	if e.Feed == nil {
		console.Fail(w, http.StatusNotFound, "commitFeed: commits are not told here: set it to true in the settings")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out, events := http.NewResponseController(w), e.Feed.Subscribe(r.Context())
	tick := time.NewTicker(breath)
	defer tick.Stop()
	text := ": commits from now on\n\n"
	for {
		if _, err := io.WriteString(w, text); err != nil || out.Flush() != nil {
			return // the client went away
		}
		select {
		case told, more := <-events:
			if !more {
				return
			}
			b, err := json.Marshal(told)
			if err != nil {
				return // cannot be: it holds texts and times
			}
			text = fmt.Sprintf("event: %s\nid: %s\ndata: %s\n\n", commitfeed.DetailType, told.OrderKey, b)
		case <-tick.C:
			text = ":\n\n"
		}
	}
}
