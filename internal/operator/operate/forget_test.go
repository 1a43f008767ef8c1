// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// everywhere puts a document everywhere where lull keeps documents.
func (g *ground) everywhere(id string) {
	g.Helper()
	g.commit(g.hold("old-"+flight.ID(id), put(id, 3)), `{"title":"secret"}`)
	usecasetest.OK(g, g.flights.Delete(g.Context(), "old-"+flight.ID(id)))
	g.die(put(id, 4), deadletter.RejectedBySink)
	e := g.hold("f-"+flight.ID(id), put(id, 5))
	err := g.Schedule.Put(g.Context(), schedule.Item{
		ID: "s-" + id, Doc: e.Doc, Key: g.rig.EventOf(put(id, 6)).Key, NotBefore: time.Now().Add(time.Hour), Sink: "search",
		Lane: flight.Live, Body: put(id, 6),
	})
	if err != nil {
		g.Fatal(err)
	}
}

func places(f operate.Forgotten) string {
	text := ""
	for _, s := range f.Steps {
		text += fmt.Sprintf("%s %d/%d, ", s.Place, s.Removed, s.Found)
	}
	return strings.TrimSuffix(text, ", ")
}

func TestForgetTakesADocumentOutOfTheArchive(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.commit(g.hold("old-a", put("a", 3)), `{"title":"secret"}`)
		usecasetest.OK(t, g.flights.Delete(t.Context(), "old-a"))
		store := memory.NewArchive(clock.System{}, 24*time.Hour)
		g.Archive = store
		msgs := []queue.Message{{ID: "1", Body: put("a", 3)}, {ID: "2", Body: put("b", 1)}}
		object := usecasetest.Must(archive.Encode(msgs))(t)
		name := archive.Parts{Received: time.Now(), Lane: flight.Live, Sink: "search", Messages: 2, ID: "ID"}.Name()
		for n, b := range map[archive.Name][]byte{name: object, name + "x": []byte("broken")} {
			usecasetest.OK(t, store.Put(t.Context(), n, b))
		}
		for _, dry := range []bool{true, false} {
			got, err := forgets(t.Context(), api, operate.Forgetting{Key: "content#a", DryRun: dry, By: "ann"})
			last := got.Steps[len(got.Steps)-1]
			removed := map[bool]int{false: 1}[dry]
			if err != nil || last.Place != "archive" || last.Found != 2 || last.Removed != removed ||
				len(last.Remains) != 1 || !strings.Contains(last.Remains[0], string(name)+"x") {
				t.Errorf("dry run %t: got %+v, %v", dry, last, err)
			}
		}
		if _, msgs, err := archive.Read(t.Context(), store, name); err != nil || len(msgs) != 1 || msgs[0].ID != "2" {
			t.Errorf("the archive has %+v, %v", msgs, err)
		}
	})
}

