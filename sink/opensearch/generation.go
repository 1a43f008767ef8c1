package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/lullhq/lull/internal/shard"
)

// generationParts are what decides whether an index can be recognised: its UUID, and what makes it
// give documents back otherwise than they were written.
const generationParts = "*.settings.index.uuid,*.settings.index.derived_source,*.settings.index.default_pipeline," +
	"*.settings.index.final_pipeline,*.mappings._source"

// Generation is the UUID of the index that the collection's name stands for. It asks the engine
// each time: an answer that is kept would outlive an index that is made anew. It is empty for an
// alias of several indices, and where there is no index yet. It is also empty for an index that
// keeps a part of what is written, or lets a pipeline change it.
func (s *Sink) Generation(ctx context.Context, c shard.Collection) (string, error) {
	index, ok := s.names.Index(c)
	if !ok || s.Serverless {
		return "", nil
	}
	var found map[string]struct {
		Settings struct {
			Index struct {
				UUID    string `json:"uuid"`
				Derived struct {
					Enabled string `json:"enabled"`
				} `json:"derived_source"`
				Pipeline string `json:"default_pipeline"`
				Final    string `json:"final_pipeline"`
			} `json:"index"`
		} `json:"settings"`
		Mappings struct {
			Source json.RawMessage `json:"_source"`
		} `json:"mappings"`
	}
	err := s.ask(ctx, http.MethodGet, "/"+pathOf(index)+"?filter_path="+generationParts, nil, &found)
	var refused *Error
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("ask which index %s is: %w", index, err)
	case len(found) != 1:
		return "", nil
	}
	for _, of := range found {
		i := of.Settings.Index
		if whole := i.Derived.Enabled != "true" && none(i.Pipeline) && none(i.Final) && len(of.Mappings.Source) == 0; whole {
			return i.UUID, nil
		}
	}
	return "", nil
}

// none reports that a setting names no pipeline.
func none(pipeline string) bool { return pipeline == "" || pipeline == "_none" }
