// SPDX-License-Identifier: Apache-2.0

// Package server is the HTTP server of `lull dev`: the console, search, publish, and the requests
// of the commands. The server has no authentication: wrap the handler in a [console.Guard].
package server

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/console"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/searchability"
	"github.com/lullhq/lull/internal/seam/commitfeed"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/searchable"
)

// Handler returns the HTTP handler for an engine and for the console that o describes. o.API also
// answers the requests of commands.
//
//	GET  /                                      the console (package console)
//	GET  /search?q=&field=&collection=&limit=&prefix=
//	     {"hits":[{"id","collection","version","document"}],"more":true,"notes":["a sink that was not searched"]}
//	GET  /searchable?key=content%23a&version=7&wait=5s
//	     whether a search finds the version, in each sink (package searchable)
//	POST /publish?source=&unchecked=            one message in the body, or NDJSON; answers {"messages":n}
//	GET  /status                                the report so far, what remains, and why the disk cannot be written
//	GET  /feed                                  commits from now on, as server-sent events (package commitfeed)
//	POST /operate/...                           what the commands ask (package operate)
func Handler(e *dev.Engine, o console.Options) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", console.New(o))
	mux.HandleFunc("GET /search", console.Answered(func(r *http.Request) (any, error) { return search(r, o.API) }))
	mux.Handle(searchable.Path, searchability.Handler(o.API.Searchable, func(err error) {
		slog.Error("a question was not answered", "error", err.Error())
	}))
	mux.HandleFunc("POST /publish", console.Answered(func(r *http.Request) (any, error) { return publish(r, o.API, e) }))
	mux.HandleFunc("GET /status", console.Answered(func(r *http.Request) (any, error) { return status(r, e) }))
	mux.HandleFunc("GET /feed", func(w http.ResponseWriter, r *http.Request) { commits(w, r, e) })
	mux.Handle("/operate/", operate.Handler(o.API))
	return mux
}

func search(r *http.Request, api operate.API) (any, error) {
	q, err := console.SearchOf(r, 1000)
	if q.Text == "" {
		err = console.Problemf(http.StatusBadRequest, "q: say what to search for, such as /search?q=vienna&field=title")
	}
	if err != nil {
		return nil, err
	}
	return api.Search(r.Context(), q)
}

// publish sends the messages of a request, as `lull publish` does: it refuses those that break the
// contract, and sends the others. With ?unchecked=true it sends them all, as an upstream would.
func publish(r *http.Request, api operate.API, e *dev.Engine) (any, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, feed.MaxLine))
	if err != nil {
		return nil, console.Problemf(http.StatusRequestEntityTooLarge, "read the request: %v", err)
	}
	query := r.URL.Query()
	source := query.Get("source")
	if known := e.Sources(); source != "" && !slices.Contains(known, source) {
		return nil, console.Problemf(http.StatusBadRequest, "source: this source does not exist: use %s",
			strings.Join(known, ", "))
	}
	var read, sent, refused int
	var first operate.Refusal
	var failed error // of the stack; other errors are faults of the request
	err = feed.Batches(r.Context(), feed.Request(body), operate.PublishBatch, func(batch []queue.Outgoing) error {
		for i := range batch {
			feed.Mark(&batch[i], source, "")
		}
		done, err := api.Publish(r.Context(), operate.Publication{
			Messages: batch, Unchecked: query.Get("unchecked") == "true",
		})
		if len(done.Refused) > 0 && refused == 0 {
			first = done.Refused[0]
			first.Message += read + 1
		}
		read, sent, refused, failed = read+len(batch), sent+done.Messages, refused+len(done.Refused), err
		return err
	})
	switch {
	case failed != nil:
		return nil, fmt.Errorf("%w (%d messages were sent)", failed, sent)
	case err != nil:
		return nil, console.Problemf(http.StatusBadRequest, "message %d: %v (%d messages before it were sent)", read+1, err, sent)
	case refused > 0:
		return nil, console.Problemf(http.StatusBadRequest, "message %d: %s (%d messages were sent, %d refused; "+
			"?unchecked=true sends them, too)", first.Message, first.Why, sent, refused)
	}
	return map[string]any{"messages": sent}, nil
}

func status(r *http.Request, e *dev.Engine) (any, error) {
	report, err := e.Report(r.Context())
	if err != nil {
		return nil, console.Problemf(http.StatusInternalServerError, "%v", err)
	}
	state := map[string]any{"report": report, "left": e.Left(), "idle": e.Idle()}
	if err := e.Trouble(); err != nil {
		state["trouble"] = err.Error()
	}
	return state, nil
}

// breath is how often a feed without commits sends a comment line, so that no proxy closes the
// connection.
const breath = 15 * time.Second

// commits sends each commit to the client until the client disconnects. The function closes the
// connection of a client that reads too slowly.
func commits(w http.ResponseWriter, r *http.Request, e *dev.Engine) {
	if e.Feed == nil {
		console.Fail(w, http.StatusNotFound, "commitFeed: commits are not published here: set it to true in the settings")
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
			return // the client has disconnected
		}
		select {
		case told, more := <-events:
			if !more {
				return
			}
			b, err := json.Marshal(told)
			if err != nil {
				return // cannot fail: texts and times
			}
			text = fmt.Sprintf("event: %s\nid: %s\ndata: %s\n\n", commitfeed.DetailType, told.OrderKey, b)
		case <-tick.C:
			text = ":\n\n"
		}
	}
}
