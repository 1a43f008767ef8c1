package opensearch

import (
	"context"
	"encoding/json"
	"fmt"
)

// maxAnswer bounds what is read of an answer. The largest are pages of documents.
const maxAnswer = 512 << 20

// maxBulkAnswer bounds what is read of the answer to a bulk request. Item errors quote a part of a
// document.
func maxBulkAnswer(items int) int64 { return int64(1<<20 + 16<<10*items) }

// Content types of requests.
const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
)

// ask sends JSON and decodes the answer into into, unless that is nil.
func (s *Sink) ask(ctx context.Context, method, path string, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return fmt.Errorf("make request: %w", err)
		}
	}
	a := s.client.Do(ctx, method, path, typeJSON, text, maxAnswer)
	if !a.OK() {
		return s.requestError(a)
	}
	if err := s.Product.check(a.Header); err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(a.Body, into); err != nil {
		return s.Product.odd()
	}
	return nil
}
