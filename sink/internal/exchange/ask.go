// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/lullhq/lull/sink"
)

// TypeJSON is the content type of requests with a JSON body.
const TypeJSON = "application/json"

// MaxAnswer is the largest answer, in bytes, that Ask reads. The largest answers are pages of
// documents.
const MaxAnswer = 512 << 20

// Error says that a request other than a write failed. An Error quotes no text of the answer.
type Error struct {
	Kind   string // the kind of the sink
	Status int    // the HTTP status, 0 if there was no answer
	Class  string // the engine's name of the error, "" if there is none
	Hint   string // what the operator can do, "" if we do not know
	Err    error  // why there was no answer
}

// Error returns a text that says what failed, and what the operator can do.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Kind + ": " + e.Err.Error()
	}
	text := fmt.Sprintf("%s: HTTP %d", e.Kind, e.Status)
	if e.Class != "" {
		text += " " + e.Class
	}
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

// Unwrap returns why there was no answer.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is match sink.ErrDenied if the engine denied the request. Is matches sink.ErrAway
// if the engine cannot serve the request at the moment.
func (e *Error) Is(target error) bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return target == sink.ErrDenied
	case http.StatusTooManyRequests, http.StatusTooEarly:
		return target == sink.ErrAway
	}
	return target == sink.ErrAway && e.Status >= http.StatusInternalServerError && e.Status != http.StatusNotImplemented
}

// Status returns the HTTP status of the *Error that err wraps. Status returns 0 if err wraps no
// *Error.
func Status(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// Fault returns the error for an answer that is not a success.
func (c *Client) Fault(a Answer) error {
	e := &Error{Kind: c.Kind, Status: a.Status, Err: a.Err}
	if a.Err != nil {
		return e
	}
	if c.Class != nil {
		e.Class = c.Class(a)
	}
	var listed bool
	if e.Hint, listed = c.Hints[a.Status]; !listed {
		e.Hint = c.Hints[0]
	}
	return e
}

// Odd returns the error for an answer that does not come from the engine.
func (c *Client) Odd() error {
	return fmt.Errorf("%s: this is not an answer of %s: check the url", c.Kind, c.Product)
}

// Read decodes the answer to a request other than a write, and stores it in into unless into is
// nil.
func (c *Client) Read(a Answer, into any) error {
	if !a.OK() {
		return c.Fault(a)
	}
	if c.Check != nil {
		if err := c.Check(a); err != nil {
			return err
		}
	}
	if into != nil && json.Unmarshal(a.Body, into) != nil {
		return c.Odd()
	}
	return nil
}

// Ask sends a request and reads the answer as Read does. Ask sends the body as JSON, unless the
// body is nil.
func (c *Client) Ask(ctx context.Context, method, path string, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("make request: %w", err)
		}
	}
	return c.Read(c.Do(ctx, method, path, TypeJSON, text, MaxAnswer), into)
}
