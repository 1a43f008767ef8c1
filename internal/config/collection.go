// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Collection is the settings of one collection. If an override of a timing is nil, the setting of
// Config.Debounce applies.
type Collection struct {
	// Sink names the sink of the collection's documents. If Sink is empty, Sinks applies, and if
	// both are empty, Config.DefaultSink.
	Sink string `json:"sink"`
	// Sinks names several sinks instead of one. Each sink has its own rows, queues and dead
	// letters. The first sink uses the rows that a collection with a single sink has, so it must
	// stay first.
	Sinks []string `json:"sinks"`
	// Quiet overrides debounce.quiet.
	Quiet *time.Duration `json:"quiet"`
	// MaxWait overrides debounce.maxWait.
	MaxWait *time.Duration `json:"maxWait"`
	// CapGrace overrides debounce.capGrace.
	CapGrace *time.Duration `json:"capGrace"`
	// MinInterval overrides debounce.minInterval.
	MinInterval *time.Duration `json:"minInterval"`
	// Leading overrides debounce.leading.
	Leading *bool `json:"leading"`
	// Unchanged overrides the sink's setting unchanged.
	Unchanged *sink.Unchanged `json:"unchanged"`
	// ExpectedRate is the collection's part of queues.expectedRate, in messages a second. If it is
	// 0, the collection shares the part that the rates of other collections leave. Default 0.
	ExpectedRate int `json:"expectedRate"`
	// Enrich is a service that adds fields to the collection's documents before they are written.
	// It is nil if the collection has no such service.
	Enrich *Enrich `json:"enrich"`
	// Verify is how often lull compares the collection with its source, and repairs the differences.
	// It is nil if only operators start such a comparison.
	Verify *Verify `json:"verify"`
}

// For returns the timing of a collection: Debounce with the collection's overrides. For a
// collection without an entry, it returns Debounce unchanged.
func (c *Config) For(collection string) Debounce {
	d, o := c.Debounce, c.Collections[collection]
	override(&d.Quiet, o.Quiet)
	if o.Quiet != nil {
		d.MaxWait = c.Debounce.capOf(*o.Quiet)
	}
	override(&d.MaxWait, o.MaxWait)
	override(&d.CapGrace, o.CapGrace)
	override(&d.MinInterval, o.MinInterval)
	override(&d.Leading, o.Leading)
	return d
}

// maxWaitFor is the default max wait for a quiet window: long enough for a few quiet windows. If
// quiet is longer than maxHold, maxWaitFor returns quiet, so that the error names only quiet.
func maxWaitFor(quiet time.Duration) time.Duration {
	return max(30*time.Second, min(4*quiet, maxHold), quiet)
}

// capOf is the max wait of a collection that sets its quiet window but not its max wait.
func (d Debounce) capOf(quiet time.Duration) time.Duration {
	if d.MaxWait == maxWaitFor(d.Quiet) {
		return maxWaitFor(quiet) // the general max wait also follows from the general quiet window
	}
	return max(d.MaxWait, maxWaitFor(quiet))
}

// SetQuiet sets debounce.quiet. Then it computes the default max wait and the default expected rate
// again, because both follow from the quiet window.
func (c *Config) SetQuiet(quiet time.Duration) {
	if c.Queues.ExpectedRate == c.expectedRate() {
		c.Queues.ExpectedRate = 0
	}
	if c.Debounce.MaxWait == maxWaitFor(c.Debounce.Quiet) {
		c.Debounce.MaxWait = derived
	}
	c.Debounce.Quiet = quiet
	c.Complete()
}

// override replaces a value if the collection sets one. The pointer distinguishes 0 from not set.
func override[T any](to *T, by *T) {
	if by != nil {
		*to = *by
	}
}

// SinksFor returns the names of the sinks of a collection. If its entry names no sink, it returns
// the default sink. So the result is never empty.
func (c *Config) SinksFor(collection string) []string {
	if o := c.Collections[collection]; len(o.Sinks) > 0 {
		return o.Sinks
	} else if o.Sink != "" {
		return []string{o.Sink}
	}
	return []string{c.DefaultSink}
}

// SinkOf returns the sink to which a document's row belongs, according to the row's key. If the
// settings no longer have that sink, the row counts as a row of the collection's first sink.
func (c *Config) SinkOf(doc shard.DocID) string {
	if name := doc.Sink(); name != "" {
		if _, exists := c.Sinks[name]; exists {
			return name
		}
	}
	return c.SinksFor(string(doc.Collection()))[0]
}

