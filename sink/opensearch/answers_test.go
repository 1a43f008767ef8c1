// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/sink/sinktest"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/answers.md")

// row is one answer of OpenSearch. A row says how a fake server gives the answer and, if possible,
// how a real server can be made to give it.
type row struct {
	sinktest.Answer
	answer  handler // answers a bulk request
	resolve string  // the answer to a request for the index behind a name; "" answers 403
	change  func(*opensearch.Options)
	// real prepares a real server. index is the name to which the sink writes the collection.
	real func(t *testing.T, s *opensearch.Sink, index string)
}

// same returns an answer in which the put and the delete have the same outcome.
func same(kind sink.OutcomeKind, reason string) sinktest.Answer {
	o := sink.Outcome{Kind: kind, Reason: reason}
	return sinktest.Answer{Put: o, Delete: o}
}

// apart returns an answer in which the put and the delete have the same outcome, which says nothing
// about other indices.
func apart(kind sink.OutcomeKind, reason string) sinktest.Answer {
	o := sink.Outcome{Kind: kind, Reason: reason, Apart: true}
	return sinktest.Answer{Put: o, Delete: o}
}

// putOnly returns an answer with an outcome for the put. The delete is Applied.
func putOnly(o sink.Outcome) sinktest.Answer { return sinktest.Answer{Put: o} }

// after adds a Retry-After to both outcomes of an answer.
func after(a sinktest.Answer, d time.Duration) sinktest.Answer {
	a.Put.RetryAfter, a.Delete.RetryAfter = d, d
	return a
}

// answers adds the texts of a row to its outcomes.
func answers(a sinktest.Answer, engine, answer, why string) sinktest.Answer {
	a.Engine, a.Says, a.Why = engine, answer, why
	return a
}

// each returns a handler that answers each put with one status and each delete with another. The
// status 0 means success.
func each(put, del int, fault any, headers ...string) handler {
	return func(w http.ResponseWriter, r request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Write(bulkAnswer(r, func(id string, item map[string]any) {
			status := map[string]int{"a": put, "b": del}[id]
			if status == 0 {
				return
			}
			if item["status"] = status; fault != nil {
				item["error"] = fault
			}
		}))
	}
}

// both returns a handler that answers the put and the delete with the same error.
func both(status int, kind, reason string, headers ...string) handler {
	return each(status, status, failure(kind, reason), headers...)
}

// broken returns a handler that takes over the connection, for answers that net/http cannot send.
func broken(do func(conn *net.TCPConn)) handler {
	return func(w http.ResponseWriter, _ request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		if tcp, ok := conn.(*net.TCPConn); ok {
			do(tcp)
		}
	}
}

// Answers to a request for the index behind a name.
const (
	usual       = "" // the outcome itself says why: docs/sinks/opensearch.md lists the outcomes
	anIndex     = `{"indices":[{"name":"test-content","attributes":["open"]}],"aliases":[],"data_streams":[]}`
	anAlias     = `{"indices":[],"aliases":[{"name":"test-content","indices":["test-content-1"]}],"data_streams":[]}`
	manyIndices = `{"indices":[],"aliases":[{"name":"test-content","indices":["test-content-1","test-content-2"]}],"data_streams":[]}`
	aDataStream = `{"indices":[],"aliases":[],"data_streams":[{"name":"test-content"}]}`
	noSuchName  = `{"indices":[],"aliases":[],"data_streams":[]}`
)

// withIndex creates an index on a real server.
func withIndex(settings string) func(*testing.T, *opensearch.Sink, string) {
	return func(t *testing.T, s *opensearch.Sink, index string) {
		call(t, http.MethodPut, s.URL+"/"+index, settings)
	}
}

// aliased creates indices on a real server, and one alias for all of them with the name of the
// collection. If main is true, writes go to the last index.
func aliased(main bool, suffixes ...string) func(*testing.T, *opensearch.Sink, string) {
	return func(t *testing.T, s *opensearch.Sink, index string) {
		for i, suffix := range suffixes {
			call(t, http.MethodPut, s.URL+"/"+index+suffix, fmt.Sprintf(`{"aliases":{%q:{"is_write_index":%t}}}`, index,
				main && i == len(suffixes)-1))
		}
	}
}

const (
	fits = "it does not fit"
)

