package opensearch_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

// Each item has its own outcome, all in one mixed answer. The texts are OpenSearch 2.19's, with
// content where it quotes some.
func TestBulkAnswerIsReadPerItem(t *testing.T) {
	t.Parallel()
	const quoted = "failed to parse field [details.size] of type [long] in document with id 'secret'. Preview of field's value: 'secret'"
	tests := []struct {
		op     shard.Operation
		status int
		fault  any
		want   sink.Outcome
	}{
		{shard.Put, 200, nil, sink.Outcome{}},
		{shard.Put, 201, nil, sink.Outcome{}},
		{shard.Delete, 200, nil, sink.Outcome{}},
		{shard.Delete, 404, nil, sink.Outcome{}},
		{shard.Delete, 404, failure("index_not_found_exception", "no such index [secret]"), sink.Outcome{}},
		{
			shard.Put, 404, failure("index_not_found_exception", "no such index [secret]"),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: index_not_found_exception"},
		},
		{
			shard.Put, 409, failure("version_conflict_engine_exception",
				"[secret]: version conflict, current version [5] is higher than the one provided [4]"),
			sink.Outcome{Kind: sink.Newer, Reason: "version_conflict_engine_exception"},
		},
		{
			shard.Delete, 409, failure("version_conflict_engine_exception", "[secret]: version conflict"),
			sink.Outcome{Kind: sink.Newer, Reason: "version_conflict_engine_exception"},
		},
		{
			shard.Put, 409, failure("something_else", "secret"),
			sink.Outcome{Kind: sink.Unknown, Reason: "something_else"},
		},
		{
			shard.Put, 429, failure("rejected_execution_exception", "rejected execution of primary operation secret"),
			sink.Outcome{Kind: sink.Throttled, Reason: "rejected_execution_exception", RetryAfter: 9 * time.Second},
		},
		{
			shard.Put, 429, failure("cluster_block_exception",
				"index [x] blocked by: disk usage exceeded flood-stage watermark"),
			sink.Outcome{Kind: sink.Throttled, Reason: "cluster_block_exception", RetryAfter: 9 * time.Second},
		},
		{
			shard.Put, 403, failure("cluster_block_exception", "index [x] blocked by: [FORBIDDEN/8/index write (api)]"),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: cluster_block_exception"},
		},
		{
			shard.Put, 403, failure("security_exception", "no permissions for secret"),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: security_exception"},
		},
		{
			shard.Put, 503, failure("unavailable_shards_exception", "[x][0] primary shard is not active secret"),
			sink.Outcome{Kind: sink.Unknown, Reason: "unavailable_shards_exception"},
		},
		{
			shard.Put, 503, failure("cluster_block_exception", "blocked by: [SERVICE_UNAVAILABLE/1/state not recovered]"),
			sink.Outcome{Kind: sink.Throttled, Reason: "cluster_block_exception", RetryAfter: 9 * time.Second},
		},
		{shard.Put, 500, failure("i_o_exception", "secret"), sink.Outcome{Kind: sink.Unknown, Reason: "i_o_exception"}},
		{
			shard.Put, 400, failure("mapper_parsing_exception", quoted),
			sink.Outcome{Kind: sink.Rejected, Reason: "mapper_parsing_exception: field details.size"},
		},
		{
			shard.Put, 400, failure("mapper_parsing_exception",
				"object mapping for [details] tried to parse field [body] as object, but found a concrete value"),
			sink.Outcome{Kind: sink.Rejected, Reason: "mapper_parsing_exception: field body"},
		},
		{
			shard.Put, 400, failure("strict_dynamic_mapping_exception",
				"mapping set to strict, dynamic introduction of [color] within [_doc] is not allowed"),
			sink.Outcome{Kind: sink.Rejected, Reason: "strict_dynamic_mapping_exception: field color"},
		},
		{
			shard.Put, 400, failure("strict_dynamic_mapping_exception",
				"mapping set to strict, dynamic introduction of [my secret] within [_doc] is not allowed"),
			sink.Outcome{Kind: sink.Rejected, Reason: "strict_dynamic_mapping_exception"},
		},
		{shard.Put, 400, failure("illegal_argument_exception",
			`Document contains at least one immense term in field="title" (whose UTF8 encoding is longer than the max length 32766), all of which were skipped. The prefix of the first immense term is: 'secret'`), sink.Outcome{Kind: sink.Rejected, Reason: "illegal_argument_exception: field title"}},
		{
			shard.Put, 400, failure("illegal_argument_exception", "Limit of total fields [1000] has been exceeded"),
			sink.Outcome{Kind: sink.Rejected, Reason: "illegal_argument_exception"},
		},
		{
			shard.Put, 400, failure("illegal_argument_exception",
				"mapper [views] cannot be changed from type [long] to [text]"),
			sink.Outcome{Kind: sink.Refused, Reason: "illegal_argument_exception: field views"},
		},
		{
			shard.Put, 400, failure("illegal_argument_exception",
				"no write index is defined for alias [secret]. The write index may be explicitly disabled"),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: illegal_argument_exception"},
		},
		{
			shard.Put, 400, failure("invalid_index_name_exception", "Invalid index name [secret]"),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: invalid_index_name_exception"},
		},
		{
			shard.Put, 400, failure("index_closed_exception", "closed"),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: index_closed_exception"},
		},
		{
			shard.Put, 400, failure("validation_exception",
				"this action would add [2] total shards, but this cluster currently has [1000]/[1000] maximum shards open"),
			sink.Outcome{Kind: sink.Throttled, Reason: "sink_config: validation_exception"},
		},
		{shard.Put, 400, "secret as a text", sink.Outcome{Kind: sink.Rejected, Reason: "unclassified"}},
		{shard.Put, 413, nil, sink.Outcome{Kind: sink.Rejected, Reason: "unclassified"}},
		{shard.Put, 422, failure("My Secret", "secret"), sink.Outcome{Kind: sink.Refused, Reason: "unclassified"}},
		{shard.Put, 302, nil, sink.Outcome{Kind: sink.Unknown, Reason: "unclassified"}},
		{shard.Put, 0, nil, sink.Outcome{Kind: sink.Unknown, Reason: "unclassified"}},
	}
	e := start(t, func(w http.ResponseWriter, r request) {
		w.Header().Set("Retry-After", "9")
		w.Write(bulkAnswer(r, func(id string, item map[string]any) {
			n, err := strconv.Atoi(id)
			if err != nil {
				t.Errorf("id %q: %v", id, err)
				return
			}
			item["status"], item["error"] = tests[n].status, tests[n].fault
		}))
	})
	ops := make([]sink.Op, len(tests))
	for i, tt := range tests {
		ops[i] = put(fmt.Sprintf("c#%d", i), 1, `{}`)
		ops[i].Kind = tt.op
	}
	got := e.sink(t, nil).Write(t.Context(), ops)
	quiet(t, got)
	for i, o := range got {
		if want := tests[i].want; o.Kind != want.Kind || o.Reason != want.Reason || o.RetryAfter != want.RetryAfter ||
			o.Status != tests[i].status {
			t.Errorf("item %d (%s, %d, %v): %+v, want %+v", i, tests[i].op, tests[i].status, tests[i].fault, o, want)
		}
	}
	e.got(t, 1)
}

