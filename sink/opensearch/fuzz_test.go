// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// For any answer to a bulk request, each op must get one outcome. An op is Applied only if its
// status says so. A reason must not quote content.
func FuzzBulkAnswer(f *testing.F) {
	for _, body := range []string{
		`{"items":[{"index":{"_id":"a","status":201}},{"delete":{"_id":"b","status":404,"result":"not_found"}}]}`,
		`{"items":[{"index":{"_id":"a","status":400,"error":{"type":"t","reason":"field [x] \u0000","caused_by":{"type":"u"}}}},{"delete":{"_id":"b","status":409,"error":"x"}}]}`,
		`{"error":{"type":"t"},"status":500}`, `{"items":null}`, `[`, ``,
	} {
		f.Add(200, body)
		f.Add(400, body)
	}
	s := &Sink{Options: Options{Versions: true}}
	f.Fuzz(func(t *testing.T, status int, body string) {
		a := exchange.Answer{Status: status, Header: http.Header{}, Body: []byte(body), Sent: true}
		b := exchange.Batch{Outcomes: make([]sink.Outcome, 2)}
		if a.OK() {
			s.read(a, &b, []exchange.Entry{
				{Op: sink.Op{Kind: shard.Put, Doc: "c#a"}}, {Op: sink.Op{Kind: shard.Delete, Doc: "c#b"}, Position: 1},
			}, nil)
		} else {
			o, split := wholeOutcome(a)
			if split && o.Kind != sink.Rejected && o.Kind != sink.Refused {
				t.Fatalf("cut after %+v", o)
			}
			b.Outcomes = []sink.Outcome{o}
		}
		for i, o := range b.Outcomes {
			if o.Kind == sink.Applied && !(o.Status >= 200 && o.Status < 300 || i == 1 &&
				o.Status == http.StatusNotFound) {
				t.Fatalf("applied with %+v", o)
			}
			for _, r := range strings.TrimPrefix(o.Reason, "http ") {
				if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-: ", r) {
					t.Fatalf("reason %q", o.Reason)
				}
			}
		}
	})
}
