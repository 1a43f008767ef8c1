// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// passage is a part of a document, with its vector.
type passage struct {
	Text   string    `json:"text"`
	Vector []float64 `json:"vector"`
}

// mostPassages bounds the passages of one document. lull accepts 1 MB of fields for a document.
const mostPassages = 200

// passagesOf splits the inputs of a document at empty lines. Parts without words are left out.
func passagesOf(inputs map[string]string) (all []passage) {
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		for part := range strings.SplitSeq(inputs[name], "\n\n") {
			part = strings.TrimSpace(part)
			if v := embed(map[string]string{"": part}); v != nil {
				all = append(all, passage{part, v})
			}
		}
	}
	return all
}

// passageHandler answers a request with the passages of each document. The passages replace those
// of the version before, because they are one field of the document. A document without words gets
// an empty list.
func passageHandler(w http.ResponseWriter, r *http.Request) {
	answerWith(w, r, func(d document) (*fields, *failure) {
		all := passagesOf(d.Inputs)
		if len(all) > mostPassages {
			return nil, &failure{"rejected", fmt.Sprintf("more than %d passages", mostPassages)}
		}
		return &fields{Passages: &all}, nil
	})
}

// searchPassages finds the documents whose best passage is nearest to a text, and that passage.
// engine is the engine whose vector search is used, or "" to compare all passages in this program.
func searchPassages(enricher, index, text, engine string) ([]hit, error) {
	var made documents
	err := post(enricher, documents{[]document{{ID: "query", Inputs: map[string]string{"/title": text}}}}, &made)
	if err != nil {
		return nil, err
	}
	if len(made.Documents) != 1 || made.Documents[0].Fields == nil || made.Documents[0].Fields.Passages == nil ||
		len(*made.Documents[0].Fields.Passages) != 1 {
		return nil, fmt.Errorf("the enricher makes no vector of %q", text)
	}
	vector := (*made.Documents[0].Fields.Passages)[0].Vector
	query, size := map[string]any{"match_all": map[string]any{}}, compared
	switch engine {
	case "":
	case "elasticsearch":
		size, query = most, map[string]any{"knn": map[string]any{
			"field": "passages.vector", "query_vector": vector, "num_candidates": 10 * most,
		}}
	case "opensearch":
		size, query = most, map[string]any{"knn": map[string]any{
			"passages.vector": map[string]any{"vector": vector, "k": most},
		}}
	default:
		return nil, fmt.Errorf("-engine %s: use elasticsearch or opensearch", engine)
	}
	var answer struct {
		Hits struct {
			Hits []struct {
				Source struct {
					Title    string    `json:"title"`
					Passages []passage `json:"passages"`
				} `json:"_source"`
				Inner struct {
					Passages struct {
						Hits struct {
							Hits []struct {
								Source passage `json:"_source"`
							} `json:"hits"`
						} `json:"hits"`
					} `json:"passages"`
				} `json:"inner_hits"`
			} `json:"hits"`
		} `json:"hits"`
	}
	nested := map[string]any{"path": "passages", "score_mode": "max", "query": query}
	if engine != "" {
		nested["inner_hits"] = map[string]any{"size": 1} // the passage that is nearest
	}
	err = post(index+"/_search", map[string]any{"size": size, "query": map[string]any{"nested": nested}}, &answer)
	if err != nil {
		return nil, err
	}
	var found []hit
	for _, h := range answer.Hits.Hits {
		all := h.Source.Passages
		if engine != "" {
			all = nil
			for _, inner := range h.Inner.Passages.Hits.Hits {
				all = append(all, inner.Source)
			}
		}
		best := hit{title: h.Source.Title, score: -1}
		for _, p := range all {
			if score := cosine(vector, p.Vector); score > best.score {
				best.score, best.passage = score, p.Text
			}
		}
		found = append(found, best)
	}
	slices.SortStableFunc(found, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return found[:min(len(found), most)], nil
}
