// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"net/http"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

// An index that a user has just created has no mapping, not even for _id, by which All sorts.
func TestAnIndexWithoutAMappingIsEmpty(t *testing.T) {
	t.Parallel()
	s := real(t, func(o *opensearch.Options) { o.Collections = []event.Collection{"content"} })
	call(t, http.MethodDelete, s.URL+"/_index_template/"+s.Options.Template, "")
	call(t, http.MethodPut, indexURL(s, "content"), "")
	if err := s.Prepare(t.Context()); err != nil { // the template is for indices that are created later
		t.Fatal(err)
	}
	none := func(d sink.Stored) error { t.Errorf("%s is in an empty index", d.Doc); return nil }
	if err := s.All(t.Context(), none); err != nil {
		t.Errorf("All: %v", err)
	}
	if err := s.Range(t.Context(), "content", "", none); err != nil {
		t.Errorf("Range: %v", err)
	}
	if found, err := s.Search(t.Context(), sink.Query{Collection: "content", Text: "vienna", Limit: 10}); err != nil ||
		len(found) != 0 {
		t.Errorf("Search: %v, %v", found, err)
	}
	if doc, ok, err := s.Sample(t.Context(), "content"); ok || err != nil {
		t.Errorf("Sample: %q, %v", doc, err)
	}
}
