// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Verify is how often lull compares a collection with its source, and repairs the differences
// (docs/verify.md).
type Verify struct {
	// Every is the time from the beginning of one verification to the beginning of the next. Default
	// 24h.
	Every time.Duration `json:"every"`
	// Requests is how many requests a second a verification sends to the source. Default 10.
	Requests int `json:"requests"`
	// MaxRemovals is how many documents one verification removes because the source lacks them.
	// More documents need an operator. Default 100.
	MaxRemovals int `json:"maxRemovals"`
}

// newVerify returns the defaults of a verification.
func newVerify() *Verify { return &Verify{Every: day, Requests: 10, MaxRemovals: 100} }

// completeVerify returns a copy of v with its empty settings filled in.
func completeVerify(v *Verify) *Verify {
	if v == nil {
		return nil
	}
	full, d := *v, newVerify()
	full.Every = cmp.Or(full.Every, d.Every)
	full.Requests = cmp.Or(full.Requests, d.Requests)
	full.MaxRemovals = cmp.Or(full.MaxRemovals, d.MaxRemovals)
	return &full
}

// Writers returns the names of the sources whose events may be of this collection, sorted.
func (c *Config) Writers(collection string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		named := c.Sources[name].Collections
		if c.CollectionFor(name) == collection || len(named) == 0 || slices.Contains(named, collection) {
			names = append(names, name)
		}
	}
	return names
}

// Verified returns the names of the collections with the setting verify, sorted.
func (c *Config) Verified() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Collections)), func(name string) bool {
		return c.Collections[name].Verify == nil
	})
}
