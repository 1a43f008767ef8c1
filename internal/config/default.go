// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"time"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

const day = setting.Day

// Default returns the settings of the design: one native source, one sink "search" on Bleve, and
// the collection "content" for events that name no collection. Every call returns new maps.
func Default() Config {
	c := scalars()
	// The class is written here, so that a program without the kind native has the same defaults.
	c.Sources = map[string]Source{"native": {Kind: "native", Class: ClassInt}}
	c.Collections = map[string]Collection{}
	search, versions := newSink(defaultSink), true
	search.Versions = &versions // written here, so that a program without Bleve has the same defaults
	c.Sinks = map[string]Sink{"search": search}
	c.Complete()
	return c
}

// derived marks a duration that Complete computes from other settings.
const derived time.Duration = -1

// scalars are the defaults of all settings outside the maps. Section 12 of the design explains the
// numbers.
func scalars() Config {
	return Config{
		Stack: "lull",
		Parts: Parts{Of: 1},
		Table: Table{
			Billing: OnDemand,
			Writes:  Capacity{Min: 5, Max: 4_000, Target: 70},
			Reads:   Capacity{Min: 5, Max: 4_000, Target: 70},
			Waiting: Throughput{
				Writes: Capacity{Min: 1, Max: 1_000, Target: 70}, Reads: Capacity{Min: 1, Max: 1_000, Target: 70},
			},
		},
		Debounce: Debounce{
			Quiet:       5 * time.Second,
			MaxWait:     derived,
			CapGrace:    10 * time.Second,
			MinInterval: time.Second,
		},
		Receive: Receive{Timeout: 6 * time.Second},
		Index: Index{
			Timeout:         10 * time.Second,
			Guard:           3 * time.Second,
			SinkDeadline:    6 * time.Second,
			MaxItemsPerTurn: 2_000,
			WaitingTurns:    3,
		},
		Queues: Queues{
			Live:                Lane{Batch: 1_000, Window: 3 * time.Second},
			Bulk:                Lane{Batch: 1_000, Window: 3 * time.Second, MaxConcurrency: 4},
			Visibility:          40 * time.Second,
			Retention:           7 * day,
			DeadLetterRetention: 14 * day,
			BurstSpread:         2 * time.Second,
			MaxInFlight:         80_000,
		},
		Retry: Retry{
			MaxRefusals:  5,
			DeadDeadline: 72 * time.Hour,
			BackoffMin:   time.Second,
			BackoffMax:   time.Minute,
			AutoRedrives: 3,
		},
		Lifecycle: Lifecycle{
			RowRetention:     30 * day,
			TTLExtra:         7 * day,
			ProducerLateness: day,
			RedriveSpan:      day,
			PruneEvery:       5 * time.Minute,
			DriftSample:      20,
		},
		Flight:      Flight{Kind: FlightAuto, ContinueAfter: 240 * time.Second},
		Payload:     Payload{ReferenceAbove: 256 * setting.KB, EnvelopeDepth: 4, MissingWait: 15 * time.Minute},
		Recovery:    time.Minute,
		DeadLetters: DeadLettersQueue,
		TableOutage: TableOutageClosed,
	}
}

// defaultSink is the kind of the sink if lull.yaml names no sink.
const defaultSink = "bleve"

// newSink returns a sink with the defaults that depend only on its kind.
func newSink(kind string) Sink {
	k, _ := sink.Lookup(kind)
	return Sink{
		Kind:          kind,
		Index:         "lull-{collection}",
		Unchanged:     sink.Write,
		Auth:          Auth{Kind: AuthNone},
		BulkDocuments: cmp.Or(k.BulkDocuments, 500),
		BulkBytes:     5 * setting.MB,
	}
}

// Complete fills in empty settings that follow from other settings. Among them are the default
// source, collection and sink if there is only one. The kind of a source decides its version class
// and lists, and the kind of a sink decides its numbers. Decode calls Complete already; call it
// after building maps in code. Complete never changes a setting that is set.
func (c *Config) Complete() {
	for name, s := range c.Sources {
		c.Sources[name] = s.Complete()
	}
	for name, s := range c.Sinks {
		c.Sinks[name] = completeSink(s)
	}
	for name, o := range c.Collections {
		o.Enrich = completeEnrich(o.Enrich)
		o.Verify = completeVerify(o.Verify)
		c.Collections[name] = o
	}
	c.DefaultSource = onlyOr(c.DefaultSource, c.Sources)
	c.DefaultCollection = onlyOr(c.DefaultCollection, c.Collections)
	if len(c.Collections) == 0 {
		c.DefaultCollection = cmp.Or(c.DefaultCollection, "content")
	}
	c.DefaultSink = onlyOr(c.DefaultSink, c.Sinks)
	if c.Debounce.MaxWait < 0 {
		c.Debounce.MaxWait = maxWaitFor(c.Debounce.Quiet)
	}
	if c.Queues.Elsewhere == "" {
		c.Queues.Elsewhere = ElsewhereDeadLetter
		for name := range c.Collections {
			if len(c.SinksFor(name)) > 1 {
				c.Queues.Elsewhere = ElsewhereSkip
			}
		}
	}
	if c.Queues.ExpectedRate == 0 {
		c.Queues.ExpectedRate = c.expectedRate()
	}
}

// Resolve returns the settings with the facts that only a sink's kind knows: whether the sink has
// versions, and its apply delay. Deployed settings must contain both facts, because the programs of
// most functions do not contain the kinds of sinks. Resolve does not change c.
func (c *Config) Resolve() Config {
	resolved := *c
	resolved.Sinks = make(map[string]Sink, len(c.Sinks))
	for name, s := range c.Sinks {
		can := s.Capabilities()
		s.Versions, s.ApplyDelay = &can.Versions, &can.ApplyDelay
		// The function searchable does not link the kinds of sinks.
		if refresh, known := s.RefreshInterval(); known && c.SearchableCalls != nil {
			s.Refresh = &refresh
		}
		resolved.Sinks[name] = s
	}
	return resolved
}

// onlyOr returns name. If name is empty, it returns the only key of m.
func onlyOr[V any](name string, m map[string]V) string {
	if name == "" && len(m) == 1 {
		for only := range m {
			return only
		}
	}
	return name
}

// completeSink fills in the empty settings of a sink: first the general defaults, and then those of
// the kind's own Complete.
func completeSink(s Sink) Sink {
	d := newSink(s.Kind)
	s.Auth.Kind = cmp.Or(s.Auth.Kind, d.Auth.Kind)
	s.Unchanged = cmp.Or(s.Unchanged, d.Unchanged)
	s.BulkDocuments = cmp.Or(s.BulkDocuments, d.BulkDocuments)
	s.BulkBytes = cmp.Or(s.BulkBytes, d.BulkBytes)
	kind, ok := sink.Lookup(s.Kind)
	if !ok {
		return s
	}
	if !kind.NeedsIndex {
		s.Index = cmp.Or(s.Index, d.Index)
	}
	if s.Options == nil {
		s.Options = kind.Options
	}
	if kind.Complete != nil {
		s = kind.Complete(s)
	}
	if s.Auth.Kind == AuthSigV4 {
		s.Auth.Service = cmp.Or(s.Auth.Service, "es")
	}
	return s
}
