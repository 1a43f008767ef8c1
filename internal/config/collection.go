package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Collection are the options of one collection. A nil override means the setting of
// Config.Debounce.
type Collection struct {
	// Sink names the sink of its documents. Empty means Sinks, or Config.DefaultSink if Sinks is
	// empty.
	Sink string `json:"sink"`
	// Sinks names several sinks instead of one. Each has its own rows, queues and dead letters. The
	// first sink uses the rows of a single sink, so it must stay the first.
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
	// Unchanged overrides what its sink says.
	Unchanged *sink.Unchanged `json:"unchanged"`
	// ExpectedRate is its part of queues.expectedRate, in messages a second. Default, and where 0: what
	// the other collections leave.
	ExpectedRate int `json:"expectedRate"`
	// Enrich is a service that adds fields to its documents before they are written. Nil means none.
	Enrich *Enrich `json:"enrich"`
}

// For returns the timing of a collection: Debounce with the collection's overrides. A collection
// without an entry has Debounce itself.
func (c *Config) For(collection string) Debounce {
	d, o := c.Debounce, c.Collections[collection]
	override(&d.Quiet, o.Quiet)
	if o.Quiet != nil {
		d.MaxWait = c.capOf(*o.Quiet)
	}
	override(&d.MaxWait, o.MaxWait)
	override(&d.CapGrace, o.CapGrace)
	override(&d.MinInterval, o.MinInterval)
	override(&d.Leading, o.Leading)
	return d
}

// maxWaitFor is the max wait if the settings name none: room for a few quiet windows. If quiet is
// longer than maxHold, it is returned, so that the error names quiet alone.
func maxWaitFor(quiet time.Duration) time.Duration {
	return max(30*time.Second, min(4*quiet, maxHold), quiet)
}

// capOf is the max wait of a collection that sets its quiet window but not its max wait.
func (c *Config) capOf(quiet time.Duration) time.Duration {
	if d := c.Debounce; d.MaxWait == maxWaitFor(d.Quiet) {
		return maxWaitFor(quiet) // the general max wait follows from the general quiet window, too
	}
	return max(c.Debounce.MaxWait, maxWaitFor(quiet))
}

// SetQuiet sets debounce.quiet, and computes again the settings that follow from it and are not
// set.
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

// SinksFor returns the names of the sinks of a collection, never none: those that its entry names,
// otherwise the default sink.
func (c *Config) SinksFor(collection string) []string {
	if o := c.Collections[collection]; len(o.Sinks) > 0 {
		return o.Sinks
	} else if o.Sink != "" {
		return []string{o.Sink}
	}
	return []string{c.DefaultSink}
}

// SinkOf returns the sink that the row of a document is for, by its key. A row of a sink that the
// settings no longer have counts as the first one's.
func (c *Config) SinkOf(doc shard.DocID) string {
	if name := doc.Sink(); name != "" {
		if _, exists := c.Sinks[name]; exists {
			return name
		}
	}
	return c.SinksFor(string(doc.Collection()))[0]
}

// RowAt returns the key of a document's row for a sink, and whether its collection is written
// there. If it is not, the key is that of the first sink.
func (c *Config) RowAt(doc shard.DocID, sink string) (shard.DocID, bool) {
	switch slices.Index(c.SinksFor(string(doc.Collection())), sink) {
	case -1:
		return doc.Plain(), false
	case 0:
		return doc.Plain(), true
	}
	return doc.In(sink), true
}

// RowsOf returns the keys of all rows of a document, that of the first sink first.
func (c *Config) RowsOf(doc shard.DocID) []shard.DocID {
	var rows []shard.DocID
	for _, sink := range c.SinksFor(string(doc.Collection())) {
		row, _ := c.RowAt(doc, sink)
		rows = append(rows, row)
	}
	return rows
}

// Companions returns the sinks that must get each message sent to this sink. The sink itself is
// first. Then come, sorted, the other sinks of the collections that share it.
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

// FannedOut reports whether a collection has several sinks.
func (c *Config) FannedOut(collection string) bool { return len(c.SinksFor(collection)) > 1 }

// Keeps reports whether a document of the collection is committed without a write where the sink
// has its very bytes.
func (c *Config) Keeps(collection, name string) bool {
	to := c.Sinks[name]
	override(&to.Unchanged, c.Collections[collection].Unchanged)
	return to.Unchanged == sink.Keep
}

// Generation names where a collection's documents are in a sink, as far as the settings know: its
// engine, its index, and the operator's text. A commit under another generation does not count as
// unchanged. The sink adds which index that is, see [sink.Generator]. lull compares the bytes
// before they are enriched, so the collection's enricher is part of the generation.
func (c *Config) Generation(collection, name string) string {
	to := c.Sinks[name]
	parts := []string{name, to.Kind, to.URL, to.Index, to.Generation}
	if e := c.Collections[collection].Enrich; e != nil {
		parts = append(parts, e.generation())
	}
	return strings.Join(parts, "\n")
}

// CollectionFor returns the collection of a source's events that name none.
func (c *Config) CollectionFor(name string) string {
	return cmp.Or(c.Sources[name].Collection, c.DefaultCollection)
}

// SourcesOf returns the sources whose events go to a collection where they name none.
func (c *Config) SourcesOf(collection string) (of []Source) {
	for name, s := range c.Sources {
		if c.CollectionFor(name) == collection {
			of = append(of, s)
		}
	}
	return of
}

// AllowFor returns the places in S3 that events of a source may refer to.
func (c *Config) AllowFor(name string) []source.Place {
	var allowed []source.Place
	for _, place := range c.Payload.Allow {
		if len(place.Sources) == 0 || slices.Contains(place.Sources, name) {
			allowed = append(allowed, source.Place{Bucket: place.Bucket, Prefix: place.Prefix})
		}
	}
	return allowed
}
