// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Product is an engine with the API of OpenSearch. The zero value is OpenSearch.
type Product byte

// The products.
const (
	OpenSearch    Product = iota
	Elasticsearch         // versions 8 and 9, without the serverless projects
)

// productHeader is a header in every answer of Elasticsearch 8 and 9. OpenSearch never sends this
// header.
const productHeader = "X-Elastic-Product"

// ErrProduct is the error if the engine is another product than the settings say.
var ErrProduct = errors.New("the engine is not the product of the sink's kind")

func (p Product) String() string {
	if p == Elasticsearch {
		return "Elasticsearch"
	}
	return "OpenSearch"
}

// kind returns the name of the kind of sink for the product.
func (p Product) kind() string { return strings.ToLower(p.String()) }

// check returns an error if an answer comes from another product. For OpenSearch, an answer without
// the header is accepted, because it may come from a proxy.
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