// RowAt returns the key of a document's row for a sink, and whether the document's collection is
// written to that sink. If the collection is not written there, RowAt returns the key for the first
// sink.
func (c *Config) RowAt(doc shard.DocID, sink string) (shard.DocID, bool) {
	switch slices.Index(c.SinksFor(string(doc.Collection())), sink) {
	case -1:
		return doc.Plain(), false
	case 0:
		return doc.Plain(), true
	}
	return doc.In(sink), true
}

// RowsOf returns the keys of all rows of a document, in the order of the collection's sinks.
func (c *Config) RowsOf(doc shard.DocID) []shard.DocID {
	var rows []shard.DocID
	for _, sink := range c.SinksFor(string(doc.Collection())) {
		row, _ := c.RowAt(doc, sink)
		rows = append(rows, row)
	}
	return rows
}

// Companions returns the sinks that must get each message sent to this sink. The first is this sink
// itself. The other sinks of the collections that have this sink follow, sorted.
func (c *Config) Companions(sink string) []string {
	var others []string
	for _, o := range c.Collections {
		if slices.Contains(o.Sinks, sink) {
			others = append(others, o.Sinks...)
		}
	}
	slices.Sort(others)
	others = slices.DeleteFunc(slices.Compact(others), func(other string) bool { return other == sink })
	return append([]string{sink}, others...)
}

// Keeps reports whether lull commits a document of the collection without a write if the sink
// already has the same bytes.
func (c *Config) Keeps(collection, name string) bool {
	to := c.Sinks[name]
	override(&to.Unchanged, c.Collections[collection].Unchanged)
	return to.Unchanged == sink.Keep
}

// KeepsAny reports whether lull leaves out writes of unchanged documents to a sink, in any
// collection.
func (c *Config) KeepsAny(name string) bool {
	for of := range c.Collections {
		if c.Keeps(of, name) && slices.Contains(c.SinksFor(of), name) {
			return true
		}
	}
	return c.Sinks[name].Unchanged == sink.Keep
}

// Generation names the place of a collection's documents in a sink, as far as the settings know it:
// the engine, the index, and the operator's text. A commit under another generation does not count
// as unchanged. The sink adds an id of the index itself, see [sink.Generator]. lull compares the
// bytes before they are enriched, so the collection's enricher is part of the generation.
func (c *Config) Generation(collection, name string) string {
	to := c.Sinks[name]
	parts := []string{name, to.Kind, to.URL, to.Index, to.Generation}
	if e := c.Collections[collection].Enrich; e != nil {
		parts = append(parts, e.generation())
	}
	// The kind's own settings change what is written, such as vertex.content. A sink that cannot
	// recognise its index cannot recognise that change either.
	if c.OperatorNamesIndex(name) && to.Options != nil {
		text, err := json.Marshal(to.Options)
		if err != nil {
			panic(err) // cannot happen: the settings were read from a file, and are written as JSON
		}
		parts = append(parts, string(text))
	}
	return strings.Join(parts, "\n")
}

// OperatorNamesIndex reports whether only the setting generation says which index a sink has: the
// sink cannot recognise its index, and the operator has set a text. The operator changes the text
// when the index is emptied or restored, or when another program has written to it.
func (c *Config) OperatorNamesIndex(name string) bool {
	s := c.Sinks[name]
	return !s.Capabilities().Generation && s.Generation != ""
}

// CollectionFor returns the collection of a source's events that do not name a collection.
func (c *Config) CollectionFor(name string) string {
	return cmp.Or(c.Sources[name].Collection, c.DefaultCollection)
}

// SourcesOf returns the sources whose events go to this collection if they do not name one.
func (c *Config) SourcesOf(collection string) (of []Source) {
	for name, s := range c.Sources {
		if c.CollectionFor(name) == collection {
			of = append(of, s)
		}
	}
	return of
}

// AllowFor returns the places in S3 that events of a source may refer to.
func (p Payload) AllowFor(name string) []source.Place {
	var allowed []source.Place
	for _, place := range p.Allow {
		if len(place.Sources) == 0 || slices.Contains(place.Sources, name) {
			allowed = append(allowed, source.Place{Bucket: place.Bucket, Prefix: place.Prefix})
		}
	}
	return allowed
}
