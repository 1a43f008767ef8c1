// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"

	"github.com/lullhq/lull/source"
)

// Source is the settings of a source. Its kinds register themselves with package source.
type Source = source.Settings

// The values of Source.Class and Source.NoVersion.
const (
	ClassInt  = source.ClassInt
	ClassSeq  = source.ClassSeq
	ClassTime = source.ClassTime
	ClassLSN  = source.ClassLSN
	ClassLex  = source.ClassLex

	NoVersionRefuse   = source.NoVersionRefuse
	NoVersionArrival  = source.NoVersionArrival
	NoVersionPosition = source.NoVersionPosition
)

// SourceConfig returns the complete settings from which the sources are built. It adds the
// collection of events that do not name one. It also adds the collections that events may name, and
// the places to which events of each source may refer. SourceConfig neither changes c nor keeps a
// reference to it.
func (c *Config) SourceConfig() source.Config {
	complete := *c
	complete.Sources, complete.Sinks = maps.Clone(c.Sources), maps.Clone(c.Sinks)
	complete.Complete()
	for name, s := range complete.Sources {
		s.Collection = complete.CollectionFor(name)
		if len(s.Collections) == 0 {
			s.Collections = slices.Sorted(maps.Keys(complete.Collections))
		}
		complete.Sources[name] = s
	}
	complete.Payload.Allow = slices.Clone(c.Payload.Allow)
	added := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(complete.Collections)) {
		for _, sink := range complete.SinksFor(name)[1:] {
			added[sink] = append(added[sink], name)
		}
	}
	return source.Config{
		Added: added, Sources: complete.Sources,
		Default: complete.DefaultSource, EnvelopeDepth: c.Payload.EnvelopeDepth,
		Places: complete.Payload.AllowFor, Hosts: slices.Clone(c.Payload.HTTPHosts),
	}
}
