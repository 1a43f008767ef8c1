package opensearch

import (
	"context"
	_ "embed" // template.json
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lullhq/lull/sink"
)

//go:embed template.json
var templateText []byte

// vectorsInside is the setting with which Elasticsearch from 9.2 on gives documents back as they
// were written. By default it keeps their vectors apart.
const vectorsInside = "index.mapping.exclude_source_vectors"

// Template returns the index template that ships with lull, for the indices of this sink. It fails
// where the name of an index has nothing but the collection and no collection is known: the
// template would be for every index of the cluster.
func (s *Sink) Template() ([]byte, error) { return s.template(s.Product == Elasticsearch, 0) }

// template is the template with vectorsInside or without, and its priority that much lower.
func (s *Sink) template(inside bool, lower int) ([]byte, error) {
	var t map[string]any
	if err := json.Unmarshal(templateText, &t); err != nil {
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
	priority, _ := t["priority"].(float64)
	t["priority"] = int(priority) - lower
	inner, _ := t["template"].(map[string]any)
	if s.Serverless {
		delete(inner, "settings") // a collection keeps no versions of what was deleted
	} else if settings, has := inner["settings"].(map[string]any); has && inside {
		settings[vectorsInside] = false
	}
	return json.Marshal(t)
}

// An engine does not take two templates of one priority where an index may match both: those of
// lull-{collection} and lull-staging-{collection}, of two stacks or two sinks. What lull's
// templates say is the same, so that it does not matter which of them an index gets.
const (
	samePriority = "that have the same priority"
	templates    = 20 // lull's, at most, whose names overlap
)

// Prepare installs the index template, or replaces it. Indices that exist keep their mapping.
func (s *Sink) Prepare(ctx context.Context) error {
	if _, err := s.Template(); err != nil {
		return err
	}
	if err := s.greet(ctx); errors.Is(err, ErrProduct) { // whatever else is wrong, the request below finds out
		return err
	}
	path := "/_index_template/" + url.PathEscape(s.Options.Template)
	for inside, lower := s.Product == Elasticsearch, 0; ; {
		t, err := s.template(inside, lower)
		if err == nil {
			err = s.put(ctx, path, t)
		}
		var refused *said
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &refused):
		case inside && refused.class == "invalid_index_template_exception": // before 9.2 there is no such setting
			inside = false
			continue
		case lower < templates && strings.Contains(refused.text, samePriority):
			lower++
			continue
		}
		return fmt.Errorf("install index template: %w", err)
	}
}
