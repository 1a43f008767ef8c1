// SPDX-License-Identifier: Apache-2.0

package roundtrip_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/roundtrip"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	"github.com/lullhq/lull/source"
	format "github.com/lullhq/lull/source/json"
)

// The arrival of an event may be its version. A document that an earlier run left has an older one.
func TestANewDocumentIsWaitedForIfItsArrivalIsItsVersion(t *testing.T) {
	t.Parallel()
	play(t, func(c *config.Config) {
		c.Sources = map[string]config.Source{"last": {
			Kind: "json", NoVersion: "arrival", Class: config.ClassTime,
			Options: format.Options{JSON: format.Pointers{
				ID: "/id", Operation: "/op", DeleteValues: []string{"delete"},
			}},
		}}
		c.DefaultSource = ""
	}, func(b *bench) {
		b.denied = func(c operate.Composition) error {
			if c.Delete {
				return operate.ErrInput
			}
			return nil
		}
		b.want(roundtrip.Failed, "its delete can be written") // the document stays
		b.denied = nil
		b.next()
		if got := b.want(roundtrip.Passed, ""); got.Took < b.cfg.Debounce.Quiet {
			b.Errorf("got %+v, want that it waited for the new document", got)
		}
		b.clean("after the next run")
	})
}

// A source that cannot describe a delete is left out, even if it is the default.
func TestTheDocumentHasAFormThatCanBeDeleted(t *testing.T) {
	t.Parallel()
	play(t, func(c *config.Config) {
		c.Sources = map[string]config.Source{
			"puts":  {Kind: "json", Class: config.ClassInt, Options: format.Options{JSON: format.Pointers{ID: "/id", Version: "/v"}}},
			"whole": {Kind: "native", Class: config.ClassInt, Match: []source.Match{{Named: true}}},
		}
		c.DefaultSource = "puts"
	}, func(b *bench) {
		b.want(roundtrip.Passed, "")
		b.clean("after the run")
	})
}

// The settings may have moved the collection to another sink since the last run.
func TestACollectionThatLeftTheSinkIsAFailure(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		c := roundtrip.Canary{Stack: b.api(), Config: &b.cfg, Clock: clock.System{}, Budget: roundtrip.Budget}
		c.Stack.Progress = func(_ context.Context, key shard.DocID) (operate.Progress, error) {
			return operate.Progress{Key: key, Sinks: []operate.ProgressIn{{Sink: "other", Row: key}}}, nil
		}
		if got := c.Run(b.Context())[0]; got.Outcome != roundtrip.Failed ||
			!strings.Contains(got.Why, "collection content is not in sink search") {
			b.Errorf("got %+v", got)
		}
	})
}

// Each sink has its own round trip, also if a collection has several sinks.
func TestEachSinkHasItsRoundTrip(t *testing.T) {
	t.Parallel()
	play(t, func(c *config.Config) {
		versions := true
		s := config.Sink{Kind: "memory", Versions: &versions}
		c.Sinks = map[string]config.Sink{"a": s, "b": s, "idle": s}
		c.DefaultSink, c.DefaultCollection = "a", "both"
		c.Collections = map[string]config.Collection{"both": {Sinks: []string{"a", "b"}}, "other": {Sink: "b"}}
	}, func(b *bench) {
		b.sinks["b"].SetRule(func(op sink.Op) (memorysink.Answer, bool) {
			no := memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Rejected, Reason: "no"}}
			return no, op.Doc.Collection() == "both"
		})
		got := b.run()
		if got["a"].Outcome != roundtrip.Passed || got["b"].Outcome != roundtrip.Failed ||
			got["idle"].Outcome != roundtrip.Failed || !strings.Contains(got["idle"].Why, "no source can write") {
			b.Errorf("got %+v", got)
		}
		b.only = []string{"both", "other"}
		b.sinks["b"].SetRule(nil)
		time.Sleep(2 * time.Hour)
		if got := b.run(); got["a"].Outcome != roundtrip.Passed || got["b"].Outcome != roundtrip.Passed {
			b.Errorf("got %+v", got)
		}
		b.only = []string{"other"}
		b.next()
		if got := b.run(); len(got) != 1 || got["b"].Outcome != roundtrip.Passed {
			b.Errorf("only the collection other: got %+v", got)
		}
		b.clean("at the end")
	})
}

// The content of a collection may be fetched. Then only the delete is sent.
func TestOnlyTheDeleteIsSentIfTheContentIsFetched(t *testing.T) {
	t.Parallel()
	play(t, func(c *config.Config) {
		s := c.Sources["native"]
		s.NoVersion, s.Class = "arrival", config.ClassTime
		s.Fetch = &source.Fetch{URL: "https://cms.example.org/{id}"}
		c.Sources["native"] = s
	}, func(b *bench) {
		for range 2 {
			if got := b.want(roundtrip.Passed, ""); got.Took != 0 {
				b.Errorf("got %+v", got)
			}
			b.next()
		}
		if b.published != 2 {
			b.Errorf("%d messages were sent, want two deletes", b.published)
		}
	})
}

// A job of an earlier version, or a source that was removed, does not end the canary for good.
func TestARunBeginsAgainAfterTheSettingsChanged(t *testing.T) {
	t.Parallel()
	play(t, nil, func(b *bench) {
		b.denied = func(c operate.Composition) error {
			if c.Delete {
				return operate.ErrInput
			}
			return nil
		}
		b.want(roundtrip.Failed, "its delete can be written")
		b.denied = nil
		b.next()
		b.want(roundtrip.Passed, "")
		b.clean("after the change")
	})
}
