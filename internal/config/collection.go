package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Collection are the options of one collection. A nil override means the setting of
// Config.Debounce.
type Collection struct {
	// Sink names where its documents are written. Empty means Config.DefaultSink.
	Sink string `json:"sink"`
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

// maxWaitFor is the max wait where nobody sets one: room for a few quiet windows. Where quiet is
// too long, it alone is at fault.
func maxWaitFor(quiet time.Duration) time.Duration {
	return max(30*time.Second, min(4*quiet, maxHold), quiet)
}

// capOf is the max wait of a collection with a quiet window of its own and no max wait.
func (c *Config) capOf(quiet time.Duration) time.Duration {
	if d := c.Debounce; d.MaxWait == maxWaitFor(d.Quiet) {
		return maxWaitFor(quiet) // the general one follows from its quiet window, too
	}
	return max(c.Debounce.MaxWait, maxWaitFor(quiet))
}

// SetQuiet sets debounce.quiet, and again what follows from it where nobody has set that.
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

// override replaces a value where the collection sets one. The pointer tells 0 from not set.
func override[T any](to *T, by *T) {
	if by != nil {
		*to = *by
	}
}

// SinkFor returns the sink of a collection and its name: the one that its entry names, otherwise
// the default sink. The Sink is zero where that name is not a sink, which Validate refuses.
func (c *Config) SinkFor(collection string) (string, Sink) {
	name := c.Collections[collection].Sink
	if name == "" {
		name = c.DefaultSink
	}
	return name, c.Sinks[name]
}

// Keeps reports whether a document of the collection is committed without a write where its sink
// has its very bytes.
func (c *Config) Keeps(collection string) bool {
	_, to := c.SinkFor(collection)
	override(&to.Unchanged, c.Collections[collection].Unchanged)
	return to.Unchanged == sink.Keep
}

// Generation names where a collection's documents are, as far as the settings know: the sink, its
// engine, its index, and the operator's text. What was committed under another one is not
// recognised. The sink adds which index that is, see [sink.Generator]. What is compared are the
// bytes before they are enriched, so a collection's enricher is part of it.
func (c *Config) Generation(collection string) string {
	name, to := c.SinkFor(collection)
	parts := []string{name, to.Kind, to.URL, to.Index, to.Generation}
	if e := c.Collections[collection].Enrich; e != nil {
		parts = append(parts, e.generation())
	}
	return strings.Join(parts, "\n")
}

// CollectionFor returns where a source's events go that name no collection.
func (c *Config) CollectionFor(name string) string {
	return cmp.Or(c.Sources[name].Collection, c.DefaultCollection)
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
