// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"context"
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

// copiedNever matches settings that belong to one index, so that Create must not copy them.
var copiedNever = regexp.MustCompile(
	`^index\.(uuid|creation_date|provided_name|version\.|resize\.|shrink\.|blocks\.|verified_before_close|` +
		`routing\.allocation\.initial_recovery)`)

// Create makes the new index, with an alias through which only the rebuild writes.
func (s *Sink) Create(ctx context.Context, n sink.NewIndex) error {
	settings, mapping, err := s.readIndex(ctx, n.Like)
	if err != nil {
		return err
	}
	dynamic := n.Mapping != nil && fromTemplate(mapping)
	if n.Mapping != nil {
		var own object
		if err := json.Unmarshal(n.Mapping, &own); err != nil {
			return fmt.Errorf("read the mapping: %w", err)
		}
		if inner, ok := own["settings"].(object); ok { // n.Mapping is the body of a request that creates an index
			merge(settings, inner)
		}
		if inner, ok := own["mappings"].(object); ok {
			own = inner
		}
		mapping = own
	}
	if n.Settings != nil {
		var own object
		if err := json.Unmarshal(n.Settings, &own); err != nil {
			return fmt.Errorf("read the settings: %w", err)
		}
		if inner, ok := own["settings"].(object); ok {
			own = inner
		}
		merge(settings, own)
	}
	if err := addMeta(mapping, dynamic); err != nil {
		return err
	}
	body := object{
		"settings": settings, "mappings": mapping,
		"aliases": object{n.Name + intoSuffix: object{"is_hidden": true}},
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("make the index %s: %w", n.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, slowCall)
	defer cancel()
	err = s.put(ctx, "/"+url.PathEscape(n.Name), text)
	var refused *refusal
	if err == nil || errors.As(err, &refused) && refused.class == "resource_already_exists_exception" {
		return nil
	}
	return fmt.Errorf("make the index %s: %w", n.Name, err)
}

// put creates an index or a template. If the engine refuses, the error contains the engine's own
// text. This error text quotes names and the mapping, which the operator wrote, and never a
// document.
func (s *Sink) put(ctx context.Context, path string, text []byte) error {
	a := s.client.Do(ctx, http.MethodPut, path, exchange.TypeJSON, text, exchange.MaxAnswer)
	if f, ours := parseFault(a.Body); a.Err == nil && ours && a.Status == http.StatusBadRequest {
		return &refusal{f.class(), f.reasons()}
	}
	return s.client.Read(a, nil)
}

// refusal says why the engine refuses an index or a template.
type refusal struct{ class, text string }

func (e *refusal) Error() string        { return "the engine says: " + e.text }
func (e *refusal) Is(target error) bool { return target == sink.ErrUnfit }

// reasons returns the engine's text about a mapping or about settings, followed by the texts of the
// causes.
func (f fault) reasons() string {
	text := f.Reason
	for c := f.CausedBy; c != nil; c = c.CausedBy {
		text += ": " + c.Reason
	}
	const most = 500
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// readIndex returns the flat settings and the mapping of an index.
func (s *Sink) readIndex(ctx context.Context, index string) (settings, mapping object, err error) {
	var has map[string]struct {
		Settings object `json:"settings"`
		Mappings object `json:"mappings"`
	}
	if err := s.slow(ctx, http.MethodGet, "/"+pathOf(index)+"?flat_settings=true", nil, &has); err != nil {
		return nil, nil, fmt.Errorf("read the settings of %s: %w", index, err)
	}
	settings, mapping = has[index].Settings, has[index].Mappings
	if settings == nil {
		return nil, nil, fmt.Errorf("read the settings of %s: %w", index, s.client.Odd())
	}
	maps.DeleteFunc(settings, func(name string, _ any) bool { return copiedNever.MatchString(name) })
	if mapping == nil {
		mapping = object{}
	}
	return settings, mapping, nil
}

// merge adds own settings to flat settings and replaces those with equal names. own may be nested
// or flat, and its names may begin with "index." or not.
func merge(flat, own object) {
	for name, value := range own {
		if name == "index" || strings.HasPrefix(name, "index.") {
			flatten(flat, name, value)
		} else {
			flatten(flat, "index."+name, value)
		}
	}
}

func flatten(flat object, name string, value any) {
	if inner, ok := value.(object); ok {
		for n, v := range inner {
			flatten(flat, name+"."+n, v)
		}
		return
	}
	flat[name] = value
}

// fromTemplate reports whether the rules for new fields in a mapping come from lull's template.
func fromTemplate(mapping object) bool {
	rules, _ := mapping[dynamicTemplates].([]any)
	return slices.ContainsFunc(rules, func(rule any) bool {
		named, _ := rule.(object)
		_, has := named[templateMark]
		return has
	})
}

const (
	dynamicTemplates = "dynamic_templates"
	templateMark     = "whole_numbers" // a rule in lull's template
)

// addMeta adds lull's own member to a mapping that lacks it. Without this member, a strict mapping
// would refuse every document. If dynamic is set, addMeta also adds the rules for new fields from
// lull's template, unless the mapping has such rules. lull's template does not match the names of
// indices that a rebuild creates.
func addMeta(mapping object, dynamic bool) error {
	var t struct {
		Template struct {
			Mappings object `json:"mappings"`
		} `json:"template"`
	}
	if err := json.Unmarshal(templateText, &t); err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	if _, has := mapping[dynamicTemplates]; dynamic && !has {
		for name, value := range t.Template.Mappings {
			if _, has := mapping[name]; !has && name != "properties" {
				mapping[name] = value
			}
		}
	}
	properties, ok := mapping["properties"].(object)
	if !ok {
		properties = object{}
		mapping["properties"] = properties
	}
	if _, has := properties[sink.MetaField]; !has {
		ours, _ := t.Template.Mappings["properties"].(object)
		properties[sink.MetaField] = ours[sink.MetaField]
	}
	return nil
}
