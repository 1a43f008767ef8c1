package opensearch

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Product is an engine with this API. The zero value is OpenSearch.
type Product byte

// The products.
const (
	OpenSearch    Product = iota
	Elasticsearch         // 8 and 9, not its serverless projects
)

// productHeader is in every answer of Elasticsearch 8 and 9, and in none of OpenSearch.
const productHeader = "X-Elastic-Product"

// ErrProduct is the error of an engine that is another product than the settings say.
var ErrProduct = errors.New("the engine is not the product of the sink's kind")

func (p Product) String() string {
	if p == Elasticsearch {
		return "Elasticsearch"
	}
	return "OpenSearch"
}

// kind is the kind of sink for the product.
func (p Product) kind() string { return strings.ToLower(p.String()) }

// check refuses an answer of the other product. An answer that comes from neither product passes,
// because a proxy may answer for OpenSearch.
func (p Product) check(h http.Header) error {
	elastic := h.Get(productHeader) != ""
	switch {
	case p == OpenSearch && elastic:
		return fmt.Errorf("%w: this is Elasticsearch: set kind: elasticsearch", ErrProduct)
	case p == Elasticsearch && !elastic:
		return fmt.Errorf("%w: the answer has no header %s, but each answer of Elasticsearch 8 and 9 has it: "+
			"for OpenSearch, set kind: opensearch", ErrProduct, productHeader)
	}
	return nil
}