// unparsed returns a row for a document that no usual index accepts.
func unparsed(why, engine, document string) row {
	r := row{
		Answer: answers(
			putOnly(sink.Outcome{Kind: sink.Rejected, Apart: true, Reason: "mapper_parsing_exception"}), engine,
			"item 400 `mapper_parsing_exception`, caused by another", "unless the index does not look into it"),
		answer: each(400, 0, map[string]any{
			"type": "mapper_parsing_exception", "reason": "failed to parse",
			"caused_by": failure("illegal_argument_exception", why),
		}),
		resolve: anIndex, real: withIndex("{}"),
	}
	r.Document = document
	return r
}

// rows returns the answers of OpenSearch and of proxies before it, with the wanted outcomes. The
// texts come from OpenSearch 2.19, and contain the word secret if OpenSearch quotes content.
func rows() []row {
	const date, later = "Fri, 20 Nov 2026 16:00:00 GMT", "Fri, 20 Nov 2026 16:02:30 GMT"
	items := func(items ...string) handler { return respond(200, `{"items":[`+strings.Join(items, ",")+`]}`) }
	const a, b = `{"index":{"_id":"a","status":201}}`, `{"delete":{"_id":"b","status":404,"result":"not_found"}}`
	reject := func(reason string) sinktest.Answer {
		return putOnly(sink.Outcome{Kind: sink.Rejected, Apart: true, Reason: reason})
	}
	return []row{
		// An index that accepts writes.
		{
			Answer: answers(same(sink.Applied, ""), "works, and has nothing to delete", "item 201; item 404 with result `not_found`", "the sink is as was asked for"),
			answer: items(a, b), resolve: anIndex, real: withIndex(`{}`),
		},
		{
			Answer: answers(same(sink.Applied, ""), "has the name as an alias of one index", "item 201, `_index` is that index", "the alias leads to one place"),
			answer: func(w http.ResponseWriter, r request) {
				w.Write(bulkAnswer(r, func(_ string, item map[string]any) { item["_index"] = "test-content-1" }))
			},
			resolve: anAlias, real: aliased(true, "-1"),
		},
		// Names without an index, or with more than one index.
		{
			Answer: answers(sinktest.Answer{Delete: sink.Outcome{Kind: sink.Configuration, Apart: true, Reason: "index_missing"}}, "has no index of that name, and makes one", "`GET /_resolve/index` names nothing; item 201", "a put makes the index; a delete must not make an empty one"),
			answer: each(0, 0, nil), resolve: noSuchName, real: func(*testing.T, *opensearch.Sink, string) {},
		},
		{
			Answer: answers(apart(sink.Configuration, "index_not_found_exception"), "has no index of that name, and makes none", "item 404 `index_not_found_exception`", usual),
			answer: both(404, "index_not_found_exception", "no such index [secret]"),
		},
		{
			Answer: answers(apart(sink.Configuration, "alias_over_several_indices"), "has the name as an alias of two indices, one for writes", "`GET /_resolve/index` names two", "a write reaches one of them only: let the alias name one index"),
			answer: each(0, 0, nil), resolve: manyIndices, real: aliased(true, "-1", "-2"),
		},
		{
			Answer: answers(apart(sink.Configuration, "illegal_argument_exception"), "has the name as an alias of two indices, none for writes, and does not say so", "item 400 `illegal_argument_exception`: no write index is defined for alias", usual),
			answer: both(400, "illegal_argument_exception", "no write index is defined for alias [secret]. The write index may be explicitly disabled"),
		},
		{
			Answer: answers(same(sink.Unknown, "another_index"), "has its alias moved, or removed, just before the write", "item 201, `_index` is another one than the name stood for", "lull looks the name up and writes again"),
			answer: each(0, 0, nil), resolve: anAlias,
		},
		{
			Answer: answers(apart(sink.Configuration, "data_stream"), "has the name as a data stream", "`GET /_resolve/index` names a data stream", "a data stream takes no versions, and no deletes"),
			answer: each(0, 0, nil), resolve: aDataStream,
			real: func(t *testing.T, s *opensearch.Sink, index string) {
				call(t, http.MethodPut, s.URL+"/_index_template/"+s.Options.Template+"-stream", `{"index_patterns":["`+index+`*"],"data_stream":{},"priority":99}`)
				call(t, http.MethodPut, s.URL+"/_data_stream/"+index, "")
				t.Cleanup(func() {
					call(t, http.MethodDelete, s.URL+"/_data_stream/"+index, "")
					call(t, http.MethodDelete, s.URL+"/_index_template/"+s.Options.Template+"-stream", "")
				})
			},
		},
		{
			Answer: answers(apart(sink.Configuration, "illegal_argument_exception"), "has the name as a data stream, and does not say so", "item 400 `illegal_argument_exception`: only write ops with an op_type of create", usual),
			answer: both(400, "illegal_argument_exception", "only write ops with an op_type of create are allowed in data streams"),
		},
		{
			Answer: answers(apart(sink.Configuration, "invalid_index_name_exception"), "does not allow the name", "item 400 `invalid_index_name_exception`", usual),
			answer: both(400, "invalid_index_name_exception", "Invalid index name [secret]"),
		},
		{
			Answer: answers(apart(sink.Configuration, "validation_exception"), "has no room for another index", "item 400 `validation_exception`", usual),
			answer: both(400, "validation_exception", "this action would add [2] shards, but this cluster currently has [1000]/[1000]"),
		},
		// Indices that accept no writes.
		{
			Answer: answers(apart(sink.Configuration, "index_closed_exception"), "has closed the index", "item 400 `index_closed_exception`", usual),
			answer: both(400, "index_closed_exception", "closed"), resolve: anIndex,
			real: func(t *testing.T, s *opensearch.Sink, index string) {
				call(t, http.MethodPut, s.URL+"/"+index, "")
				call(t, http.MethodPost, s.URL+"/"+index+"/_close", "")
			},
		},
		{
			Answer: answers(apart(sink.Configuration, "cluster_block_exception"), "has the index read-only", "item 403 `cluster_block_exception`", usual),
			answer: both(403, "cluster_block_exception", "index [x] blocked by: [FORBIDDEN/8/index write (api)]"), resolve: anIndex,
			real: withIndex(`{"settings":{"index.blocks.write":true}}`),
		},
		{
			Answer: answers(after(apart(sink.Throttled, "cluster_block_exception"), 0), "has blocked the index because a disk is full", "item 429 `cluster_block_exception`: index […] blocked", "other indices may be on other disks"),
			answer: both(429, "cluster_block_exception", "index [x] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark]"), resolve: anIndex,
			real: withIndex(`{"settings":{"index.blocks.read_only_allow_delete":true}}`),
		},
		{
			Answer: answers(same(sink.Unknown, "unavailable_shards_exception"), "has the index red", "item 503 `unavailable_shards_exception`, after a third of our time", "other indices have their answers in time"),
			answer: both(503, "unavailable_shards_exception", "[x][0] primary shard is not active secret"), resolve: anIndex,
		},
		{
			Answer: answers(same(sink.Throttled, "cluster_block_exception"), "is starting", "item 503 `cluster_block_exception`: state not recovered", usual),
			answer: both(503, "cluster_block_exception", "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered]"),
		},
		{
			Answer: answers(apart(sink.Configuration, "routing_missing_exception"), "requires routing", "item 400 `routing_missing_exception`", usual),
			answer: both(400, "routing_missing_exception", "routing is required for [x]/[secret]"), resolve: anIndex,
			real: withIndex(`{"mappings":{"_routing":{"required":true}}}`),
		},
		{
			Answer: answers(putOnly(sink.Outcome{Kind: sink.Configuration, Apart: true, Reason: "illegal_argument_exception"}), "misses the index's pipeline", "item 400 `illegal_argument_exception`: pipeline with id […] does not exist", "a delete passes no pipeline"),
			answer: each(400, 0, failure("illegal_argument_exception", "pipeline with id [secret] does not exist")), resolve: anIndex,
			real: withIndex(`{"settings":{"index.default_pipeline":"lull-test-no-such-pipeline"}}`),
		},
		{
			Answer: answers(putOnly(sink.Outcome{Kind: sink.Configuration, Apart: true, Reason: "strict_dynamic_mapping_exception: field _lull"}), "maps strictly, and not `_lull`", "item 400 `strict_dynamic_mapping_exception` of `_lull`", "copy the mapping of `_lull` from the template"),
			answer: each(400, 0, failure("strict_dynamic_mapping_exception", "mapping set to strict, dynamic introduction of [_lull] within [_doc] is not allowed")), resolve: anIndex,
			real: func(t *testing.T, s *opensearch.Sink, index string) {
				// A template of the user replaces lull's template.
				call(t, http.MethodPut, s.URL+"/_index_template/"+s.Options.Template, `{"index_patterns":["`+index+`"],"priority":50}`)
				call(t, http.MethodPut, s.URL+"/"+index, `{"mappings":{"dynamic":"strict","properties":{"title":{"type":"text"}}}}`)
			},
		},
		// Documents that an index cannot accept. If no other document of the turn was accepted, the
		// index function first tests the index.
		{
			Answer: answers(reject("illegal_argument_exception: field x"), "has a processor of its pipeline fail", "item 400 `illegal_argument_exception`", "the document, or the pipeline: index asks (see below)"),
			answer: each(400, 0, failure("illegal_argument_exception", "field [x] not present as part of path [x.secret]")), resolve: anIndex,
		},
		{
			Answer: answers(reject("illegal_argument_exception"), "has reached the index's field limit", "item 400 `illegal_argument_exception`: Limit of total fields", "it has fields that the index may not get"),
			answer: each(400, 0, failure("illegal_argument_exception", "Limit of total fields [1000] has been exceeded")), resolve: anIndex,
			real: withIndex(`{"settings":{"index.mapping.total_fields.limit":5},"mappings":{"properties":{"_lull":{"type":"object","enabled":false}}, "dynamic_templates":[{"all":{"match":"title","mapping":{"type":"text","fields":{"a":{"type":"keyword"},"b":{"type":"keyword"},"c":{"type":"keyword"},"d":{"type":"keyword"},"e":{"type":"keyword"}}}}}]}}`),
		},
		{
			Answer: answers(reject("mapper_parsing_exception: field title"), "cannot parse a field", "item 400 `mapper_parsing_exception`", usual),
			answer: each(400, 0, failure("mapper_parsing_exception", "failed to parse field [title] of type [long] in document with id 'secret'. Preview of field's value: 'secret'")), resolve: anIndex,
			real: withIndex(`{"mappings":{"properties":{"title":{"type":"long"}}}}`),
		},
		unparsed("field name cannot be an empty string", "finds a field without a name", `{"a":{"":1}}`),
		unparsed("field name cannot contain only the character [.]", "finds a field whose name is dots", `{"..":1}`),
		unparsed("object field starting or ending with a [.] makes object resolution ambiguous: [secret]",
			"finds a field whose name has a dot too many", `{"a..b":1}`),
		unparsed("The depth of the field has exceeded the allowed limit of [20]", "finds a document nested too deep",
			strings.Repeat(`{"a":`, 30)+"1"+strings.Repeat("}", 30)),
		unparsed("The depth of the nested array field has exceeded the allowed limit of [20]", "finds arrays nested too deep",
			`{"a":`+strings.Repeat("[", 30)+strings.Repeat("]", 30)+"}"),
		unparsed("Duplicate field 'secret'", "finds a field twice", `{"a":1,"a":2}`),
		unparsed("Number value length (2000) exceeds the maximum allowed", "finds a number of 2,000 digits",
			`{"a":`+strings.Repeat("1", 2_000)+"}"),
		{
			Answer: answers(reject("mapper_parsing_exception: field title"), "has an object where the document has a value", "item 400 `mapper_parsing_exception`", usual),
			answer: each(400, 0, failure("mapper_parsing_exception", "object mapping for [details] tried to parse field [title] as object, but found a concrete value")), resolve: anIndex,
			real: withIndex(`{"mappings":{"properties":{"title":{"type":"object"}}}}`),
		},
		{
			Answer: answers(reject("strict_dynamic_mapping_exception: field title"), "maps strictly, and not that field", "item 400 `strict_dynamic_mapping_exception`", usual),
			answer: each(400, 0, failure("strict_dynamic_mapping_exception", "mapping set to strict, dynamic introduction of [title] within [_doc] is not allowed")), resolve: anIndex,
			real: withIndex(`{"mappings":{"dynamic":"strict","properties":{"_lull":{"type":"object","dynamic":true}}}}`),
		},
		{
			Answer: answers(reject("strict_dynamic_mapping_exception"), "names a field that looks like content", "item 400 `strict_dynamic_mapping_exception`", "a name that may be content is left out"),
			answer: each(400, 0, failure("strict_dynamic_mapping_exception", "mapping set to strict, dynamic introduction of [my secret] within [_doc] is not allowed")),
		},
		{
			Answer: answers(reject("illegal_argument_exception: field title"), "finds a word too long for a keyword", "item 400 `illegal_argument_exception`: immense term", usual),
			answer: each(400, 0, failure("illegal_argument_exception", `Document contains at least one immense term in field="title" (whose UTF8 encoding is longer than the max length 32766). The prefix of the first immense term is: 'secret'`)),
		},
		{
			Answer: answers(putOnly(sink.Outcome{Kind: sink.Refused, Apart: true, Reason: "illegal_argument_exception: field title"}), "gets two types for a new field at once", "item 400 `illegal_argument_exception`: cannot be changed from type", "the second of two succeeds once the first has made the mapping"),
			answer: each(400, 0, failure("illegal_argument_exception", "mapper [title] cannot be changed from type [long] to [text]")),
		},
		{
			Answer: answers(reject("unclassified"), "refuses an item without a type", "item 400, error as a text", "probably the document"),
			answer: each(400, 0, "secret as a text"),
		},
		{
			Answer: answers(reject("unclassified"), "finds a document too large", "item 413", usual),
			answer: each(413, 0, nil),
		},
		{
			Answer: answers(putOnly(sink.Outcome{Kind: sink.Refused, Apart: true, Reason: "unclassified"}), "refuses an item in a way of its own", "item 422", "unclear: it is tried again, maxRefusals times"),
			answer: each(422, 0, failure("My Secret", "secret")),
		},
		{
			Answer: answers(same(sink.Newer, "version_conflict_engine_exception"), "holds a greater fence", "item 409 `version_conflict_engine_exception`", "another program writes to the index: alarm"),
			answer: both(409, "version_conflict_engine_exception", "[secret]: version conflict, current version [5] is higher than the one provided [4]"), resolve: anIndex,
			real: func(t *testing.T, s *opensearch.Sink, index string) {
				for _, id := range []string{"a", "b"} {
					call(t, http.MethodPut, s.URL+"/"+index+"/_doc/"+id+"?version=99&version_type=external", `{}`)
				}
			},
		},
		{
			Answer: answers(same(sink.Unknown, "something_else"), "has another conflict", "item 409", "two writes at once: which of them stayed is unknown"),
			answer: both(409, "something_else", "secret"),
		},
		{
			Answer: answers(same(sink.Unknown, "version_conflict_engine_exception"), "has a conflict, of a sink without versions", "item 409", "nothing can be newer there"),
			answer: both(409, "version_conflict_engine_exception", ""),
			change: func(o *opensearch.Options) { o.Versions = false },
		},
		// Requests that are refused as a whole.
		{
			Answer: answers(same(sink.Configuration, "illegal_argument_exception"), "forbids to name an index in a bulk request", "400 `illegal_argument_exception`: explicit index in bulk is not allowed", "`rest.action.multi.allow_explicit_index: false`"),
			answer: respond(400, `{"error":{"type":"illegal_argument_exception","reason":"explicit index in bulk is not allowed"},"status":400}`),
		},
		{
			Answer: answers(same(sink.Refused, "some_exception"), "refuses the request in a way of its own", "400 of OpenSearch, for a lone document too", "the request is halved until one document is alone; index asks (see below)"),
			answer: respond(400, whole("some_exception")),
		},
		{
			Answer: answers(same(sink.Rejected, "action_request_validation_exception"), "finds an action invalid", "400 `action_request_validation_exception`", usual),
			answer: respond(400, whole("action_request_validation_exception")),
		},
		{
			Answer: answers(same(sink.Rejected, sink.TooLarge), "finds the request too large", "413, for a lone document too", "larger requests are cut until they fit; a document that never fits is at fault"),
			answer: respond(413, "<html>secret</html>"),
		},
		{
			Answer: answers(same(sink.Configuration, "http 400"), "is something that is not an OpenSearch", "400 with HTML", usual),
			answer: respond(400, "<html>secret</html>"),
		},
		{
			Answer: answers(same(sink.Configuration, "http 302"), "is behind a login page", "302", "redirects are not followed"),
			answer: respond(302, "", "Location", "/login"),
		},
		{
			Answer: answers(same(sink.Configuration, "http 401"), "does not know lull", "401", usual),
			answer: respond(401, "Unauthorized"),
		},
		{
			Answer: answers(same(sink.Configuration, "http 403"), "is behind an access policy that denies `/_bulk`", "403 of AWS", usual),
			answer: respond(403, `{"Message":"User: secret is not authorized"}`),
		},
		{
			Answer: answers(same(sink.Configuration, "security_exception"), "denies bulk requests", "403 `security_exception`", usual),
			answer: respond(403, whole("security_exception")),
		},
		{
			Answer: answers(apart(sink.Configuration, "security_exception"), "denies writes to the index", "item 403 `security_exception`", usual),
			answer: both(403, "security_exception", "no permissions for secret"), resolve: anIndex,
		},
		{
			Answer: answers(same(sink.Configuration, "no_credentials"), "cannot be asked without credentials", "nothing: the request was not sent", usual),
			answer: each(0, 0, nil),
			change: func(o *opensearch.Options) {
				o.Authenticate = func(*http.Request) error { return errors.New("no secret") }
			},
		},
		{
			Answer: answers(same(sink.Configuration, "index_not_found_exception"), "does not know the path", "404", usual),
			answer: respond(404, whole("index_not_found_exception")),
		},
		{
			Answer: answers(same(sink.Configuration, "http 405"), "does not know the method", "405", usual),
			answer: respond(405, ""),
		},
		{
			Answer: answers(same(sink.Configuration, "resource_already_exists_exception"), "has a conflict about the request", "409", "it is not an answer to a bulk request"),
			answer: respond(409, whole("resource_already_exists_exception")),
		},
		// An overloaded engine.
		{
			Answer: answers(after(same(sink.Throttled, "rejected_execution_exception"), 9*time.Second), "has a full queue for a shard", "item 429, Retry-After of the answer", usual),
			answer: both(429, "rejected_execution_exception", "rejected execution of primary operation secret", "Retry-After", "9"),
		},
		{
			Answer: answers(same(sink.Throttled, "throttled"), "throttles requests", "429 without a type", usual),
			answer: respond(429, "429 Too Many Requests /_bulk"),
		},
		{
			Answer: answers(after(same(sink.Throttled, "circuit_breaking_exception"), 17*time.Second), "has too little memory", "429 with Retry-After in seconds", usual),
			answer: respond(429, whole("circuit_breaking_exception"), "Retry-After", "17"),
		},
		{
			Answer: answers(after(same(sink.Throttled, "throttled"), 150*time.Second), "throttles requests", "429 with Retry-After as a date", "the date is relative to the answer's own"),
			answer: respond(429, "", "Retry-After", later, "Date", date),
		},
		{
			Answer: answers(same(sink.Throttled, "throttled"), "throttles requests", "429 with Retry-After in the past", usual),
			answer: respond(429, "", "Retry-After", date, "Date", later),
		},
		{
			Answer: answers(same(sink.Throttled, "throttled"), "throttles requests", "429 with nonsense as Retry-After", usual),
			answer: respond(429, "", "Retry-After", "soon"),
		},
		{
			Answer: answers(after(same(sink.Throttled, "throttled"), time.Hour), "throttles requests", "429 with a year as Retry-After", "a slip in its clock must not stop indexing for a day"),
			answer: respond(429, "", "Retry-After", "31536000"),
		},
		{
			Answer: answers(after(same(sink.Throttled, "cluster_block_exception"), 5*time.Second), "is starting", "503 `cluster_block_exception`", usual),
			answer: respond(503, whole("cluster_block_exception"), "Retry-After", "5"),
		},
		{
			Answer: answers(same(sink.Throttled, "cluster_manager_not_discovered_exception"), "has no cluster manager", "503 `cluster_manager_not_discovered_exception`", usual),
			answer: respond(503, whole("cluster_manager_not_discovered_exception")),
		},
		// An engine whose answer does not show what happened.
		{
			Answer: answers(same(sink.Unknown, "i_o_exception"), "fails for an item", "item 500", usual),
			answer: both(500, "i_o_exception", "secret"),
		},
		{
			Answer: answers(same(sink.Unknown, "null_pointer_exception"), "fails", "500 with a type", usual),
			answer: respond(500, whole("null_pointer_exception")),
		},
		{
			Answer: answers(same(sink.Unknown, "server_error"), "fails with a type that is content", "500", usual),
			answer: respond(500, whole("it is a secret")),
		},
		{
			Answer: answers(same(sink.Unknown, "server_error"), "is behind a proxy that gets no answer", "502 with HTML", usual),
			answer: respond(502, "<html>secret</html>"),
		},
		{
			Answer: answers(same(sink.Unknown, "server_error"), "is behind a proxy that gets no connection", "503 without a type", "the proxy does not say when it gave up"),
			answer: respond(503, "secret", "Retry-After", "5"),
		},
		{
			Answer: answers(same(sink.Unknown, "server_error"), "is behind a proxy that waited too long", "504", usual),
			answer: respond(504, "{}"),
		},
		{
			Answer: answers(same(sink.Unknown, "server_error"), "waited too long for the request", "408", usual),
			answer: respond(408, ""),
		},
		{
			Answer: answers(same(sink.Unknown, "server_error"), "has no room", "507", usual),
			answer: respond(507, `{"error":"secret"}`),
		},
		{
			Answer: answers(same(sink.Unknown, "bulk_answer"), "says that an item succeeded, and why it failed", "item 201 with an error", "it says two things"),
			answer: both(201, "i_o_exception", "secret"),
		},
		{
			Answer: answers(same(sink.Unknown, "bulk_answer"), "has a 404 that names neither an error nor a result", "item 404", "a delete is applied where the engine says that it found no document"),
			answer: items(`{"index":{"_id":"a","status":404}}`, `{"delete":{"_id":"b","status":404}}`),
		},
		{
			Answer: answers(same(sink.Unknown, "unclassified"), "answers an item with a status of its own", "item 302", fits),
			answer: each(302, 302, nil),
		},
		{
			Answer: answers(same(sink.Unknown, "unclassified"), "answers an item without a status", "item 0", fits),
			answer: items(`{"index":{"_id":"a"}}`, `{"delete":{"_id":"b"}}`),
		},
		{Answer: answers(same(sink.Unknown, "bulk_answer"), "answers too little", "200 with one item", fits), answer: items(a)},
		{Answer: answers(same(sink.Unknown, "bulk_answer"), "answers too much", "200 with three items", fits), answer: items(a, b, b)},
		{Answer: answers(same(sink.Unknown, "bulk_answer"), "answers in another order", "200", fits), answer: items(b, a)},
		{
			Answer: answers(same(sink.Unknown, "bulk_answer"), "answers for another action", "200", fits),
			answer: items(a, `{"index":{"_id":"b","status":201}}`),
		},
		{Answer: answers(same(sink.Unknown, "bulk_answer"), "answers without items", "200", fits), answer: respond(200, `{"errors":false}`)},
		{Answer: answers(same(sink.Unknown, "bulk_answer"), "answers nothing", "200, empty", fits), answer: respond(200, "")},
		{Answer: answers(same(sink.Unknown, "bulk_answer"), "is a login page", "200 with HTML", fits), answer: respond(200, "<html>secret</html>")},
		{Answer: answers(same(sink.Unknown, "bulk_answer"), "answers with other types", "200", fits), answer: respond(200, `{"items":{"index":1}}`)},
		{Answer: answers(same(sink.Unknown, "bulk_answer"), "cuts its text short", "200 with half a text", fits), answer: respond(200, `{"items":[{"index":{"_id`)},
		{
			Answer: answers(same(sink.Unknown, "interrupted"), "cuts the connection in its answer", "200, shorter than announced", usual),
			answer: func(w http.ResponseWriter, _ request) {
				w.Header().Set("Content-Length", "1000")
				io.WriteString(w, `{"items":[`+a+`,`+b+`]}`)
			},
		},
		{
			Answer: answers(same(sink.Unknown, "interrupted"), "never ends its answer", "200, without an end", "1 MB and 16 KB an op are read, no more"),
			answer: func(w http.ResponseWriter, _ request) {
				for line := strings.Repeat(" ", 64<<10); ; {
					if _, err := io.WriteString(w, line); err != nil {
						panic(http.ErrAbortHandler)
					}
				}
			},
		},
		{
			Answer: answers(same(sink.Unknown, "interrupted"), "closes the connection before it answers", "the end of the stream", usual),
			answer: broken(func(*net.TCPConn) {}),
		},
		{
			Answer: answers(same(sink.Unknown, "interrupted"), "resets the connection before it answers", "a reset", usual),
			answer: broken(func(conn *net.TCPConn) { _ = conn.SetLinger(0) }),
		},
		{
			Answer: answers(same(sink.Unknown, "interrupted"), "closes its half of the connection and listens on", "the end of the stream", usual),
			answer: broken(func(conn *net.TCPConn) {
				_ = conn.CloseWrite()
				_, _ = io.Copy(io.Discard, conn) // until the client hangs up
			}),
		},
		{
			Answer: answers(same(sink.Throttled, "unreachable"), "is away", "no connection", "not a byte was sent"),
			change: func(o *opensearch.Options) { o.URL = "http://127.0.0.1:1" },
		},
	}
}

