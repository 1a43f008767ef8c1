// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/lullhq/lull/internal/terminal"
)

// A request is a POST to <base>/operate/<name> with a JSON object. The answer is also JSON.
const prefix = "/operate/"

type wireError struct {
	Error    string `json:"error"`
	NotFound bool   `json:"not_found,omitempty"`
	Input    bool   `json:"input,omitempty"`
	// WriteOnly says that a sink cannot be read back, from any machine.
	WriteOnly bool `json:"write_only,omitempty"`
}

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 64 << 20

// Handler answers the requests of a Client by calling an API. There is no authentication, so serve
// it only on 127.0.0.1.
func Handler(api API) http.Handler {
	mux := http.NewServeMux()
	api.each(func(name string, o operation) { mux.HandleFunc("POST "+prefix+name, o.handler()) })
	return mux
}

// route returns a handler that answers a request with one JSON object.
func route[Q, A any](f func(context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var a A
		q, err := read[Q](w, r)
		if err == nil {
			a, err = f(r.Context(), q)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a) // the client went away
	}
}

// read decodes the body of a request.
func read[Q any](w http.ResponseWriter, r *http.Request) (q Q, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		return q, input(err)
	}
	return q, nil
}

func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status(err))
	_ = json.NewEncoder(w).Encode(wired(err)) // the client went away
}

// wired converts an error for the wire; nil stays nil.
func wired(err error) *wireError {
	if err == nil {
		return nil
	}
	return &wireError{err.Error(), errors.Is(err, ErrNotFound), errors.Is(err, ErrInput), errors.Is(err, ErrWriteOnly)}
}

func status(err error) int {
	switch {
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrInput):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// Client sends requests to a Handler in another process.
type Client struct {
	Base string // http://127.0.0.1:7070
	HTTP *http.Client
}

// API returns operations that the client carries out by requests.
func (c *Client) API() (api API) {
	api.each(func(name string, o operation) { o.dial(c, name) })
	return api
}

// Shown returns an address without its password, for people. A text that is not an address may also
// contain a password, before its last @.
func Shown(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Redacted()
	}
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return "xxxxx" + address[at:]
	}
	return address
}

// post sends a request and returns the body of the answer. If the answer is an error, post returns
// that error.
func (c *Client) post(ctx context.Context, name string, q any) (io.ReadCloser, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", name, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.Base, "/")+prefix+name,
		bytes.NewReader(body))
	if err != nil {
		return nil, inputf("%s is not an address", Shown(c.Base)) // without err, which would quote the password
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.HTTP.Do(req)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w (is `lull dev` running there?)", Shown(c.Base), err)
	case resp.StatusCode == http.StatusOK:
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	var e wireError
	if err := json.NewDecoder(resp.Body).Decode(&e); err != nil || e.Error == "" {
		return nil, fmt.Errorf("%s answers %s: it is not a `lull dev`, or it is one of another version", Shown(c.Base),
			resp.Status)
	}
	return nil, e.remote()
}

func ask[Q, A any](ctx context.Context, c *Client, name string, q Q) (a A, err error) {
	body, err := c.post(ctx, name, q)
	if err != nil {
		return a, err
	}
	defer func() { _ = body.Close() }() // read to its end
	if err := json.NewDecoder(body).Decode(&a); err != nil {
		return a, fmt.Errorf("read the answer of %s: %w", Shown(c.Base), err)
	}
	return a, nil
}

// remote converts an error from the wire for the caller; nil stays nil.
func (e *wireError) remote() error {
	if e == nil {
		return nil
	}
	return &remoteError{*e}
}

// remoteError is an error from the wire. It has the same kind as in the other process.
type remoteError struct{ wireError }

// Error returns one line without control characters, because the text may quote a sender.
func (e *remoteError) Error() string { return terminal.Line(e.wireError.Error) }

func (e *remoteError) Is(target error) bool {
	return target == ErrNotFound && e.NotFound || target == ErrInput && e.Input || target == ErrWriteOnly && e.WriteOnly
}
