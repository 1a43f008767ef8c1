// SPDX-License-Identifier: Apache-2.0

package searchability

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/lullhq/lull/searchable"
)

// maxQuery is the longest query of a request, in bytes: the longest id with each byte escaped, and
// as much again.
const maxQuery = 4096

// Handler answers GET /searchable?key=&version=&wait= with the answer as JSON. A faulty request has
// status 400 and a text that names the parameter. An error of the stack has status 503; log gets
// its reason. Handler does not authenticate.
func Handler(answer func(context.Context, searchable.Question) (searchable.Answer, error),
	log func(error),
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != searchable.Path:
			fail(w, http.StatusNotFound, "ask GET "+searchable.Path+"?key=")
			return
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			fail(w, http.StatusMethodNotAllowed, "ask with GET")
			return
		}
		q, err := questionOf(r.URL.RawQuery)
		var a searchable.Answer
		if err == nil {
			a, err = answer(r.Context(), q)
		}
		var fault *Error
		switch {
		case errors.As(err, &fault):
			fail(w, http.StatusBadRequest, fault.Error())
		case err != nil:
			log(err)
			fail(w, http.StatusServiceUnavailable, "the stack did not answer: ask again")
		default:
			write(w, http.StatusOK, a)
		}
	})
}

// questionOf reads a question from the query of a request.
func questionOf(raw string) (q searchable.Question, err error) {
	if len(raw) > maxQuery {
		return q, wrong("query", "it has %d bytes, at most %d are allowed", len(raw), maxQuery)
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return q, &Error{"query", err}
	}
	for name, values := range query {
		if known := []string{"key", "version", "wait"}; !slices.Contains(known, name) {
			return q, wrong("query", "%.40q is not key, version or wait", name)
		}
		if len(values) > 1 {
			return q, wrong(name, "give it once")
		}
	}
	q.Key, q.Version = query.Get("key"), query.Get("version")
	if q.Key == "" {
		return q, wrong("key", "say which document, such as content%%23vienna")
	}
	if text := query.Get("wait"); text != "" {
		if q.Wait, err = time.ParseDuration(text); err != nil {
			return q, wrong("wait", "want a duration such as 5s, at most %s", searchable.MaxWait)
		}
	}
	return q, nil
}

func fail(w http.ResponseWriter, status int, text string) {
	write(w, status, map[string]string{"error": text})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // fails if the client is gone
}
