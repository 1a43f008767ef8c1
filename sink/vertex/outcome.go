// SPDX-License-Identifier: Apache-2.0

package vertex

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Classes of outcomes for which Google has no status.
const (
	classNoStore  = "data_store_missing"
	classMismatch = "answer" // the answer does not match the request
)

// statusNotFound is Google's status if a document or a data store does not exist.
const statusNotFound = "NOT_FOUND"

// maxDelay is the longest delay that a service can ask for. A mistake of the service must not stop
// indexing for a day.
const maxDelay = time.Hour

// fault is Google's description of an error. lull does not read its message, because the message
// quotes content.
type fault struct {
	Status  string `json:"status"`
	Details []struct {
		Type       string `json:"@type"`
		Reason     string `json:"reason"`     // set in ErrorInfo
		Delay      string `json:"retryDelay"` // set in RetryInfo, such as 17.5s
		Violations []struct {
			Field string `json:"field"`
		} `json:"fieldViolations"` // set in BadRequest
	} `json:"details"`
}

// faultOf reads the error of an answer, or the zero fault if there is none.
func faultOf(a exchange.Answer) fault {
	var answer struct {
		Error fault `json:"error"`
	}
	if json.Unmarshal(a.Body, &answer) != nil {
		return fault{}
	}
	return answer.Error
}

// class returns the status and the reasons of an error. The method omits texts that do not look
// like constants of Google.
func (f fault) class() string {
	words := word(f.Status)
	for _, d := range f.Details {
		if reason := word(d.Reason); reason != "" {
			words += " " + reason
		}
	}
	return words
}

// word returns the text if it looks like one of Google's constants, otherwise "".
func word(text string) string {
	if len(text) > 64 || strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return ""
	}
	return text
}

// field returns the name of the first field that is at fault, or "".
func (f fault) field() string {
	for _, d := range f.Details {
		for _, v := range d.Violations {
			return v.Field
		}
	}
	return ""
}

// delay returns how long to wait before the next request, or 0 if the answer does not say.
func (f fault) delay(h http.Header) time.Duration {
	for _, d := range f.Details {
		if delay, err := time.ParseDuration(d.Delay); err == nil && delay > 0 {
			return min(delay, maxDelay)
		}
	}
	return backoff.After(h, time.Now())
}

// judge returns the outcome for an answer that is not a success. An answer with the same status may
// come from a proxy; it has no error of Google.
func judge(ctx context.Context, a exchange.Answer) sink.Outcome {
	if o, failed := exchange.Undelivered(ctx, a); failed {
		return o
	}
	f := faultOf(a)
	class := cmp.Or(f.class(), "http "+strconv.Itoa(a.Status))
	o := sink.Outcome{Status: a.Status, Reason: sink.Reason(class, f.field())}
	switch {
	case a.Status == http.StatusTooManyRequests:
		o.Kind, o.RetryAfter = sink.Throttled, f.delay(a.Header)
	case a.Status == http.StatusConflict && f.Status == "ABORTED":
		// Two writes of one document came at the same time, or one right after the other. The
		// engine did not apply this write.
		o.Kind, o.RetryAfter, o.Apart = sink.Throttled, f.delay(a.Header), true
	case a.Status == http.StatusBadRequest && f.Status == "INVALID_ARGUMENT":
		o.Kind, o.Apart = sink.Rejected, true
	case a.Status == http.StatusRequestEntityTooLarge:
		o.Kind, o.Apart, o.Reason = sink.Rejected, true, sink.TooLarge
	case a.Status == http.StatusNotFound && f.Status == statusNotFound:
		o.Kind, o.Apart, o.Reason = sink.Configuration, true, classNoStore
	case a.Status == http.StatusBadRequest && f.Status == "FAILED_PRECONDITION":
		o.Kind, o.Apart = sink.Configuration, true // such as a data store that does not accept documents yet
	case a.Status >= 500, a.Status < 300, a.Status == http.StatusRequestTimeout, a.Status == http.StatusConflict,
		a.Status == 499: // Google's CANCELLED
		o.Kind = sink.Unknown
	default:
		o.Kind = sink.Configuration
	}
	return o
}

// hints says what an operator can do about a failed request other than a write.
var hints = map[int]string{
	http.StatusUnauthorized: "set auth.kind: key or vertex.audience, or run: gcloud auth application-default login",
	http.StatusForbidden:    "grant the role Discovery Engine Editor, and enable discoveryengine.googleapis.com",
	http.StatusNotFound:     "create the data store, or correct the project, the location or the index",
}
