// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink/opensearch"
)

func TestCollectionOverridesEachSettingOfDebounce(t *testing.T) {
	t.Parallel()
	base := Default().Debounce
	for _, tt := range []struct {
		name string
		own  Collection
		want func(d *Debounce)
	}{
		{"nothing", Collection{}, func(*Debounce) {}},
		{"quiet", Collection{Quiet: ptr(7 * second)}, func(d *Debounce) { d.Quiet = 7 * second }},
		{"quiet to zero", Collection{Quiet: ptr(time.Duration(0))}, func(d *Debounce) { d.Quiet = 0 }},
		{"max wait", Collection{MaxWait: ptr(20 * second)}, func(d *Debounce) { d.MaxWait = 20 * second }},
		{"cap grace", Collection{CapGrace: ptr(second)}, func(d *Debounce) { d.CapGrace = second }},
		{"min interval", Collection{MinInterval: ptr(2 * second)}, func(d *Debounce) { d.MinInterval = 2 * second }},
		{"leading", Collection{Leading: ptr(true)}, func(d *Debounce) { d.Leading = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := Default()
			news(&c, tt.own)
			want := base
			tt.want(&want)
			for name, want := range map[string]Debounce{"news": want, "content": base, "unheard-of": base} {
				if got := c.For(name); got != want {
					t.Errorf("%s: got %+v, want %+v", name, got, want)
				}
			}
		})
	}
}

func TestEachSinkOfACollectionHasRowsOfItsOwn(t *testing.T) {
	t.Parallel()
	c := Default()
	for _, name := range []string{"archive", "vectors"} {
		c.Sinks[name] = newSink("memory")
	}
	c.Collections = map[string]Collection{
		"content": {}, "news": {Sink: "archive"}, "pages": {Sinks: []string{"search", "vectors"}},
	}
	for _, tt := range []struct {
		doc, sink, row shard.DocID
		lives          bool
	}{
		{"content#a", "search", "content#a", true},
		{"content#a", "vectors", "content#a", false},
		{"news#a", "archive", "news#a", true},
		{"news#a", "search", "news#a", false},
		{"unheard-of#a", "search", "unheard-of#a", true},
		{"pages#a", "search", "pages#a", true},
		{"pages#a@b#c", "vectors", "pages@vectors#a@b#c", true},
		{"pages@vectors#a", "search", "pages#a", true},
		{"pages#a", "archive", "pages#a", false},
	} {
		row, lives := c.RowAt(tt.doc, string(tt.sink))
		if row != tt.row || lives != tt.lives {
			t.Errorf("%s in %s: got %s, %t, want %s, %t", tt.doc, tt.sink, row, lives, tt.row, tt.lives)
		}
		if own := c.SinkOf(row); lives && own != string(tt.sink) {
			t.Errorf("row %s: is of sink %s, want %s", row, own, tt.sink)
		}
		if row.ID() != tt.doc.ID() || row.Collection() != tt.doc.Collection() || row.Plain() != tt.doc.Plain() {
			t.Errorf("row %s: is of document %s, want %s", row, row.Plain(), tt.doc)
		}
	}
	if got := c.SinkOf("pages@gone#a"); got != "search" {
		t.Errorf("a row of a removed sink: got sink %s, want the first sink, search", got)
	}
	if got := c.RowsOf("pages@vectors#a"); !slices.Equal(got, []shard.DocID{"pages#a", "pages@vectors#a"}) {
		t.Errorf("rows: got %v", got)
	}
	for sink, want := range map[string][]string{"search": {"search", "vectors"}, "archive": {"archive"}} {
		if got := c.Companions(sink); !slices.Equal(got, want) {
			t.Errorf("a message to %s: got the sinks %v, want %v", sink, got, want)
		}
	}
	if got := c.CollectionsOf("vectors"); !slices.Equal(got, []shard.Collection{"pages"}) {
		t.Errorf("collections of vectors: got %v", got)
	}
}

func TestWhereACollectionHasSeveralSinksEachSkipsWhatLivesElsewhere(t *testing.T) {
	t.Parallel()
	for want, sinks := range map[Elsewhere][]string{
		ElsewhereDeadLetter: {"search"}, ElsewhereSkip: {"search", "archive"},
	} {
		c := Default()
		c.Sinks["archive"] = newSink("memory")
		c.Collections["content"], c.Queues.Elsewhere = Collection{Sinks: sinks}, ""
		if c.Complete(); c.Queues.Elsewhere != want {
			t.Errorf("%v: got %s, want %s", sinks, c.Queues.Elsewhere, want)
		}
	}
}

