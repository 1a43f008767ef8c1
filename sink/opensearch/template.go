package opensearch

import (
	"context"
	_ "embed" // template.json
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/lullhq/lull/sink"
)

//go:embed template.json
var template []byte

// Template returns the index template that ships with lull, for the indices of this sink. It fails
// where the name of an index has nothing but the collection and no collection is known: the
// template would be for every index of the cluster.
func (s *Sink) Template() ([]byte, error) {
	var t map[string]any
	if err := json.Unmarshal(template, &t); err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	var patterns []string
	if s.names.Distinct() {
		patterns = []string{s.names.Wildcard()}
	} else {
		for _, c := range s.Collections {
			if index, ok := s.names.Index(c); ok && !slices.Contains(patterns, index) {
				patterns = append(patterns, index)
			}
		}
	}
	if len(patterns) == 0 {
		return nil,
			errors.New("index template: name the collections, or give the sink's index a prefix, such as lull-" +
				sink.Placeholder)
	}
	t["index_patterns"] = patterns
	if inner, ok := t["template"].(map[string]any); ok && s.Serverless {
		delete(inner, "settings") // a collection keeps no versions of what was deleted
	}
	return json.Marshal(t)
}

// Prepare installs the index template, or replaces it. Indices that exist keep their mapping.
func (s *Sink) Prepare(ctx context.Context) error {
	t, err := s.Template()
	if err != nil {
		return err
	}
	if err := s.ask(ctx, http.MethodPut, "/_index_template/"+url.PathEscape(s.Options.Template), json.RawMessage(t),
		nil); err != nil {
		return fmt.Errorf("install index template: %w", err)
	}
	return nil
}
