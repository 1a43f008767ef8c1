// SPDX-License-Identifier: Apache-2.0

package config

import "time"

// Canary sends a synthetic document through each sink by a schedule.
type Canary struct {
	// Every is the interval, in whole minutes. The default 0 means that there is no canary.
	Every time.Duration `json:"every"`
	// Collections are the collections that the document may go to. By default, it is the first
	// collection of each sink.
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
