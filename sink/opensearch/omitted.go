// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"context"
	"fmt"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

var _ sink.Omitter = (*Sink)(nil)

// Omitted searches for documents with the field _ignored. Omitted does not see documents before the
// next refresh.
func (s *Sink) Omitted(ctx context.Context, c shard.Collection) (o sink.Omitted, err error) {
	index, ok := s.names.Index(c)
	if !ok {
		return o, nil
	}
	var answer struct {
		Hits struct {
			Total struct {
				Value int64 `json:"value"`
			} `json:"total"`
			Hits []struct {
				ID      string   `json:"_id"`
				Ignored []string `json:"_ignored"`
			} `json:"hits"`
		} `json:"hits"`
	}
	err = s.client.Ask(ctx, "POST", "/"+pathOf(index)+"/_search?ignore_unavailable=true", object{
		"size": sink.MaxOmitted, "track_total_hits": true, "_source": false, "query": object{"bool": object{
			"filter": []object{writtenByLull, {"exists": object{"field": "_ignored"}}},
		}},
	}, &answer)
	if err != nil {
		return o, fmt.Errorf("find documents with values left out: %w", err)
	}
	o.Documents = answer.Hits.Total.Value
	for _, hit := range answer.Hits.Hits[:min(len(answer.Hits.Hits), sink.MaxOmitted)] {
		o.Some = append(o.Some, shard.DocID(string(c)+"#"+hit.ID))
		for _, field := range hit.Ignored {
			if sink.PlainName(field) && !slices.Contains(o.Fields, field) && len(o.Fields) < sink.MaxOmitted {
				o.Fields = append(o.Fields, field)
			}
		}
	}
	slices.Sort(o.Fields)
	return o, nil
}
