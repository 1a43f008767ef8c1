// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"
	"time"
)

// Canary sends a synthetic document through each sink by a schedule.
type Canary struct {
	// Every is the interval, in whole minutes. The default 0 means that there is no canary.
	Every time.Duration `json:"every"`
	// Collections are the collections that the document goes to, and only their sinks have a canary.
	// By default, each sink has one, and the document goes to the first collection of the sink.
	Collections []string `json:"collections"`
}

// minCanary is the least interval of the canary. A round trip takes ten seconds with the defaults.
const minCanary = 5 * time.Minute

var canaryRule = Rule{
	"canary", "canary.every is 0s, for no canary, or at least 5m. Its collections are those of the settings.",
	func(c *Config, f *checker) {
		if e := c.Canary.Every; e > 0 && e < minCanary {
			f.fault("canary.every", e, "is less than 5m", "raise it to at least 5m")
		}
		for _, name := range c.Canary.Collections {
			if _, ok := c.Collections[name]; !ok && len(c.Collections) > 0 {
				f.fault("canary.collections", name, "names nothing under collections", "write the name of a collection")
			}
		}
	},
}

// Canaries returns the names of the sinks that the canary sends a document through, sorted.
func (c *Config) Canaries() []string {
	if c.Canary.Every == 0 {
		return nil
	}
	only := c.Canary.Collections
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Sinks)), func(sink string) bool {
		return len(only) > 0 && !slices.ContainsFunc(only, func(collection string) bool {
			return slices.Contains(c.SinksFor(collection), sink)
		})
	})
}
