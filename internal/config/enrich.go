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

// EnrichKind is how an enricher is asked.
type EnrichKind string

// The values of Enrich.Kind.
const (
	EnrichHTTP   EnrichKind = "http"
	EnrichLambda EnrichKind = "lambda"
)

// Enrich is a service that is asked for more fields of a collection's documents, once for each
// burst (docs/enrich.md).
type Enrich struct {
	// Kind is "http" or "lambda"; required.
	Kind EnrichKind `json:"kind"`
	// URL is the address that requests are posted to, for http.
	URL string `json:"url"`
	// FunctionARN is the function that is invoked, for lambda; with an alias or version where it has
	// one.
	FunctionARN string `json:"functionARN"`
	// Inputs are JSON pointers into the document: what the service gets of it. Required.
	Inputs []string `json:"inputs"`
	// Batch is the most documents of one request. Default 32.
	Batch int `json:"batch"`
	// MaxConcurrency is the most requests that one invocation has under way at once. Default 4.
	MaxConcurrency int `json:"maxConcurrency"`
	// Timeout is the longest one request may take. Default 1.5s.
	Timeout time.Duration `json:"timeout"`
	// Headers say where the headers of requests come from, for http.
	Headers Headers `json:"headers"`
	// AllowPrivate names hosts that may have addresses outside the public internet, for http.
	AllowPrivate []string `json:"allowPrivate"`
	// Version is the operator's text for what the service does, such as a model's name. After a
	// change, each document is enriched and written again the next time it is published.
	Version string `json:"version"`
}

// Headers name where headers are, never the headers themselves: a JSON object of names and values.
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

// EnrichFor returns the enricher of a collection, nil for none.
func (c *Config) EnrichFor(collection shard.Collection) *Enrich {
	return c.Collections[string(collection)].Enrich
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

// generation identifies what the service does: another kind, address, version or choice of inputs
// makes other fields.
func (e *Enrich) generation() string {
	text, err := json.Marshal([]any{e.Kind, e.URL, e.FunctionARN, e.Inputs, e.Version})
	if err != nil {
		panic(err) // texts always have a form in JSON
	}
	return string(text)
}
