// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

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

// The request tells the server to wait for a shard for at most a third of the remaining time. So a
// red shard does not delay the answers for other shards too long.
func TestADeadlineIsHandedOn(t *testing.T) {
	t.Parallel()
	e := start(t, applied)
	ctx, cancel := withDeadline(t, time.Hour)
	defer cancel()
	e.sink(t, nil).Write(ctx, three())
	e.sink(t, func(o *opensearch.Options) { o.Versions, o.Serverless = false, true }).Write(ctx, three())
	var ms int
	if _, err := fmt.Sscanf(e.seen()[0].URL.Query().Get("timeout"), "%dms", &ms); err != nil || ms <= 0 ||
		ms > 1_200_000 {
		t.Errorf("request %s: %v", e.seen()[0].URL, err)
	}
	if got := e.seen()[1].URL.RawQuery; got != "" {
		t.Errorf("serverless request with %s", got)
	}
}

func TestRequestsKeepTheirBounds(t *testing.T) {
	t.Parallel()
	e := start(t, applied)
	// The two lines for an empty document have about 220 bytes.
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
