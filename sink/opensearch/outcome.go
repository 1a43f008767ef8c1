// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Classes of outcomes for which OpenSearch has no error type.
const (
	classNoIndex     = "index_missing"
	classManyIndices = "alias_over_several_indices"
	classDataStream  = "data_stream"
	classProduct     = "another_product" // the engine is another product than the sink's kind says
	classElsewhere   = "another_index"   // the alias named another index than a moment before
	classMismatch    = "bulk_answer"     // the items of the answer do not match the request
	classThrottled   = "throttled"       // 429 without a type
	classServerError = "server_error"    // 5xx without a type
	classBadRequest  = "bad_request"     // 400 without a type
)

func configFault(status int, f fault) sink.Outcome {
	class := cmp.Or(f.class(), "http "+strconv.Itoa(status))
	return sink.Outcome{Kind: sink.Configuration, Status: status, Reason: sink.Reason(class, f.field())}
}

// refusedBefore lists the errors with status 503 that mean that nothing was applied, because the
// engine refused the request at once. Any other 503 may come after the write was applied, if a
// replica's node or a proxy stopped waiting.
var refusedBefore = map[string]bool{
	"cluster_block_exception":                  true,
	"cluster_manager_not_discovered_exception": true,
	"master_not_discovered_exception":          true,
}

// configTypes lists the errors with status 400 that are caused by the cluster or the settings, and
// never by the document.
var configTypes = map[string]bool{
	"index_closed_exception":       true,
	"invalid_index_name_exception": true,
	"routing_missing_exception":    true, // lull writes without routing
	"validation_exception":         true, // the limit of open shards is reached, so no index can be created
}

// configTexts lists how such errors begin if their type is illegal_argument_exception. OpenSearch
// uses that type also for faults of documents.
var configTexts = []string{
	"explicit index in bulk is not allowed", // rest.action.multi.allow_explicit_index: false
	"no write index is defined for alias",   // an alias of several indices
	"only write ops with an op_type of create are allowed in data streams",
	"pipeline with id [", // index.default_pipeline or index.final_pipeline does not exist
}

// blamesSettings reports whether an error with status 400 blames the cluster or the index. An error
// about lull's own member does, because such a mapping refuses every document.
func blamesSettings(f fault) bool {
	return configTypes[f.Type] || f.field() == sink.MetaField || strings.HasPrefix(f.field(), sink.MetaField+".") ||
		slices.ContainsFunc(configTexts, func(text string) bool { return strings.HasPrefix(f.Reason, text) })
}

// typeConflict is part of a text of OpenSearch with the type illegal_argument_exception. This text
// means that two values give a new field two different types. The values are in one document, or in
// two documents that arrive together. The refused one of two documents may succeed later, after the
// mapping was created, so the refusal is not final.
const typeConflict = "cannot be changed from type"

// oneIndex is how OpenSearch's text begins if only one index is blocked, and not the cluster.
const oneIndex = "index ["

// itemOutcome returns the outcome for the answer to one op. after is the Retry-After of the whole
// answer.
func (s *Sink) itemOutcome(kind shard.Operation, it item, after time.Duration) sink.Outcome {
	f, failed := it.fault()
	o := sink.Outcome{Status: it.Status, Reason: f.reason()}
	switch status := it.Status; {
	case status >= 200 && status < 300 && failed, status == http.StatusNotFound && !failed && it.Result != notFound:
		o.Kind, o.Reason = sink.Unknown, classMismatch // the status and the result contradict each other
	case status >= 200 && status < 300, status == http.StatusNotFound && !failed && kind == shard.Delete:
		return sink.Outcome{Kind: sink.Applied, Status: status}
	case status == http.StatusConflict && s.Options.Versions && f.Type == "version_conflict_engine_exception":
		o.Kind = sink.Newer
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && refusedBefore[f.Type]:
		o.Kind, o.RetryAfter = sink.Throttled, after
		o.Apart = f.Type == "cluster_block_exception" && strings.HasPrefix(f.Reason, oneIndex)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound,
		status == http.StatusBadRequest && blamesSettings(f):
		o = configFault(status, f)
		o.Apart = true
	case status == http.StatusBadRequest && strings.Contains(f.Reason, typeConflict):
		o.Kind, o.Apart = sink.Refused, true
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge:
		o.Kind, o.Apart = sink.Rejected, true
	case status >= 400 && status < 500 && status != http.StatusConflict && status != http.StatusRequestTimeout:
		o.Kind, o.Apart = sink.Refused, true
	default:
		o.Kind = sink.Unknown
	}
	return o
}

// wholeOutcome judges an answer that reports one error for the whole bulk request. Every op gets
// the returned outcome. split says that the engine refused the contents of the request, so that a
// part of the request may be sent again. An op gets the outcome then only if it was alone in its
// request.
func wholeOutcome(a exchange.Answer) (o sink.Outcome, split bool) {
	f, ours := parseFault(a.Body)
	o = sink.Outcome{Status: a.Status, Reason: f.class()}
	switch {
	case a.Status == http.StatusRequestEntityTooLarge:
		o.Kind, o.Reason = sink.Rejected, sink.TooLarge
		return o, true
	case a.Status == http.StatusBadRequest && ours && !blamesSettings(f):
		o.Kind, o.Reason = sink.Refused, cmp.Or(o.Reason, classBadRequest)
		if f.Type == "action_request_validation_exception" {
			o.Kind = sink.Rejected
		}
		return o, true
	case a.Status == http.StatusTooManyRequests:
		o.Kind, o.Reason, o.RetryAfter = sink.Throttled, cmp.Or(o.Reason, classThrottled),
			backoff.After(a.Header, time.Now())
	case a.Status == http.StatusServiceUnavailable && refusedBefore[f.Type]:
		o.Kind, o.RetryAfter = sink.Throttled, backoff.After(a.Header, time.Now())
	case a.Status >= 500, a.Status == http.StatusRequestTimeout:
		o.Kind, o.Reason = sink.Unknown, cmp.Or(o.Reason, classServerError)
	default:
		return configFault(a.Status, f), false
	}
	return o, false
}
