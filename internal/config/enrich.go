// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// EnrichKind is how lull calls an enricher.
type EnrichKind string

// The values of Enrich.Kind.
const (
	EnrichHTTP   EnrichKind = "http"
	EnrichLambda EnrichKind = "lambda"
)

// Enrich is a service that lull asks for more fields of a collection's documents, once for each
// burst (docs/enrich.md).
type Enrich struct {
	// Kind is "http" or "lambda"; required.
	Kind EnrichKind `json:"kind"`
	// URL is the address to which lull posts requests, for the kind http.
	URL string `json:"url"`
	// FunctionARN is the function that lull invokes, for the kind lambda. It includes the alias or
	// version, if the function has one.
	FunctionARN string `json:"functionARN"`
	// Inputs are JSON pointers to the parts of the document that the service gets. Required.
	Inputs []string `json:"inputs"`
	// Batch is the most documents of one request. Default 32.
	Batch int `json:"batch"`
	// MaxConcurrency is the most requests that one invocation sends at once. Default 4.
	MaxConcurrency int `json:"maxConcurrency"`
	// Timeout is the longest one request may take. Default 1.5s.
	Timeout time.Duration `json:"timeout"`
	// Headers says where lull finds the headers of requests, for the kind http.
	Headers Headers `json:"headers"`
	// AllowPrivate names hosts that may have addresses outside the public internet, for the kind
	// http.
	AllowPrivate []string `json:"allowPrivate"`
	// Version is the operator's text for what the service does, such as a model's name. After
	// Version was changed, each document is enriched and written again the next time it is
	// published.
	Version string `json:"version"`
}

// Headers names the place of the headers, never the headers themselves. The place contains a JSON
// object of names and values.
type Headers = source.Headers

// newEnrich returns the defaults of an enricher.
func newEnrich() *Enrich {
	return &Enrich{Batch: 32, MaxConcurrency: 4, Timeout: 1500 * time.Millisecond}
}

// completeEnrich returns a copy of e with its empty settings filled in.
func completeEnrich(e *Enrich) *Enrich {
	if e == nil {
		return nil
	}
	full, d := *e, newEnrich()
	full.Batch = cmp.Or(full.Batch, d.Batch)
	full.MaxConcurrency = cmp.Or(full.MaxConcurrency, d.MaxConcurrency)
	full.Timeout = cmp.Or(full.Timeout, d.Timeout)
	return &full
}

// Enriched returns the names of the collections of a sink that have an enricher, sorted.
func (c *Config) Enriched(sink string) []shard.Collection {
	var names []shard.Collection
	for _, name := range slices.Sorted(maps.Keys(c.Collections)) {
		if slices.Contains(c.SinksFor(name), sink) && c.Collections[name].Enrich != nil {
			names = append(names, shard.Collection(name))
		}
	}
	return names
}

// generation identifies what the service does. The service may add other fields if its kind,
// address, version or inputs differ.
func (e *Enrich) generation() string {
	text, err := json.Marshal([]any{e.Kind, e.URL, e.FunctionARN, e.Inputs, e.Version})
	if err != nil {
		panic(err) // cannot happen: texts can always be encoded in JSON
	}
	return string(text)
}
