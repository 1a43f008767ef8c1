package opensearch

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// ClassConfig begins the reason of an outcome that no document caused and waiting alone will not
// cure: credentials, permissions, a missing index, an address that is not an OpenSearch. Nothing
// was applied.
const ClassConfig = "sink_config"

// Classes of outcomes that OpenSearch has no type for.
const (
	classInterrupted = "interrupted"  // the context ended, or the connection broke, before the answer
	classUnreachable = "unreachable"  // no connection: nothing was sent
	classNotSent     = "not_sent"     // an earlier part of the same write was refused whole
	classMismatch    = "bulk_answer"  // the answer does not fit the request
	classThrottled   = "throttled"    // 429 without a type
	classServerError = "server_error" // 5xx without a type
	classBadRequest  = "bad_request"  // 400 without a type
)

func configFault(status int, f fault) sink.Outcome {
	class := cmp.Or(f.class(), "http "+strconv.Itoa(status))
	return sink.Outcome{Kind: sink.Throttled, Status: status, Reason: ClassConfig + ": " + class}
}

// notConnected judges a request of which not a byte was sent.
func notConnected(err error) sink.Outcome {
	var auth *authError
	if errors.As(err, &auth) {
		return sink.Outcome{Kind: sink.Throttled, Reason: ClassConfig + ": no credentials"}
	}
	return sink.Outcome{Kind: sink.Throttled, Reason: classUnreachable}
}

// refusedBefore are the errors with status 503 that say that nothing was applied: the request was
// stopped at the door. Every other 503 may come after the fact: a replica's node or a proxy gave up
// waiting.
var refusedBefore = map[string]bool{
	"cluster_block_exception":                  true,
	"cluster_manager_not_discovered_exception": true,
	"master_not_discovered_exception":          true,
}

// configTypes are errors with status 400 whose cause is the cluster or the settings, whatever the
// document.
var configTypes = map[string]bool{
	"index_closed_exception":       true,
	"invalid_index_name_exception": true,
	"validation_exception":         true, // no room for another index: maximum shards open
}

// noWriteIndex is how OpenSearch begins to say that an alias has several indices and none to write
// to. The error's type, illegal_argument_exception, is also that of documents at fault, and no
// document must die of an alias.
const noWriteIndex = "no write index is defined for alias"

// typeConflict is part of what OpenSearch says, with the type illegal_argument_exception, where two
// values bring a new field two types: in one document, or in two that arrive together. The second
// of two succeeds once the first has made the mapping, so it is not for good yet.
const typeConflict = "cannot be changed from type"

// itemOutcome judges the answer for one op. after is what the whole answer's Retry-After says.
func (s *Sink) itemOutcome(kind shard.Operation, status int, f fault, after time.Duration) sink.Outcome {
	o := sink.Outcome{Status: status, Reason: f.reason()}
	switch {
	case status >= 200 && status < 300:
		return sink.Outcome{Kind: sink.Applied, Status: status}
	case status == http.StatusNotFound && kind == shard.Delete:
		return sink.Outcome{Kind: sink.Applied, Status: status} // of a missing document, or of any in a missing index
	case status == http.StatusConflict && s.Options.Versions && f.Type == "version_conflict_engine_exception":
		o.Kind = sink.Newer
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && refusedBefore[f.Type]:
		o.Kind, o.RetryAfter = sink.Throttled, after
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound,
		status == http.StatusBadRequest && (configTypes[f.Type] || strings.HasPrefix(f.Reason, noWriteIndex)):
		o = configFault(status, f)
		o.Apart = true
	case status == http.StatusBadRequest && strings.Contains(f.Reason, typeConflict):
		o.Kind = sink.Refused
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge:
		o.Kind = sink.Rejected
	case status >= 400 && status < 500 && status != http.StatusConflict && status != http.StatusRequestTimeout:
		o.Kind = sink.Refused
	default:
		o.Kind = sink.Unknown
	}
	return o
}

// wholeOutcome judges an answer that is not an answer to a bulk request: what it says holds for
// every op. split says that the request was refused for what is in it, so that a part of it may be
// sent again; the outcome is then that of an op that was alone.
func wholeOutcome(a answer) (o sink.Outcome, split bool) {
	f, ours := parseFault(a.body)
	o = sink.Outcome{Status: a.status, Reason: f.class()}
	switch {
	case a.status == http.StatusRequestEntityTooLarge:
		o.Kind, o.Reason = sink.Rejected, sink.TooLarge
		return o, true
	case a.status == http.StatusBadRequest && ours && f.Type == "action_request_validation_exception":
		o.Kind = sink.Rejected
		return o, true
	case a.status == http.StatusBadRequest && ours:
		o.Kind, o.Reason = sink.Refused, cmp.Or(o.Reason, classBadRequest)
		return o, true
	case a.status == http.StatusTooManyRequests:
		o.Kind, o.Reason, o.RetryAfter = sink.Throttled, cmp.Or(o.Reason, classThrottled),
			retryAfter(a.header, time.Now())
	case a.status == http.StatusServiceUnavailable && refusedBefore[f.Type]:
		o.Kind, o.RetryAfter = sink.Throttled, retryAfter(a.header, time.Now())
	case a.status >= 500, a.status == http.StatusRequestTimeout:
		o.Kind, o.Reason = sink.Unknown, cmp.Or(o.Reason, classServerError)
	default:
		return configFault(a.status, f), false
	}
	return o, false
}

// maxRetryAfter bounds what a sink may ask for: a slip in its clock must not stop indexing for a
// day.
const maxRetryAfter = time.Hour

// retryAfter reads the header of that name: seconds, or an HTTP date, which is relative to the
// answer's own date where it has one.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
