// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// generationParts lists the settings that decide whether an index can be recognised. These settings
// are the UUID of the index, and the settings that make the index return documents differently from
// how they were written.
const generationParts = "*.settings.index.uuid,*.settings.index.derived_source,*.settings.index.default_pipeline," +
	"*.settings.index.final_pipeline,*.settings.index.mode,*.mappings._source," +
	"*.settings.index.mapping.source.mode,*.settings.index.mapping.exclude_source_vectors," +
	"*.defaults.index.mapping.exclude_source_vectors"

// Generation returns the UUID of the index behind the collection's name. Generation asks the engine
// each time, because a cached answer would be wrong after the index is created again. The text is
// empty for an alias of several indices, and if there is no index yet. Generation is also empty if
// the index stores only a part of each document, or if a pipeline changes documents.
func (s *Sink) Generation(ctx context.Context, c shard.Collection) (string, error) {
	index, ok := s.names.Index(c)
	if !ok || s.Serverless {
		return "", nil
	}
	type mapping struct {
		Source struct {
			Mode string `json:"mode"`
		} `json:"source"`
		NoVectors string `json:"exclude_source_vectors"`
	}
	var found map[string]struct {
		Defaults struct {
			Index struct {
				Mapping mapping `json:"mapping"`
			} `json:"index"`
		} `json:"defaults"`
		Settings struct {
			Index struct {
				UUID    string `json:"uuid"`
				Derived struct {
					Enabled string `json:"enabled"`
				} `json:"derived_source"`
				// only in Elasticsearch: the modes logsdb and time_series do not store documents as
				// written
				Mode     string  `json:"mode"`
				Mapping  mapping `json:"mapping"`
				Pipeline string  `json:"default_pipeline"`
				Final    string  `json:"final_pipeline"`
			} `json:"index"`
		} `json:"settings"`
		Mappings struct {
			Source json.RawMessage `json:"_source"`
		} `json:"mappings"`
	}
	path := "/" + pathOf(index) + "?filter_path=" + generationParts
	if s.Product == Elasticsearch {
		path += "&include_defaults=true" // since 9.2, Elasticsearch stores vectors separately from documents by default
	}
	err := s.client.Ask(ctx, http.MethodGet, path, nil, &found)
	switch {
	case exchange.Status(err) == http.StatusNotFound:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read which index %s is: %w", index, err)
	case len(found) != 1:
		return "", nil
	}
	for _, of := range found {
		i := of.Settings.Index
		stored := slices.Contains([]string{"", "standard", "lookup"}, i.Mode) &&
			slices.Contains([]string{"", "stored"}, i.Mapping.Source.Mode) && i.Derived.Enabled != "true" &&
			cmp.Or(i.Mapping.NoVectors, of.Defaults.Index.Mapping.NoVectors) != "true"
		if stored && noPipeline(i.Pipeline) && noPipeline(i.Final) && len(of.Mappings.Source) == 0 {
			return i.UUID, nil
		}
	}
	return "", nil
}

// noPipeline reports that a setting names no pipeline.
func noPipeline(pipeline string) bool { return pipeline == "" || pipeline == "_none" }
