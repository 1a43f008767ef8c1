// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

type (
	// Sink is the settings of a sink. Its kinds register themselves with package sink.
	Sink = sink.Settings
	// Auth is how requests to a sink are authenticated.
	Auth = sink.Auth
	// AuthKind is a kind of authentication.
	AuthKind = sink.AuthKind
	// Size is a number of bytes.
	Size = setting.Size
)

// The kinds of authentication.
const (
	AuthNone  = sink.AuthNone
	AuthBasic = sink.AuthBasic
	AuthSigV4 = sink.AuthSigV4
	AuthKey   = sink.AuthKey
)

// Ceiling is the most documents that lull sends to a sink, in thousandths of a document a second. 0
// means that there is no ceiling.
func Ceiling(s Sink) int64 {
	var most setting.Rate
	override(&most, s.MaxDocumentsPerSecond)
	return int64(most)
}

// IndexConcurrency is the most invocations of a sink's index function at once. 0 means that there
// is no limit.
func IndexConcurrency(s Sink) (most int) {
	override(&most, s.MaxConcurrency)
	return most
}

// LeaseIsKnown reports whether the settings and the linked kinds are enough to compute the lease of
// a sink.
func LeaseIsKnown(s Sink) bool {
	_, linked := sink.Lookup(s.Kind)
	return linked || s.Versions != nil && (*s.Versions || s.ApplyDelay != nil)
}

// CollectionsOf returns, sorted, the known collections that are written to this sink. A collection
// is known if it has an entry. If no collection has an entry, the known collections are those that
// the settings name as a default.
func (c *Config) CollectionsOf(sink string) []shard.Collection {
	var of []shard.Collection
	for _, name := range c.knownCollections() {
		if slices.Contains(c.SinksFor(name), sink) {
			of = append(of, shard.Collection(name))
		}
	}
	return of
}

func (c *Config) knownCollections() []string {
	known := slices.Collect(maps.Keys(c.Collections))
	if len(known) == 0 {
		known = append(known, c.DefaultCollection)
		for name := range c.Sources {
			known = append(known, c.CollectionFor(name))
		}
	}
	slices.Sort(known)
	return slices.DeleteFunc(slices.Compact(known), func(name string) bool { return name == "" })
}