func TestForgetRemovesADocumentFromEveryPlace(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.everywhere("a")
		g.everywhere("b")
		before := g.rig.Row("content#a")
		order := operate.Forgetting{Key: "content#a", DryRun: true, By: "ann"}
		got, err := forgets(t.Context(), api, order)
		const there = "tombstone 0/1, sink search 0/1, flights 0/1, scheduled events 0/1, dead letters 0/1"
		if err != nil || places(got) != there || got.Remaining != 5 || !got.DryRun || g.rig.Row("content#a") != before {
			t.Fatalf("dry run: %s, %+v, %v", places(got), got, err)
		}
		order.DryRun = false
		got, err = forgets(t.Context(), api, order)
		const done = "tombstone 1/1, sink search 1/1, flights 0/1, scheduled events 1/1, dead letters 1/1"
		if err != nil || places(got) != done || got.Remaining != 1 || got.Waits != 1 || got.Until.Before(time.Now()) {
			t.Fatalf("got %s, %+v, %v", places(got), got, err)
		}
		row := g.rig.Row("content#a")
		if !row.Committed.IsFinal() || row.Committed.VersionText() != "5" || row.CommittedOp != shard.Delete {
			t.Errorf("row %+v", row)
		}
		for _, late := range []string{put("a", 5), put("a", 6), absurd("a")} {
			if e := g.rig.EventOf(late); shard.Judge(row, e.Key, e.Class, false) != shard.Stale {
				t.Errorf("%s is not stale", late)
			}
		}
		for _, n := range g.rig.Notes.All() {
			if strings.Contains(fmt.Sprint(n), "secret") {
				t.Errorf("noted content: %+v", n)
			}
		}
		if n := g.rig.Notes.Of(journal.Removed); len(n) != 1 || n[0].Doc != "content#a" ||
			!strings.Contains(n[0].Detail, "by ann") {
			t.Errorf("noted %+v", n)
		}
		if x, err := api.Explain(t.Context(), "content#a"); err != nil || x.State != operate.StateForgotten {
			t.Errorf("explained as %s %q, %v", x.State, x.Sentence, err)
		}
		if list, err := api.Documents(t.Context(), operate.DocumentFilter{Key: "content#a"}); err != nil ||
			len(list.Documents) != 1 || list.Documents[0].State != operate.StateForgotten {
			t.Errorf("listed as %+v, %v", list, err)
		}
		// Index ends the flight. Then nothing remains, however often it is asked.
		usecasetest.OK(t, g.flights.Delete(t.Context(), "f-a"))
		for range 2 {
			if got, err = forgets(t.Context(), api, order); err != nil || got.Remaining != 0 ||
				g.rig.Row("content#a") != row {
				t.Errorf("again: %s, %v", places(got), err)
			}
		}
		// Others are as they were.
		got, err = forgets(t.Context(), api, operate.Forgetting{Key: "content#b", DryRun: true, By: "ann"})
		if err != nil || places(got) != there {
			t.Errorf("another document: %s, %v", places(got), err)
		}
		// An operator may take it back: the versions of the source count again.
		usecasetest.Must(api.Reset(t.Context(), operate.ResetOrder{Key: "content#a", To: "5", By: "ann"}))(t)
		g.commit(g.hold("g", put("a", 5)), `{"title":"back"}`)
	})
}

// A message of several events is one body: it stays as long as the dead letter of another document
// needs it, and the answer says so, each time.
func TestForgetSaysWhatRemains(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		both := message(rabbit(put("a", 1), put("b", 1), put("c", 1)))
		g.park(both, put("a", 1), 0)
		shared := []string{g.park(both, put("b", 1), 1), g.park(both, put("c", 1), 2)}
		unclear := deadletter.New(message(`{"subject": "a`), deadletter.Undecodable, "x", "", "", 0, time.Now())
		usecasetest.Must(g.rig.Letters.Park(t.Context(), unclear))(t)
		got := g.forgetTwice(api, "a")
		if got.Remaining != 2 || got.Waits != 0 {
			t.Fatalf("got %s, %+v", places(got), got)
		}
		said := remains(got)
		for _, id := range append(shared, unclear.ID) {
			if !strings.Contains(said, "lull dead drop "+id) {
				t.Errorf("said %s, want dead letter %s", said, id)
			}
		}
	})
}

// Without a tombstone nothing is removed: what is still in a queue would bring it back.
func TestForgetRemovesNothingBeforeItsTombstoneIsThere(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.everywhere("a")
		g.rig.Write(shard.Pause("search", micros(), "ann", ""))
		order := operate.Forgetting{Key: "content#a", By: "ann"}
		got, err := forgets(t.Context(), api, order)
		if want := "tombstone 0/1, sink search 0/1, flights 0/1, scheduled events 0/1, dead letters 0/1"; err != nil ||
			places(
				got,
			) != want || got.Waits == 0 || got.DryRun || !strings.Contains(fmt.Sprint(got.Steps), "is paused") {
			t.Fatalf("got %s, %+v, %v", places(got), got, err)
		}
		g.rig.Write(
			shard.Resume("search", g.rig.Row(shard.HealthRow("search")), micros(), func(int64) time.Duration { return 0 }),
		)
		if got, err = forgets(t.Context(), api, order); err != nil || got.Steps[4].Removed != 1 {
			t.Errorf("after the pause: %s, %v", places(got), err)
		}
	})
}