func TestCollectionForSource(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Sources["cms"] = Source{Kind: "native", Collection: "news"}
	for source, want := range map[string]string{"native": "content", "cms": "news", "unheard-of": "content"} {
		if got := c.CollectionFor(source); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}

func TestAllowForSource(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Payload.Allow = []BucketPrefix{{Bucket: "for-all"}, {Bucket: "for-cms", Sources: []string{"cms"}}}
	for source, want := range map[string]int{"native": 1, "cms": 2} {
		if got := c.Payload.AllowFor(source); len(got) != want || got[0].Bucket != "for-all" {
			t.Errorf("%s: got %v, want %d places", source, got, want)
		}
	}
}

func TestVersionsAndApplyDelayOfSinks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		sink     Sink
		versions bool
		delay    time.Duration
	}{
		{"bleve", Sink{Kind: "bleve"}, true, 0},
		{"memory", Sink{Kind: "memory"}, true, 0},
		{"opensearch", Sink{Kind: "opensearch"}, true, 0},
		{"versions off", Sink{Kind: "opensearch", Versions: ptr(false)}, false, 30 * second},
		{"serverless", Sink{Kind: "opensearch", Options: opensearch.Settings{Serverless: true}}, false, 30 * second},
		{
			"serverless beats versions",
			Sink{Kind: "opensearch", Options: opensearch.Settings{Serverless: true}, Versions: ptr(true)},
			false,
			30 * second,
		},
		{"apply delay set", Sink{Kind: "opensearch", ApplyDelay: ptr(4 * second)}, true, 4 * second},
		{"no kind at all", Sink{}, false, 30 * second},
		{"a kind that is not linked, resolved elsewhere", Sink{Kind: "x", Versions: ptr(true)}, true, 0},
	} {
		c := Default()
		c.Sinks["s"] = tt.sink
		can := c.Sinks["s"].Capabilities()
		if v, delay, lease := can.Versions, can.ApplyDelay, c.Lease("s"); v != tt.versions || delay != tt.delay ||
			lease != 13*second+tt.delay {
			t.Errorf("%s: got %t, %s and a lease of %s, want %t and %s", tt.name, v, delay, lease, tt.versions, tt.delay)
		}
	}
}

func TestAmbiguousRetryIsWholeSecondsAndNotBeforeTheLeaseEnds(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Index.Guard = 3200 * time.Millisecond
	if got := c.AmbiguousRetry("search"); got != 14*second {
		t.Errorf("got %s, want 14s", got)
	}
	c.Flight.AmbiguousRetry = 20 * second
	if got := c.AmbiguousRetry("search"); got != 20*second {
		t.Errorf("set: got %s, want 20s", got)
	}
}

func TestMaxReceiveCountRoundsUp(t *testing.T) {
	t.Parallel()
	for deadline, want := range map[time.Duration]int{
		time.Minute: 31, 16 * minute: 35, 16*minute + 1: 36,
		90 * 192 * second: 120, 90*192*second + 1: 121, 72 * time.Hour: 456, 90*192*second + 880*12*minute: 1000,
	} {
		c := Default()
		c.Retry.DeadDeadline = deadline
		if got := c.Retry.MaxReceiveCount(); got != want {
			t.Errorf("%s: got %d, want %d", deadline, got, want)
		}
	}
}

func TestTimingIsForInTheTermsOfTheProtocol(t *testing.T) {
	t.Parallel()
	c := Default()
	news(&c, Collection{
		Quiet: ptr(7 * second), MaxWait: ptr(20 * second), CapGrace: ptr(2 * second),
		MinInterval: ptr(3 * second), Leading: ptr(true),
	})
	want := shard.Timing{
		Quiet: 7 * second, MaxWait: 20 * second, CapGrace: 2 * second, MinInterval: 3 * second,
		Leading: true, Waits: 3,
	}
	if got := c.Timing("news"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRowsExpireAfterRetentionAndItsExtra(t *testing.T) {
	t.Parallel()
	c := Default()
	now := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	if got, want := time.Unix(c.Lifecycle.Expires(now), 0).UTC(), now.AddDate(0, 0, 37); !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
