// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func TestARebuildKeepsNoOtherCollectionFromBeingComparedOrBuried(t *testing.T) {
	play(t, func(b *bench) {
		b.Write(shard.Rebuild("search", "other", "new", usecasetest.Now()))
		if _, err := b.run(); err != nil {
			b.Errorf("compare returned %v", err)
		}
		b.row("a", 5, shard.Put)
		b.stored("a", 5, 10*time.Minute)
		if err := b.bury("a"); err != nil {
			b.Errorf("bury returned %v", err)
		}
		b.buried("a")
	})
}

// Only the documents of this collection are left, and only in the sink.
func TestACollectionThatOnlyTheSinkKnowsIsCompared(t *testing.T) {
	play(t, func(b *bench) {
		b.sink.Write(b.Context(), []sink.Op{{
			Doc: "gone#a", Kind: shard.Put, Key: b.key("a", 1), Version: "1", Fence: 1, Document: []byte(`{}`),
		}})
		rep, err := b.run(func(o *reconcile.Order) { o.Collection = "gone" })
		if err != nil || rep.Documents != 1 || rep.Rows != 0 {
			b.Errorf("got %+v, %v, want the document of the sink", rep, err)
		}
	})
}

// The lease covers only the request. If REASSERT takes more than five seconds, too little of the
// lease is left.
func TestADeleteIsNotSentLateUnderItsLease(t *testing.T) {
	play(t, func(b *bench) {
		b.row("a", 5, shard.Delete)
		b.stored("a", 4, 20*time.Minute)
		b.inject = usecasetest.On("REASSERT", func(fault.Op) { time.Sleep(6 * time.Second) })
		if _, err := b.run(); err != nil || !slices.Equal(b.reported(), []string{"a undone failed"}) {
			b.Errorf("got %v, %v, want a failed outcome", b.reported(), err)
		}
		if got := b.held("a"); got != "4" {
			b.Errorf("the sink holds version %q, want nothing sent", got)
		}
	})
}

// A version that was claimed without an answer may be in the sink, so the tombstone waits.
func TestABurialWaitsForANewerVersionThatWasClaimed(t *testing.T) {
	play(t, func(b *bench) {
		b.row("a", 4, shard.Put, func(r *shard.Row) { r.Claimed = b.key("a", 6) })
		b.stored("a", 4, 10*time.Minute)
		before := b.Row(usecasetest.Doc("a"))
		err := b.service("bury-").Bury(b.Context(), reconcile.Burial{
			Doc: usecasetest.Doc("a"), By: "somebody", Why: "test",
			Key: func(shard.Row, shard.InSink) (shard.OrderKey, error) { return b.key("a", 5), nil },
		})
		if after := b.Row(usecasetest.Doc("a")); !errors.Is(err, reconcile.ErrMoving) || after != before {
			b.Errorf("got %v, row %+v; want ErrMoving and the row unchanged", err, after)
		}
	})
}

// A copy whose fence is after the row's last write is from another write.
func TestACopyOfALaterWriteIsNotTheLastOne(t *testing.T) {
	play(t, func(b *bench) {
		for id, ago := range map[string]time.Duration{"last": 10*time.Minute + time.Second, "later": 9 * time.Minute} {
			b.stored(id, 3, ago)
			b.row(id, 5, shard.Put, func(r *shard.Row) { r.Content = b.content(id, 5, `{"title":"x"}`) })
		}
		s := b.Config.Sinks["search"]
		s.Generation = "2" // the bytes cannot be compared
		b.Config.Sinks["search"] = s
		if _, err := b.run(); err != nil || len(b.lines) != 2 {
			b.Fatalf("got %v, %v, want both to differ", b.reported(), err)
		}
		for _, l := range b.lines {
			if want := l.Row.Doc.ID() == "last"; l.Unsure != want {
				b.Errorf("document %s: unsure %t, want %t", l.Row.Doc, l.Unsure, want)
			}
		}
	})
}

func TestDocumentsAreReadOnBehindTheLastOne(t *testing.T) {
	play(t, func(b *bench) {
		for _, id := range []string{"a", "b", "c"} {
			b.stored(id, 1, time.Minute)
		}
		var got []string
		err := b.service("").Documents(b.Context(), collection, "a", func(s sink.Stored) error {
			got = append(got, s.Doc.ID())
			return nil
		})
		if err != nil || !slices.Equal(got, []string{"b", "c"}) {
			b.Errorf("got %v, %v, want the documents after a", got, err)
		}
	})
}

// rewritten is a sink in which a document is written between two reads of it.
type rewritten struct {
	*memorysink.Sink
	write func()
}

func (r rewritten) Documents(ctx context.Context, docs []shard.DocID) ([]sink.Stored, error) {
	r.write()
	return r.Sink.Documents(ctx, docs)
}

// The bytes count only if the mark did not change between the two reads.
func TestADocumentThatIsBeingWrittenIsNotTakenForAChangedOne(t *testing.T) {
	play(t, func(b *bench) {
		b.stored("a", 5, 10*time.Minute+time.Second)
		b.row("a", 5, shard.Put, func(r *shard.Row) { r.Content = b.content("a", 5, `{"title":"x"}`) })
		s := b.service("")
		s.Reader = rewritten{b.sink, func() {
			time.Sleep(time.Second)
			b.sink.Write(b.Context(), []sink.Op{{
				Doc: usecasetest.Doc("a"), Kind: shard.Put, Fence: shard.Fence(usecasetest.Now()), Key: b.key("a", 5),
				Version: "5", Document: []byte(`{"title":"y"}`),
			}})
		}}
		found, err := s.Look(b.Context(), []shard.DocID{usecasetest.Doc("a")})
		if err != nil || found[0].Difference != shard.NoDifference {
			b.Errorf("got %+v, %v, want no difference", found, err)
		}
	})
}