// Without versions nothing can be newer: a conflict is two writes at once, and which of them stayed
// is unknown.
func TestAConflictWithoutVersionsIsUnknown(t *testing.T) {
	t.Parallel()
	e := start(t, func(w http.ResponseWriter, r request) {
		w.Write(bulkAnswer(r, func(_ string, item map[string]any) {
			item["status"], item["error"] = 409, failure("version_conflict_engine_exception", "")
		}))
	})
	write(t, e.sink(t, func(o *opensearch.Options) { o.Versions = false }), sink.Unknown, three()...)
}

func TestWhatIsSent(t *testing.T) {
	t.Parallel()
	const meta = `"_lull":{"version":"%d","order_key":"","fence":%[1]d,"indexed_at":"2023-11-14T22:13:20Z"}`
	tests := []struct {
		name   string
		change func(*opensearch.Options)
		want   string
	}{
		{"with versions", nil, `{"index":{"_index":"test-c","_id":"a","version":1,"version_type":"external_gte"}}
{` + fmt.Sprintf(meta, 1) + `,"n":1}
{"delete":{"_index":"test-c","_id":"b","version":2,"version_type":"external_gte"}}
{"index":{"_index":"test-c","_id":"c","version":3,"version_type":"external_gte"}}
{` + fmt.Sprintf(meta, 3) + `}
`},
		{"serverless", func(o *opensearch.Options) { o.Versions, o.Serverless, o.Index = false, true, "{collection}-v1" }, `{"index":{"_index":"c-v1","_id":"a"}}
{` + fmt.Sprintf(meta, 1) + `,"n":1}
{"delete":{"_index":"c-v1","_id":"b"}}
{"index":{"_index":"c-v1","_id":"c"}}
{` + fmt.Sprintf(meta, 3) + `}
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, applied)
			s := e.sink(t, tt.change)
			write(t, s, sink.Applied, put("c#a", 1, "{\n  \"n\": 1\n}"), del("c#b", 2), put("c#c", 3, `{}`))
			r := e.seen()[0]
			if r.body != tt.want {
				t.Errorf("sent\n%s\nwant\n%s", r.body, tt.want)
			}
			if got := r.Method + " " + r.URL.String(); got != "POST /_bulk" {
				t.Errorf("request %s", got)
			}
			if got := r.Header.Get("Content-Type"); got != "application/x-ndjson" {
				t.Errorf("content type %s", got)
			}
		})
	}
}

// The server is told to give up when we do.
func TestADeadlineIsHandedOn(t *testing.T) {
	t.Parallel()
	e := start(t, applied)
	ctx, cancel := withDeadline(t, time.Hour)
	defer cancel()
	e.sink(t, nil).Write(ctx, three())
	e.sink(t, func(o *opensearch.Options) { o.Versions, o.Serverless = false, true }).Write(ctx, three())
	var ms int
	if _, err := fmt.Sscanf(e.seen()[0].URL.Query().Get("timeout"), "%dms", &ms); err != nil || ms <= 0 ||
		ms > 3_600_000 {
		t.Errorf("request %s: %v", e.seen()[0].URL, err)
	}
	if got := e.seen()[1].URL.RawQuery; got != "" {
		t.Errorf("serverless request with %s", got)
	}
}

func TestRequestsKeepTheirBounds(t *testing.T) {
	t.Parallel()
	e := start(t, applied)
	// A line pair of an empty document has about 220 bytes.
	s := e.sink(t, func(o *opensearch.Options) { o.BulkDocuments, o.BulkBytes = 4, 1_200 })
	big := fmt.Sprintf(`{"text":"%02000d"}`, 0)
	ops := []sink.Op{
		put("c#0", 1, `{}`), put("c#1", 1, big), put("c#2", 1, `{}`), put("c#3", 1, `{}`), del("c#4", 1),
		del("c#5", 1), del("c#6", 1), put("c#7", 1, big), put("c#8", 1, big),
	}
	write(t, s, sink.Applied, ops...)
	var got []string
	for _, r := range e.seen() {
		got = append(got, fmt.Sprint(r.ids()))
		if n := len(r.ids()); n > 4 || n > 1 && len(r.body) > 1_200 {
			t.Errorf("a request of %d documents and %d bytes", n, len(r.body))
		}
	}
	if want := "[[0] [1] [2 3 4 5] [6] [7] [8]]"; fmt.Sprint(got) != want {
		t.Errorf("requests %v, want %s", got, want)
	}
}
