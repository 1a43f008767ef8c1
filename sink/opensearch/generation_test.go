// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lullhq/lull/sink/opensearch"
)

func TestAnIndexThatCannotBeRecognisedHasNoGeneration(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status     int
		answer     string
		want       string
		serverless bool
		fails      bool
	}{
		"an index":        {answer: `{"test-content":{"settings":{"index":{"uuid":"u1"}}}}`, want: "u1"},
		"behind an alias": {answer: `{"test-content-000002":{"settings":{"index":{"uuid":"u2"}}}}`, want: "u2"},
		"an alias of two indices": {
			answer: `{"a":{"settings":{"index":{"uuid":"u1"}}},"b":{"settings":{"index":{"uuid":"u2"}}}}`,
		},
		"without bodies": {
			answer: `{"test-content":{"settings":{"index":{"uuid":"u1"}},"mappings":{"_source":{"enabled":false}}}}`,
		},
		"with derived bodies": {
			answer: `{"test-content":{"settings":{"index":{"uuid":"u1","derived_source":{"enabled":"true"}}}}}`,
		},
		"behind a pipeline": {
			answer: `{"test-content":{"settings":{"index":{"uuid":"u1","default_pipeline":"vectors"}}}}`,
		},
		"with the pipeline that is none": {
			answer: `{"test-content":{"settings":{"index":{"uuid":"u1","final_pipeline":"_none"}}}}`, want: "u1",
		},
		"of a mode that makes bodies up": {
			answer: `{"test-content":{"settings":{"index":{"uuid":"u1","mode":"logsdb"}}}}`,
		},
		"of the usual mode": {answer: `{"test-content":{"settings":{"index":{"uuid":"u1","mode":"standard"}}}}`, want: "u1"},
		"with synthetic bodies": {
			answer: `{"test-content":{"settings":{"index":{"uuid":"u1","mapping":{"source":{"mode":"synthetic"}}}}}}`,
		},
		"that keeps vectors apart": {
			answer: `{"test-content":{"settings":{"index":{"uuid":"u1"}},"defaults":{"index":{"mapping":{"exclude_source_vectors":"true"}}}}}`,
		},
		"that keeps vectors in bodies": {
			answer: `{"test-content":{"settings":{"index":{"uuid":"u1","mapping":{"exclude_source_vectors":"false"}}}}}`, want: "u1",
		},
		"nothing there":  {status: http.StatusNotFound, answer: `{"error":{"type":"index_not_found_exception"},"status":404}`},
		"denied":         {status: http.StatusForbidden, answer: `{"error":{"type":"security_exception"},"status":403}`, fails: true},
		"no OpenSearch":  {answer: `<html>`, fails: true},
		"out of service": {status: http.StatusServiceUnavailable, fails: true},
		"serverless":     {answer: `{"test-content":{"settings":{"index":{"uuid":"u1"}}}}`, serverless: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, func(w http.ResponseWriter, r request) {
				if r.Method != http.MethodGet || r.URL.Path != "/test-content" ||
					!strings.Contains(r.URL.Query().Get("filter_path"), "uuid") {
					t.Errorf("asked %s %s", r.Method, r.URL)
				}
				if tt.status != 0 {
					w.WriteHeader(tt.status)
				}
				io.WriteString(w, tt.answer)
			})
			s := e.sink(t, func(o *opensearch.Options) {
				if tt.serverless {
					o.Versions, o.Serverless = false, true
				}
			})
			got, err := s.Generation(t.Context(), "content")
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
