// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

const next = "content.r20261122100000"

// rebuilding creates a new index and records it in the health row.
func (b *bench) rebuilding() *memorysink.Sink {
	b.Helper()
	err := b.sink.Create(b.Context(), sink.NewIndex{Collection: "content", Name: next, Like: "content"})
	if err != nil {
		b.Fatal(err)
	}
	b.Write(shard.Rebuild("search", "content", next, 1))
	return b.sink.Beside(next)
}

// has fails the test unless an index holds the given version of a document. Version 0 means none.
func (b *bench) has(s *memorysink.Sink, id string, version int) {
	b.Helper()
	got, found, err := s.Get(b.Context(), doc(id))
	switch {
	case err != nil:
		b.Fatal(err)
	case found != (version > 0), found && got.Key != b.key(id, version).String():
		b.Errorf("%s is %s, found %t; want version %d", id, got.Key, found, version)
	}
}

func TestWhatIsWrittenGoesToTheNewIndexOfARebuildWithItsFence(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		b.fly(b.hold(put("before", 1)), 1)
		beside := b.rebuilding()
		b.fly(b.hold(put("a", 1), put("b", 1)), 2)
		b.fly(b.hold(gone("b", 2)), 1)
		b.has(beside, "before", 0)
		b.has(beside, "a", 1)
		b.has(beside, "b", 0)
		in, _, _ := b.sink.Get(b.Context(), doc("a"))
		if got, _, _ := beside.Get(b.Context(), doc("a")); got.Fence != in.Fence {
			t.Errorf("the new index has fence %d, want the fence of the index in use, %d", got.Fence, in.Fence)
		}
		b.Noted(journal.Missed, 0)
		if r := b.Row(shard.HealthRow("search")); r.RebuildMissed != 0 {
			t.Errorf("%d missed writes are noted, want none", r.RebuildMissed)
		}
		b.inQueue(0)
	})
}

func TestAWriteThatTheNewIndexMissesIsNotedBeforeItsCommit(t *testing.T) {
	usecasetest.Table(t, stage{}.play, map[string]memorysink.Answer{
		"refused": poison(),
		"unknown": {Outcome: sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}},
		"full":    {Outcome: sink.Outcome{Kind: sink.Configuration, Apart: true, Reason: "cluster_block_exception"}},
	}, func(b *bench, answer memorysink.Answer) {
		beside := b.rebuilding()
		beside.Script(doc("a"), answer)
		s := b.hold(put("a", 1), put("b", 1))
		b.inject = at("COMMIT", func() {
			if r := b.Row(shard.HealthRow("search")); r.RebuildMissed != 1 {
				b.Errorf("%d missed writes are noted at COMMIT, want 1", r.RebuildMissed)
			}
		})
		b.fly(s, 2)
		b.has(b.sink, "a", 1)
		b.has(beside, "a", 0)
		b.has(beside, "b", 1)
		b.Noted(journal.Missed, 1)
		b.Noted(journal.Released, 0)
		b.inQueue(0)
	})
}

func TestANewIndexThatHangsDelaysACommitByASecond(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		beside := b.rebuilding()
		beside.SetLatency(20 * time.Second)
		s := b.hold(put("a", 1))
		b.fly(s, 1)
		b.Noted(journal.Missed, 1)
		claimed, committed := b.Notes.Of(journal.Claimed)[0].At, b.Notes.Of(journal.Committed)[0].At
		if took := committed.Sub(claimed); took > 1100*time.Millisecond {
			t.Errorf("COMMIT was %s after CLAIM, want a second", took)
		}
		b.inQueue(0)
	})
}

func TestAWriteThatMayNotBeMissedIsNotCommitted(t *testing.T) {
	type row struct {
		change         shard.Write
		missed, copied string
	}
	sealed, ended := shard.Seal("search", 1, 0, 5), shard.Rebuilt("search", 1)
	usecasetest.Table(t, stage{}.play, map[string]row{
		"while the name is switched, the first document":   {sealed, "a", "b"},
		"while the name is switched, the second document":  {sealed, "b", "a"},
		"after the rebuild has ended, the first document":  {ended, "a", "b"},
		"after the rebuild has ended, the second document": {ended, "b", "a"},
	}, func(b *bench, tt row) {
		beside := b.rebuilding()
		beside.Script(doc(tt.missed), poison())
		s := b.hold(put("a", 1), put("b", 1))
		b.inject = at("MISS", func() { b.Write(tt.change) })
		b.turn(s)
		if r := b.Row(doc(tt.missed)); r.Committed != "" || r.Claimed != b.key(tt.missed, 1) || r.Owner == "" {
			b.Errorf("row of %s %+v, want a lease that expires by itself", tt.missed, r)
		}
		if r := b.Row(doc(tt.copied)); r.Committed != b.key(tt.copied, 1) {
			b.Errorf("row of %s %+v, want it committed, because the new index has the document", tt.copied, r)
		}
		b.Noted(journal.OutcomeUnknown, 1)
	})
}

func TestARebuildThatEndsDuringATurnStillCountsForIt(t *testing.T) {
	stage{}.play(t, func(b *bench) {
		beside := b.rebuilding()
		// The throttled document makes the turn read the health row again, before the turn writes
		// to the new index.
		b.sink.Script(doc("c"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: 429}})
		s := b.hold(put("a", 1), put("c", 1))
		b.inject = at("CLAIM", func() { b.Write(shard.Rebuilt("search", 1)) })
		b.turn(s)
		b.Noted(journal.Slowed, 1)
		b.has(beside, "a", 1)
	})
}

func gone(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.deleted","subject":%q,"sequence":"%d"}`, id, version)
}
