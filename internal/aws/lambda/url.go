// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/lullhq/lull/internal/aws/metrics"
)

// URL is the handler of a function with a function URL. Lambda has authenticated the caller. A URL
// passes on the method, the path and the query of a request, and drops its headers and its body.
type URL struct {
	Handler http.Handler
	Limit   time.Duration // the function's time-out
	Journal *Journal
}

var _ Handler = (*URL)(nil)

// urlRequest is the part of a request's event that lull reads.
// https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
type urlRequest struct {
	RawPath        string `json:"rawPath"`
	RawQueryString string `json:"rawQueryString"`
	RequestContext struct {
		HTTP struct {
			Method string `json:"method"`
		} `json:"http"`
	} `json:"requestContext"`
}

// urlAnswer is the answer to a request.
type urlAnswer struct {
	StatusCode int               `json:"statusCode"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
}

// Invoke answers one request. An event that is not a request of a function URL, and a panic, fail
// the invocation; Lambda then answers with status 502.
func (u *URL) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	defer u.Journal.finish(ctx)
	call, cancel := within(ctx, u.Limit, answerMargin)
	defer cancel()
	return guard(u.Journal, func() ([]byte, error) {
		var in urlRequest
		if err := json.Unmarshal(event, &in); err != nil || in.RequestContext.HTTP.Method == "" {
			u.Journal.Count(metrics.InvalidEvents, 1)
			u.Journal.Log.Error("bad event", "bytes", len(event))
			return nil, fmt.Errorf("the event is not a request of a function URL: %w", err)
		}
		r := (&http.Request{
			Method: in.RequestContext.HTTP.Method, URL: &url.URL{Path: in.RawPath, RawQuery: in.RawQueryString},
			Header: http.Header{}, Body: http.NoBody,
		}).WithContext(call)
		w := recorder{header: http.Header{}, status: http.StatusOK}
		u.Handler.ServeHTTP(&w, r)
		out := urlAnswer{StatusCode: w.status, Headers: map[string]string{}, Body: w.body.String()}
		for name := range w.header {
			out.Headers[name] = w.header.Get(name)
		}
		return json.Marshal(out)
	})
}

// recorder keeps the answer of a handler.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
