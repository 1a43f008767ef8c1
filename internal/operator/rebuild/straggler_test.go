// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// A turn may have read an old copy of the health row, from before the rebuild was announced. Until
// its lease ends, it writes only to the index in use.
func TestIndicesAreNotComparedWhileATurnMayNotKnowOfTheRebuild(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		s := g.service()
		s.Stale = 15 * time.Second
		var last time.Time // the time of the last such write
		done := false
		g.hook = func(call string) error {
			switch now := time.Now(); {
			case call == "REBUILD":
				last = now.Add(g.Config.Lease("search") + s.Stale)
			case done, last.IsZero(), now.After(last):
			case call == "switch", last.Sub(now) < 6*time.Second:
				done = true
				g.unaware("a", shard.Put)
				g.unaware("b", shard.Delete)
			}
			return nil
		}
		if p, err := g.startWith(s, g.order()); err != nil || !done || p.Repaired != 2 {
			g.Errorf("%+v, %v; want two repairs", p, err)
		}
		g.settled("at the end")
	})
}

// The program was killed while its call that switches the name was under way.
func TestTheSealStaysWhileALateSwitchIsPossible(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		var sealed time.Time
		g.hook = func(call string) error {
			if call == "switch" {
				sealed, g.dead = time.Now(), true
				return errKilled
			}
			return nil
		}
		_, _ = g.startWith(g.service(), g.order())
		g.dead = false
		time.Sleep(31 * time.Second)
		g.stop()
		switched := false
		g.hook = func(string) error {
			row, after := g.Row(shard.HealthRow("search")), time.Since(sealed)
			if switched || row.RebuildSeal != 0 && after < 55*time.Second || after > time.Minute {
				return nil
			}
			switched = true
			into := row.RebuildInto
			if row.RebuildSeal == 0 { // without the seal, the new index may miss a write
				g.sink.Beside(into).Script("content#a", memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown}})
				g.write("a", shard.Put)
			}
			err := g.sink.Switch(g.Context(), "content", "content", into)
			g.readable("after the late switch")
			return err
		}
		if p, err := g.resume(g.service(), "bob", nil); err != nil || !switched {
			g.Errorf("%+v, %v; want the late switch found", p, err)
		}
		g.settled("at the end")
	})
}

// The engine copies the documents into the new index. The engine has read a document, and the
// document is then deleted. If the engine went on copying, the deleted document would appear again.
func TestACopyIsStoppedBeforeIndicesAreCompared(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		g.hook = func(call string) error {
			if call == "fill" {
				g.dead = true
				return errKilled
			}
			return nil
		}
		_, _ = g.startWith(g.service(), g.order())
		g.dead = false
		into := g.Row(shard.HealthRow("search")).RebuildInto
		g.unaware("a", shard.Delete) // the copy has read version 1
		time.Sleep(job.HoldFor + time.Second)
		g.hook = func(call string) error {
			if call == "switch" && !g.stopped {
				op := sink.Op{
					Doc: "content#a", Kind: shard.Put, Fence: 1, At: time.Now(), Document: []byte(`{"n":1}`),
				}
				g.sink.Into("content", into).Write(g.Context(), []sink.Op{op})
			}
			return nil
		}
		if p, err := g.resume(g.service(), "bob", nil); err != nil {
			g.Errorf("%+v, %v", p, err)
		}
		g.settled("at the end")
	})
}

// A turn gets no answer from the new index in time, and notes a MISS. The write takes effect half a
// minute later. The new index has also missed a later delete, so nothing refuses this write.
func TestIndicesAreNotComparedWhileAMissedWriteMayStillArrive(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		missed := func(id string, kind shard.Operation) {
			g.sink.Beside(g.Row(shard.HealthRow("search")).RebuildInto).Script(shard.DocID("content#"+id),
				memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}})
			g.write(id, kind)
		}
		arrived := make(chan struct{})
		sent := false
		g.hook = func(call string) error {
			if call != "SEAL" || sent { // only at the end of the first comparison
				return nil
			}
			sent = true
			missed("late", shard.Put)
			op := sink.Op{
				Doc: "content#late", Kind: shard.Put, Fence: shard.Fence(g.fence), At: time.Now(), Document: []byte(`{}`),
			}
			into := g.Row(shard.HealthRow("search")).RebuildInto
			time.AfterFunc(29*time.Second, func() {
				g.sink.Into("content", into).Write(g.Context(), []sink.Op{op})
				close(arrived)
			})
			missed("late", shard.Delete)
			return nil
		}
		if p, err := g.startWith(g.service(), g.order()); err != nil || p.Phase != rebuild.Done {
			g.Errorf("%+v, %v", p, err)
		}
		<-arrived
		g.settled("when everything has arrived")
	})
}

// A copy got no answer, and arrives after the new index has forgotten a later delete.
func TestACopyWithoutAnAnswerIsWaitedForBeforeItsDocumentIsLookedAtAgain(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		var sent, looked time.Time
		g.hook = func(call string) error {
			row := g.Row(shard.HealthRow("search"))
			switch {
			case call == "stop fill":
				g.unaware("a", shard.Put)
			case call == "transfer" && sent.IsZero():
				sent = time.Now()
				g.sink.Beside(row.RebuildInto).Script("content#a",
					memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}})
			case call == "versions" && !sent.IsZero() && looked.IsZero():
				looked = time.Now()
			}
			return nil
		}
		if p, err := g.startWith(g.service(), g.order()); err != nil || p.Phase != rebuild.Done {
			g.Errorf("%+v, %v", p, err)
		}
		if d := looked.Sub(sent); sent.IsZero() || d < 30*time.Second {
			g.Errorf("the copy was sent at %s, and compared again after %s, want at least half a minute", sent, d)
		}
		g.settled("at the end")
	})
}