func TestForgetRefusesAKeyThatIsNotClear(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.commit(g.hold("f", put("a", 1)), `{}`)
		for _, tt := range []struct {
			order operate.Forgetting
			is    error
			says  string
		}{
			{operate.Forgetting{Key: "content#a"}, operate.ErrInput, "by"},
			{operate.Forgetting{Key: "a", By: "ann"}, operate.ErrInput, "<collection>#<id>"},
			{operate.Forgetting{Key: "content#a ", By: "ann"}, operate.ErrInput, "space"},
			{operate.Forgetting{Key: "content#*", By: "ann"}, operate.ErrInput, "pattern"},
			{operate.Forgetting{Key: "content#z", By: "ann"}, operate.ErrNotFound, "is the key right?"},
			{operate.Forgetting{Key: "far#a", By: "ann"}, operate.ErrInput, "cannot be read from here"},
		} {
			_, err := forgets(t.Context(), api, tt.order)
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q: %v, want %q", tt.order.Key, err, tt.says)
			}
		}
		if g.rig.Row("content#z").Exists() || g.rig.Row("content#a").Committed.IsFinal() {
			t.Error("a row was written")
		}
	})
}

func TestRemoveDeletesWhatIsAsItWasSeen(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		long := time.Now().Add(-time.Hour)
		seen := func(id string) operate.ReconcileCopy {
			s, ok, err := g.sink.Get(t.Context(), shard.DocID("content#"+id))
			if err != nil || !ok {
				t.Fatalf("%s: %t, %v", id, ok, err)
			}
			return operate.ReconcileCopy{Key: s.Doc, OrderKey: s.Key, Fence: int64(s.Fence)}
		}
		for _, id := range []string{"ours", "rowless", "changed", "waits", "by-hand"} {
			e := g.rig.EventOf(put(id, 3))
			op := sink.Op{
				Doc: e.Doc, Kind: shard.Put, Fence: shard.Fence(long.UnixMicro()), Key: e.Key, Version: "3",
				Document: []byte(`{}`),
			}
			if id == "by-hand" {
				op.Key, op.Version = "", ""
			}
			g.sink.Write(t.Context(), []sink.Op{op})
		}
		g.commit(g.hold("f", put("ours", 4)), `{}`)
		order := operate.RemoveOrder{Collection: "content", Run: "01ARZ3NDEKTSV4RRFFQ69G5FAV", By: "ann"}
		for _, id := range []string{"ours", "rowless", "changed", "waits", "by-hand"} {
			order.Documents = append(order.Documents, seen(id))
		}
		g.commit(g.hold("g", put("changed", 4)), `{}`)
		g.hold("h", put("waits", 4))
		const want = "[{content#ours removed } {content#rowless removed } {content#changed changed } " +
			"{content#waits changed } {content#by-hand removed }]"
		for _, order.DryRun = range []bool{true, false} {
			got, err := api.Remove(t.Context(), order)
			if err != nil || fmt.Sprint(got.Documents) != want {
				t.Fatalf("dry run %t: got %v, %v", order.DryRun, got.Documents, err)
			}
			for id, version := range map[string]string{"ours": "4", "rowless": "3"} {
				if s, there, _ := g.sink.Get(t.Context(), shard.DocID("content#"+id)); there != order.DryRun ||
					there && s.Version != version {
					t.Errorf("dry run %t: %s is there %t, %+v", order.DryRun, id, there, s)
				}
			}
		}
		// The next version of the source wins over the removal, and so does one of what had none.
		for _, id := range []string{"ours", "by-hand"} {
			row, e := g.rig.Row(shard.DocID("content#"+id)), g.rig.EventOf(put(id, map[string]int{"ours": 5}[id]))
			if shard.Judge(row, e.Key, e.Class, false) != shard.Held {
				t.Errorf("%s is not newer than %s", e.Key, row.Committed)
			}
		}
		if row, e := g.rig.Row("content#ours"), g.rig.EventOf(put("ours", 4)); shard.Judge(
			row,
			e.Key,
			e.Class,
			false,
		) != shard.Stale {
			t.Errorf("the version that was removed comes back over %s", row.Committed)
		}
		order.Run = "x"
		if _, err := api.Remove(t.Context(), order); !errors.Is(err, operate.ErrInput) {
			t.Errorf("a run that is not one: %v", err)
		}
	})
}

func message(body string) queue.Message { return queue.Message{ID: "m", Body: body, Sent: time.Now()} }

