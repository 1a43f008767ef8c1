// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"bytes"
	"context"
	_ "embed" // template.json
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

//go:embed template.json
var templateText []byte

// vectorsInside is a setting of Elasticsearch since 9.2. The value false makes the engine return
// documents as they were written. By default, the engine stores vectors separately.
const vectorsInside = "index.mapping.exclude_source_vectors"

// Template returns the index template that comes with lull. The template matches only the indices
// of this sink's collections. If no collection is known, Template fails, because a pattern such as
// lull-* would match indices of other programs.
func (s *Sink) Template() ([]byte, error) {
	names, err := s.prepared()
	if err != nil {
		return nil, err
	}
	return s.template(names, s.Product == Elasticsearch, 0)
}

// prepared returns the names of the indices that the template must match.
func (s *Sink) prepared() (names []string, err error) {
	for _, c := range s.Collections {
		if index, ok := s.names.Index(c); ok && !slices.Contains(names, index) {
			names = append(names, index)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("index template: no collection is known: name them in collections, " +
			"or name them with `lull index install-template --collection NAME`")
	}
	return names, nil
}

// template returns the template for indices with the given names. inside adds the setting
// vectorsInside. lower is subtracted from the priority.
func (s *Sink) template(names []string, inside bool, lower int) ([]byte, error) {
	var t map[string]any
	if err := json.Unmarshal(templateText, &t); err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	t["index_patterns"] = names
	t["priority"] = priority - lower
	inner, _ := t["template"].(map[string]any)
	if s.Serverless {
		delete(inner, "settings") // a serverless collection keeps no versions of deleted documents
	} else if settings, has := inner["settings"].(map[string]any); has && inside {
		settings[vectorsInside] = false
	}
	return json.Marshal(t)
}

// An engine refuses two templates with equal priority if both match the same index. Two such
// templates exist if two sinks write to the same index. All templates of lull have the same
// content, so it does not matter which of them an index uses.
const (
	priority     = 50
	samePriority = "that have the same priority"
	templates    = 20 // the largest number of lull's templates that match the same index
)

// Preparation returns the request that installs the template, as text.
func (s *Sink) Preparation() (string, error) {
	text, err := s.Template()
	if err != nil {
		return "", err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, text, "", "  "); err != nil {
		return "", fmt.Errorf("print the template: %w", err)
	}
	return "PUT " + s.templatePath() + "\n" + pretty.String() + "\n", nil
}

func (s *Sink) templatePath() string { return "/_index_template/" + url.PathEscape(s.Options.Template) }

// Prepare installs or replaces the index template. Existing indices keep their mapping, and the
// names from earlier calls stay in the template. Prepare fails if lull's template would replace a
// template of the user for an index.
func (s *Sink) Prepare(ctx context.Context) error {
	names, err := s.prepared()
	if err != nil {
		return err
	}
	if err := s.greet(ctx); errors.Is(err, ErrProduct) { // the request below reports any other problem
		return err
	}
	if names, err = s.claim(ctx, names); err != nil {
		return err
	}
	for inside, lower := s.Product == Elasticsearch, 0; ; {
		t, err := s.template(names, inside, lower)
		if err == nil {
			err = s.put(ctx, s.templatePath(), t)
		}
		var refused *refusal
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &refused):
		// before 9.2, Elasticsearch does not know the setting
		case inside && refused.class == "invalid_index_template_exception":
			inside = false
			continue
		case lower < templates && strings.Contains(refused.text, samePriority):
			lower++
			continue
		}
		return fmt.Errorf("install index template: %w", err)
	}
}

// standing is an existing template in the engine.
type standing struct {
	name     string
	patterns []string
	priority int64
	lulls    bool
}

// covers reports whether the template matches an index with the given name. * matches any text.
func (t standing) covers(index string) bool {
	return slices.ContainsFunc(t.patterns, func(pattern string) bool {
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		fits, err := regexp.MatchString("^"+strings.Join(parts, ".*")+"$", index)
		return fits && err == nil
	})
}

// claim returns the names for lull's template: the given names and the names in the installed
// template. An index uses only one template. So claim fails if lull's template would replace a
// template of the user for one of the given names. Without permission to read templates, claim
// assumes that there are none.
func (s *Sink) claim(ctx context.Context, names []string) ([]string, error) {
	own, others, err := s.standing(ctx)
	if err != nil {
		return nil, fmt.Errorf("install index template: read the existing templates: %w", err)
	}
	if !own.lulls && own.name != "" {
		return nil, fmt.Errorf("install index template: the template %q exists and is not lull's: rename it", own.name)
	}
	all := slices.Clone(names)
	for _, pattern := range own.patterns {
		_, fits := s.names.Collection(pattern)
		if !strings.Contains(pattern, "*") && fits && !slices.Contains(all, pattern) {
			all = append(all, pattern)
		}
	}
	slices.Sort(all)
	for _, name := range names {
		theirs := standing{priority: -2}
		for _, t := range others {
			if t.covers(name) && t.priority > theirs.priority {
				theirs = t
			}
		}
		if theirs.name != "" && !theirs.lulls && theirs.priority <= priority && !own.covers(name) {
			return nil, fmt.Errorf("install index template: your template %q also matches %s, and an index uses one template "+
				"only: give yours a priority above %d and copy the mapping of %s into it (`lull index install-template --print` shows it), "+
				"or change its patterns so that they do not match %s", theirs.name, name, priority, sink.MetaField, name)
		}
	}
	return all, nil
}

// standing asks the engine for its templates. own is the template of this sink, and others are all
// other templates. A legacy template gets the lowest priority, because the engine prefers every
// other template.
func (s *Sink) standing(ctx context.Context) (own standing, others []standing, err error) {
	var composed struct {
		Templates []struct {
			Name string `json:"name"`
			Is   struct {
				Patterns []string `json:"index_patterns"`
				Priority int64    `json:"priority"`
				Meta     struct {
					Description string `json:"description"`
				} `json:"_meta"`
			} `json:"index_template"`
		} `json:"index_templates"`
	}
	const parts = "index_templates.name,index_templates.index_template.index_patterns," +
		"index_templates.index_template.priority,index_templates.index_template._meta.description"
	ask := func(path string, into any) error {
		err := s.client.Ask(ctx, http.MethodGet, path, nil, into)
		if status := exchange.Status(err); status >= 400 && status < 500 && status != http.StatusTooManyRequests {
			return nil
		}
		return err
	}
	if err := ask("/_index_template?filter_path="+parts, &composed); err != nil {
		return own, nil, err
	}
	for _, t := range composed.Templates {
		one := standing{t.Name, t.Is.Patterns, t.Is.Priority, strings.HasPrefix(t.Is.Meta.Description, ourIndices)}
		if t.Name == s.Options.Template {
			own = one
		} else {
			others = append(others, one)
		}
	}
	var legacy map[string]struct {
		Patterns []string `json:"index_patterns"`
	}
	if err := ask("/_template?filter_path=*.index_patterns", &legacy); err != nil {
		return own, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(legacy)) {
		others = append(others, standing{name: name, patterns: legacy[name].Patterns, priority: -1})
	}
	return own, others, nil
}

// ourIndices is how the description of every template of lull begins.
const ourIndices = "Indices that lull writes"
