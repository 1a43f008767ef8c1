// SPDX-License-Identifier: Apache-2.0

package typesense

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Classes of outcomes.
const (
	classNoCollection = "collection_missing" // the collection does not exist, and lull could not create it
	classMismatch     = "import_answer"      // the lines of the answer do not match the request
	classNotReady     = "not_ready"          // 503: the node is starting, or lags behind the other nodes
	classNoRoom       = "no_room"            // 422: the disk or the memory is full
	classBadJSON      = "bad_json"           // a number that is too large for a float64, or half of a surrogate pair
	classField        = "field_type"         // a field has another type than in the schema
	classOther        = "unclassified"
)

// Prefixes of the error texts of Typesense.
const (
	noDocument   = "Could not find a document"
	notReady     = "Not Ready or Lagging"
	noRoom       = "Rejecting write"
	skipsWrites  = "Skipping write"
	badJSON      = "Bad JSON"
	noCollection = "Not Found"
)

// isFull reports whether an error text says that Typesense accepts no writes at the moment.
func isFull(says string) bool {
	return strings.HasPrefix(says, noRoom) || strings.HasPrefix(says, skipsWrites)
}

// isMissing reports whether an answer says that the collection does not exist.
func isMissing(a exchange.Answer) bool {
	return a.Err == nil && a.Status == http.StatusNotFound && message(a.Body) == noCollection
}

// result is one line of the answer to an import.
type result struct {
	Success *bool  `json:"success"`
	Error   string `json:"error"`
	Code    int    `json:"code"`
}

// ofField finds the name of the field in an error text of Typesense.
var ofField = regexp.MustCompile("^Field `([^`]*)`")

// outcome returns the outcome for one line of the answer. The method does not use the error text,
// which may quote the document.
func (r result) outcome() sink.Outcome {
	if *r.Success {
		return sink.Outcome{Kind: sink.Applied, Status: http.StatusOK}
	}
	o := sink.Outcome{Kind: sink.Rejected, Apart: true, Status: r.Code, Reason: classOther}
	switch m := ofField.FindStringSubmatch(r.Error); {
	case isFull(r.Error):
		o.Kind, o.Apart, o.Reason = sink.Throttled, false, classNoRoom
	case r.Code >= 500:
		o.Kind, o.Apart, o.Reason = sink.Unknown, false, "http "+strconv.Itoa(r.Code)
	case m != nil:
		o.Reason = sink.Reason(classField, m[1])
	case strings.HasPrefix(r.Error, badJSON):
		o.Reason = classBadJSON
	default:
		o.Kind = sink.Refused // the reason is unknown, and a later version of the document may be accepted
	}
	return o
}

// judge returns the outcome for an answer that is not a success.
func judge(ctx context.Context, a exchange.Answer) sink.Outcome {
	if o, failed := exchange.Undelivered(ctx, a); failed {
		return o
	}
	o := sink.Outcome{Status: a.Status, Reason: "http " + strconv.Itoa(a.Status)}
	says := message(a.Body)
	switch {
	case a.Status == http.StatusTooManyRequests:
		o.Kind, o.RetryAfter = sink.Throttled, backoff.After(a.Header, time.Now())
	case a.Status == http.StatusServiceUnavailable && says == notReady:
		o.Kind, o.Reason, o.RetryAfter = sink.Throttled, classNotReady, backoff.After(a.Header, time.Now())
	case a.Status == http.StatusUnprocessableEntity && isFull(says):
		o.Kind, o.Reason = sink.Throttled, classNoRoom
	case a.Status >= 500, a.Status == http.StatusRequestTimeout:
		o.Kind = sink.Unknown
	case a.Status == http.StatusRequestEntityTooLarge:
		o.Kind, o.Apart, o.Reason = sink.Rejected, true, sink.TooLarge
	case isMissing(a):
		o.Kind, o.Apart, o.Reason = sink.Configuration, true, classNoCollection
	default:
		o.Kind = sink.Configuration
	}
	return o
}
