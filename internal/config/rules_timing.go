// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/setting"
)

// timing is the timing of one collection's documents in one sink, with the names of the settings
// that decide it.
type timing struct {
	Debounce
	own        Collection
	path       string // the setting's path of the collection; empty for collections without an entry
	sink       string
	lease      time.Duration
	applyDelay time.Duration
	retry      time.Duration // the state machine's first ambiguous retry
	versions   bool
}

// timings returns the timing of collections without an entry, and then the timing of every
// collection with an entry.
func (c *Config) timings() []timing {
	all := []timing{c.timing("", "", c.DefaultSink)}
	for _, name := range slices.Sorted(maps.Keys(c.Collections)) {
		for _, sink := range c.SinksFor(name) {
			all = append(all, c.timing(name, "collections."+printable(name), sink))
		}
	}
	return all
}

// expected returns the timings of the collections whose events are written to a sink. If the
// settings list collections, only the listed ones have events.
func (c *Config) expected(sink string) []timing {
	return slices.DeleteFunc(c.timings(), func(t timing) bool {
		return t.sink != sink || t.path == "" && len(c.Collections) > 0
	})
}

func (c *Config) timing(collection, path, sink string) timing {
	can := c.Sinks[sink].Capabilities()
	t := timing{
		Debounce: c.Debounce, sink: sink, lease: c.Lease(sink), applyDelay: can.ApplyDelay,
		retry: c.AmbiguousRetry(sink), versions: can.Versions,
	}
	if path != "" {
		t.Debounce, t.own, t.path = c.For(collection), c.Collections[collection], path
	}
	return t
}

// These methods return the name of the setting from which a timing has a value: the collection's
// override, or the general setting.

func (t timing) quiet() string       { return t.from(t.own.Quiet != nil, "quiet") }
func (t timing) maxWait() string     { return t.from(t.own.MaxWait != nil, "maxWait") }
func (t timing) minInterval() string { return t.from(t.own.MinInterval != nil, "minInterval") }

func (t timing) from(own bool, setting string) string {
	if own {
		return t.path + "." + setting
	}
	return "debounce." + setting
}

// namedLane is a lane with its path, and the settings to lower if its window is too long.
type namedLane struct {
	path, both string
	Lane
}

// lanes returns both lanes. Their settings are the same for every sink.
func (q Queues) lanes() []namedLane {
	return []namedLane{{"queues.live", "queues.live", q.Live}, {"queues.bulk", "queues.bulk", q.Bulk}}
}

// slowest returns the lane with the longer window, because that lane breaks a rule first. If the
// windows are equal, the faults name both lanes, because both windows must be lowered.
func (q Queues) slowest() namedLane {
	live, bulk := q.lanes()[0], q.lanes()[1]
	switch cmp.Compare(live.Window, bulk.Window) {
	case 1:
		return live
	case -1:
		return bulk
	}
	live.both = live.path + ".window and " + bulk.path
	return live
}

// words writes a duration as the faults print it.
func words(d time.Duration) string { return setting.FormatDuration(d) }