// A tombstone and a delete need no reading back: a webhook takes both.
func TestForgetDeletesFromASinkThatCannotBeRead(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		remote := g.fanOut()
		g.commit(g.hold("one", put("a", 2)), `{"title":"secret"}`)
		remote.commit(remote.hold("two", put("a", 1)), `{"title":"secret"}`)
		usecasetest.OK(t, g.flights.Delete(t.Context(), "one"))
		usecasetest.OK(t, g.flights.Delete(t.Context(), "two"))
		delete(g.Readers, "remote")
		order := operate.Forgetting{Key: "content#a", DryRun: true, By: "ann"}
		if _, err := forgets(t.Context(), api, order); !errors.Is(err, operate.ErrInput) {
			t.Errorf("of a sink that this program does not reach: %v", err)
		}
		g.Unread = map[string]error{"remote": operate.ErrWriteOnly}
		got, err := forgets(t.Context(), api, order)
		const there = "tombstone 0/2, sink remote 0/1, sink search 0/1"
		if err != nil || !strings.Contains(places(got), there) {
			t.Fatalf("dry run: %s, %v, want %s", places(got), err, there)
		}
		order.DryRun = false
		got, err = forgets(t.Context(), api, order)
		const done = "tombstone 2/2, sink remote 1/1, sink search 1/1"
		if err != nil || got.Remaining != 0 || !strings.Contains(places(got), done) {
			t.Fatalf("got %s, %+v, %v, want %s", places(got), got, err, done)
		}
		if _, there, _ := remote.sink.Get(t.Context(), "content#a"); there {
			t.Error("the sink has it still")
		}
		if row := g.rig.Row("content@remote#a"); !row.Committed.IsFinal() || row.CommittedOp != shard.Delete {
			t.Errorf("row %+v", row)
		}
		if got, err = forgets(t.Context(), api, order); err != nil || got.Remaining != 0 ||
			strings.Contains(places(got), "sink remote") {
			t.Errorf("again: %s, %v", places(got), err)
		}
	})
}

// ends is an API in which a flight ends after some steps looked at flights.
type ends struct {
	all     operate.API
	flights int
	steps   int
	end     func()
}

func (e *ends) Forget(ctx context.Context, o operate.ForgetOrder) (operate.ForgetStep, error) {
	if o.At.Place == "flights" && e.steps == e.flights {
		e.end()
	}
	if o.At.Place == "flights" {
		e.steps++
	}
	return e.all.Forget(ctx, o)
}

// sleepless is a clock whose sleeps end at once.
type sleepless struct{ clock.System }

func (sleepless) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// A flight that waits makes the job begin again. Each round finds the tombstones that are there.
func TestForgetCountsThingsAndNotTries(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		remote := g.fanOut()
		for i, s := range []*ground{g, remote} {
			s.commit(s.hold(flight.ID(fmt.Sprint("old-", i)), put("a", 2)), `{}`)
			usecasetest.OK(t, g.flights.Delete(t.Context(), flight.ID(fmt.Sprint("old-", i))))
			s.die(put("a", 3), deadletter.RejectedBySink)
		}
		g.hold("waits", put("a", 4))
		f := operate.Forgetting{Key: "content#a", By: "ann", Patience: time.Hour, Clock: sleepless{}}
		slow := &ends{all: api, flights: 3, end: func() { usecasetest.OK(t, g.flights.Delete(t.Context(), "waits")) }}
		done, err := forgets(t.Context(), operatetest.API(api, slow), f)
		const want = "tombstone 2/2, sink remote 1/1, sink search 1/1, flights 0/0, scheduled events 0/0, dead letters 2/2"
		if err != nil || places(done) != want || done.Remaining != 0 || slow.steps != 4 {
			t.Errorf("got %s in %d rounds, %v", places(done), slow.steps, err)
		}
	})
}

// What leaves a flight while the job looks for it may become the dead letter of another document.
func TestForgetFindsWhatMovesFromAFlightToADeadLetter(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.commit(g.hold("f", put("alice", 1)), `{}`)
		usecasetest.OK(t, g.flights.Delete(t.Context(), "f"))
		g.hold("shared", put("alice", 2))
		moves := &ends{all: api, end: func() {
			g.park(message(rabbit(put("alice", 2), put("bob", 1))), put("bob", 1), 1)
			usecasetest.OK(t, g.flights.Delete(t.Context(), "shared"))
		}}
		f := operate.Forgetting{Key: "content#alice", By: "ann"}
		done, err := forgets(t.Context(), operatetest.API(api, moves), f)
		if err != nil || done.Remaining != 1 || !strings.Contains(remains(done), "of content#bob") {
			t.Errorf("got %s, %v", places(done), err)
		}
	})
}