// fake returns a sink whose engine is a fake that answers as the row says.
func (r row) fake(t *testing.T) *opensearch.Sink {
	t.Helper()
	e := startResolving(t, r.answer, r.resolve)
	return e.sink(t, r.change)
}

// table returns the rows in the form that sinktest.Answers expects.
func table() []sinktest.Answer {
	var all []sinktest.Answer
	for _, r := range rows() {
		r.Open = func(t *testing.T) sink.Sink { return r.fake(t) }
		all = append(all, r.Answer)
	}
	return all
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	sinktest.Answers(t, table())
}

// The real server must give the same answers as the fake, because the other tests rely on the fake.
func TestRealServerAnswersAlike(t *testing.T) {
	t.Parallel()
	for _, r := range realRows() {
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			s := real(t, r.change)
			r.real(t, s, strings.ReplaceAll(s.Index, "{collection}", "content"))
			r.Check(t, s)
		})
	}
}

// If one index is red, its documents get no answer, and the request takes a third of the time.
// Documents of other indices get their answers.
func TestRealServerWithARedIndex(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	call(t, http.MethodPut, indexURL(s, "red")+"?timeout=0s", `{"settings":{"index.routing.allocation.include._name":"nobody"}}`)
	ctx, cancel := withDeadline(t, 3*time.Second)
	defer cancel()
	got := s.Write(ctx, []sink.Op{put("red#a", 1, `{}`), put("fine#a", 1, `{}`), del("red#b", 1)})
	if got[0].Kind != sink.Unknown || got[1].Kind != sink.Applied || got[2].Kind != sink.Unknown {
		t.Errorf("outcomes %+v, want unknown, applied, unknown", got)
	}
}

