package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/lullhq/lull/sink"
)

// TypeJSON is the content type of most requests.
const TypeJSON = "application/json"

// MaxAnswer bounds what is read of an answer with documents. The largest are pages of them.
const MaxAnswer = 512 << 20

// Error says that a request other than a write failed. It holds no text of the answer.
type Error struct {
	Kind   string // the kind of the sink
	Status int    // 0 where there was no answer
	Class  string // what the engine calls the error, "" for nothing
	Hint   string // what helps, "" for nothing
	Err    error  // why there was no answer
}

// Error says what failed, and what helps against it.
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

// Is reports that the engine denied the request, or cannot serve it at the moment: see
// sink.ErrDenied and sink.ErrAway.
func (e *Error) Is(target error) bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return target == sink.ErrDenied
	case http.StatusTooManyRequests, http.StatusTooEarly:
		return target == sink.ErrAway
	}
	return target == sink.ErrAway && e.Status >= http.StatusInternalServerError && e.Status != http.StatusNotImplemented
}

// Status is the status of the answer that an *Error in err was made of; 0 for none.
func Status(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// Fault is the error of an answer that is not a success.
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

// Odd is the error of an answer that does not come from the engine.
func (c *Client) Odd() error {
	return fmt.Errorf("%s: this is not an answer of %s: check the url", c.Kind, c.Product)
}

// Read decodes the answer to a request other than a write into into, unless that is nil.
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

// Ask sends a body as JSON, unless it is nil, and reads the answer as Read does.
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
