// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/searchable"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// lagging is an engine whose searches see the documents of its last refresh.
type lagging struct {
	*memorysink.Sink

	seen map[shard.DocID]sink.Stored
	err  error
}

func (l *lagging) Found(_ context.Context, doc shard.DocID) (sink.Stored, bool, error) {
	s, ok := l.seen[doc]
	return s, ok, l.err
}

func (l *lagging) refresh(t *testing.T, doc shard.DocID) {
	t.Helper()
	s, ok, err := l.Get(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	if l.seen = map[shard.DocID]sink.Stored{}; ok {
		l.seen[doc] = s
	}
}

// writeOnly is a reader that does not say what a search finds.
type writeOnly struct{ sink.Reader }

func TestSearchableSaysYesOnlyIfASearchFindsTheCommittedVersion(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		engine := &lagging{Sink: g.sink}
		g.Readers["search"] = engine
		ask := func(what string, want searchable.State, why string) {
			t.Helper()
			s, err := api.Searchable(t.Context(), searchable.Question{Key: "content#a"})
			if err != nil || len(s.Sinks) != 1 {
				t.Fatalf("%s: %+v, %v", what, s, err)
			}
			if in := s.Sinks[0]; in.Sink != "search" || in.Searchable != want || !strings.Contains(in.Why, why) {
				t.Errorf("%s: got %+v, want %s because %q", what, in, want, why)
			}
		}
		ask("nothing is committed", searchable.No, "no version is committed")
		g.commit(g.hold("1", put("a", 1)), `{}`)
		ask("the engine has not refreshed", searchable.No, "no search finds the document yet")
		engine.refresh(t, "content#a")
		ask("the engine has refreshed", searchable.Yes, "")
		g.hold("2", put("a", 2))
		ask("a newer version waits", searchable.Yes, "")
		engine.err = errors.New("no route to host")
		ask("the engine is away", searchable.Unknown, "no route to host")
		engine.err = nil
		engine.seen["content#a"] = sink.Stored{Doc: "content#a", Key: "?"}
		ask("another program changed the mark", searchable.Unknown, "cannot be read")
		other := g.Config.Sinks["search"]
		other.Kind = "webhook" // its kind does not promise that a write is found at once
		g.Config.Sinks["search"] = other
		g.Readers["search"] = writeOnly{g.sink}
		ask("the kind does not say", searchable.Unknown, "does not say what a search finds")
		delete(g.Readers, "search")
		ask("there is no reader", searchable.Unknown, "cannot be read from here")
	})
}

// remove commits a delete in the row and in the sink.
func (g *ground) remove(id string, version int) {
	g.Helper()
	e := g.hold("remove", strings.Replace(put(id, version), "doc.changed", "doc.deleted", 1))
	l := shard.Lease{Doc: e.Doc, Key: e.Key, Token: "remove", At: micros()}
	g.rig.Write(shard.Claim(shard.Bid{Doc: l.Doc, Key: l.Key, Token: l.Token, Now: l.At, Until: l.At.Add(time.Second)}))
	op := sink.Op{
		Doc: e.Doc, Kind: shard.Delete, Fence: shard.Fence(l.At), Key: e.Key, Version: e.Version, At: l.At.Time(),
	}
	if out := g.sink.Write(g.Context(), []sink.Op{op}); out[0].Kind != sink.Applied {
		g.Fatalf("delete: %+v", out)
	}
	g.rig.Write(shard.Commit(l, shard.Delete, micros(), time.Now().Add(time.Hour).Unix(), g.rig.Row(e.Doc)))
}

// A search that finds an older version, or a deleted document, is not fresh.
func TestSearchableComparesWhatASearchFinds(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		engine := &lagging{Sink: g.sink}
		g.Readers["search"] = engine
		g.Config.Debounce.MinInterval = 0
		g.Config.Complete()
		g.commit(g.hold("1", put("a", 1)), `{}`)
		engine.refresh(t, "content#a")
		g.commit(g.hold("2", put("a", 2)), `{}`)
		ask := func(what string, want searchable.State, version, why string) {
			t.Helper()
			s, err := api.Searchable(t.Context(), searchable.Question{Key: "content#a"})
			if err != nil || len(s.Sinks) != 1 {
				t.Fatalf("%s: got %+v, %v", what, s, err)
			}
			if in := s.Sinks[0]; in.Searchable != want || in.Version != version || !strings.Contains(in.Why, why) {
				t.Errorf("%s: got %+v, want %s about version %s because %q", what, in, want, version, why)
			}
		}
		ask("version 1 is found", searchable.No, "2", "still finds version 1")
		engine.refresh(t, "content#a")
		ask("version 2 is found", searchable.Yes, "2", "")
		g.remove("a", 3)
		ask("the deleted version is found", searchable.No, "3", "the deleted version 2")
		engine.refresh(t, "content#a")
		ask("the deleted document is gone", searchable.Yes, "3", "")
	})
}

func TestEachSinkOfACollectionSaysWhetherASearchFindsTheDocument(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		far := g.fanOut()
		g.commit(g.hold("1", put("a", 1)), `{}`)
		s, err := api.Searchable(t.Context(), searchable.Question{Key: "content#a"})
		if err != nil || len(s.Sinks) != 2 {
			t.Fatalf("got %+v, %v", s, err)
		}
		for _, in := range s.Sinks {
			if want := map[string]searchable.State{"search": searchable.Yes, "remote": searchable.No}[in.Sink]; in.Searchable != want {
				t.Errorf("sink %s: %+v, want %s", in.Sink, in, want)
			}
		}
		far.commit(far.hold("2", put("a", 1)), `{}`)
		if s, err = api.Searchable(t.Context(), searchable.Question{Key: "content@remote#a"}); err != nil || len(s.Sinks) != 1 || s.Sinks[0].Searchable != searchable.Yes {
			t.Errorf("got %+v, %v, want yes of the sink remote alone", s, err)
		}
		if _, err := api.Searchable(t.Context(), searchable.Question{Key: "content@none#a"}); err == nil {
			t.Error("a sink that does not exist: no error")
		}
	})
}

// A document that did not change is committed without a write. Its mark in the engine stays older,
// and a search finds its content.
func TestSearchableKnowsAVersionThatWasCommittedWithoutAWrite(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		engine := &lagging{Sink: g.sink}
		g.Readers["search"] = engine
		g.commit(g.hold("1", put("a", 1)), `{"title":"vienna"}`)
		engine.refresh(t, "content#a")
		generation, err := g.sink.Generation(t.Context(), "content")
		if err != nil {
			t.Fatal(err)
		}
		two := g.rig.EventOf(put("a", 2)).Key
		keep := func(document string) {
			g.rig.Change("content#a", func(r *shard.Row) {
				r.Committed, r.Pending = two, two
				of := g.Config.Generation("content", "search") + "\n" + generation
				r.Content = shard.ContentOf(of, two, []byte(document))
			})
		}
		for document, want := range map[string]searchable.State{
			`{"title":"vienna"}`: searchable.Yes, `{"title":"graz"}`: searchable.No,
		} {
			keep(document)
			a, err := api.Searchable(t.Context(), searchable.Question{Key: "content#a", Version: "2"})
			if err != nil || a.Searchable != want {
				t.Errorf("committed as %s: got %+v, %v, want %s", document, a, err, want)
			}
		}
	})
}