// The page of the answers has the table that the tests check.
func TestTheAnswersPageIsUpToDate(t *testing.T) {
	t.Parallel()
	sinktest.Page(t, "testdata/answers.md", "go test ./sink/opensearch -run TestTheAnswersPage -rewrite", table(), *rewrite)
}

// The sink caches the index behind a name for a minute. In the meantime, a user may delete the
// index, and a put of the same request then creates a new one. So the delete must not count as
// applied.
func TestADeleteAsksAnewWhetherItsIndexIsThere(t *testing.T) {
	t.Parallel()
	s := startResolving(t, applied, anIndex, noSuchName).sink(t, nil)
	ops := sinktest.Ops()
	write(t, s, sink.Applied, ops[0]) // after this write, the sink has cached the index
	got := s.Write(t.Context(), ops)
	gone := sink.Outcome{Kind: sink.Configuration, Apart: true, Reason: "index_missing"}
	if got[0].Kind != sink.Applied || got[1] != gone {
		t.Errorf("outcomes %+v, want the put applied, and the delete %+v", got, gone)
	}
}

// An op that was not sent is not Unknown, so that lull can release its lease at once.
func TestWhatWasNeverSentIsNotUnknown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := start(t, func(w http.ResponseWriter, r request) {
		cancel() // the context ends while the first request runs
		<-r.Context().Done()
	})
	ops := make([]sink.Op, 2_000)
	for i := range ops {
		ops[i] = put(fmt.Sprintf("c#%d", i), 1, `{}`)
	}
	counts := map[sink.Outcome]int{}
	for _, o := range e.sink(t, nil).Write(ctx, ops) {
		counts[o]++
	}
	sent, not := sink.Outcome{Kind: sink.Unknown, Reason: "interrupted"},
		sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: "not_sent"}
	if counts[sent] != 500 || counts[not] != 1_500 {
		t.Errorf("outcomes %v, want 500 unknown and 1,500 that were not sent", counts)
	}
	e.got(t, 1)
}
