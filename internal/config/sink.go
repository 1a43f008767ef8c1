package config

import (
	"slices"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

type (
	// Sink is the settings of a sink. Its kinds register themselves with package sink.
	Sink = sink.Settings
	// Auth is how requests to a sink prove who sends them.
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
)

// CollectionsOf returns the collections with an entry that are written to this sink, sorted.
func (c *Config) CollectionsOf(sink string) []shard.Collection {
	var of []shard.Collection
	for name := range c.Collections {
		if to, _ := c.SinkFor(name); to == sink {
			of = append(of, shard.Collection(name))
		}
	}
	slices.Sort(of)
	return of
}
