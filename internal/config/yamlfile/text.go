// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/lullhq/lull/internal/config"
)

// Text writes every setting as a lull.yaml, sorted by name. Empty texts are left out. Parse reads
// the same settings from the result.
func Text(c config.Config) ([]byte, error) {
	written, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	var all map[string]any
	if err := json.Unmarshal(written, &all); err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	withoutEmpty(all)
	if written, err = json.Marshal(all); err == nil {
		written, err = yaml.JSONToYAML(written)
	}
	if err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	return written, nil
}

// withoutEmpty removes empty texts from mappings, at any depth.
func withoutEmpty(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == "" {
				delete(v, name)
			}
			withoutEmpty(value)
		}
	case []any:
		for _, value := range v {
			withoutEmpty(value)
		}
	}
}
