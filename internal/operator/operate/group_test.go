// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// The rows of a group, its scheduled events and its dead letters: each document once.
func TestTheDocumentsOfAGroupAreFoundAndListed(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		for id, group := range map[string]string{"a": "one", "b": "two", "c": "", "d": "one"} {
			e := g.rig.EventOf(put(id, 1))
			g.rig.Write(shard.Admit(shard.Admission{
				Doc: e.Doc, Key: e.Key, Class: e.Class, Flight: "f", Group: group, Now: micros(),
			}))
		}
		of := map[string]queue.Attribute{queue.AttrGroup: queue.Text("one")}
		g.park(queue.Message{ID: "1", Body: put("a", 2), Attributes: of}, put("a", 2), 0)
		g.park(queue.Message{ID: "2", Body: put("e", 1), Attributes: of}, put("e", 1), 0)
		g.park(queue.Message{ID: "3", Body: put("x", 1)}, put("x", 1), 0)
		unknown := g.park(queue.Message{ID: "4", Body: "{", Attributes: of}, "", 0)
		e := g.rig.EventOf(put("s", 1))
		usecasetest.OK(t, g.Schedule.Put(t.Context(), schedule.Item{
			ID: "s", Doc: e.Doc, Key: e.Key, NotBefore: time.Now().Add(time.Hour), Sink: "search", Lane: flight.Live,
			Body: put("s", 1), Attributes: of,
		}))
		all, err := operate.Group(t.Context(), api, "one")
		if got := fmt.Sprint(all.Keys); err != nil || got != "[content#a content#d content#e content#s]" ||
			!slices.Equal(all.Letters, []string{unknown}) {
			t.Errorf("got %s, %v, %v", got, all.Letters, err)
		}
		if _, err := operate.Group(t.Context(), api, "two words"); !errors.Is(err, operate.ErrInput) {
			t.Errorf("no group: %v", err)
		}
		g.Rows = g.rig.Shards.All()
		for state, want := range map[operate.State]string{"": "a d", operate.StateDead: "a"} {
			if state == operate.StateDead {
				g.rig.Write(shard.Park("content#a", g.rig.EventOf(put("a", 1)).Key, micros(), time.Now().Unix(),
					g.rig.Row("content#a")))
			}
			page, err := api.Documents(t.Context(), operate.DocumentFilter{Group: "one", State: state})
			got := ""
			for _, d := range page.Documents {
				got += " " + d.Key.ID()
			}
			if err != nil || got != " "+want {
				t.Errorf("state %q: listed%s, %v, want %s", state, got, err, want)
			}
		}
	})
}

// lost is a store of dead letters or scheduled events of which some messages cannot be read.
type lost struct {
	deadletter.Store
	ids []string
}

func (l lost) Get(ctx context.Context, id string) (deadletter.Letter, bool, error) {
	if slices.Contains(l.ids, id) {
		return deadletter.Letter{}, false, backoff.Permanent(errors.New("its message is gone"))
	}
	return l.Store.Get(ctx, id)
}

type lostEvents struct {
	schedule.Store
	id   string // its message is of a newer schema
	gone string // its message is gone
}

func (l lostEvents) Get(ctx context.Context, id string) (schedule.Item, bool, error) {
	if id == l.id {
		return schedule.Item{}, false, backoff.Permanent(errors.New("of a newer schema"))
	}
	it, found, err := l.Store.Get(ctx, id)
	if id == l.gone && found {
		it.Body, it.Attributes, it.Unread = "", nil, errors.New("its message is gone")
	}
	return it, found, err
}

// breaks parks, schedules and loses messages of a group: two dead letters and two scheduled events
// cannot be read.
func (g *ground) breaks(of map[string]queue.Attribute) {
	g.Helper()
	g.park(queue.Message{ID: "1", Body: put("a", 1), Attributes: of}, put("a", 1), 0)
	g.Dead = lost{g.rig.Letters, []string{
		g.park(queue.Message{ID: "2", Body: put("b", 1), Attributes: of}, put("b", 1), 0),
		g.park(queue.Message{ID: "3", Body: "{", Attributes: of}, "", 0),
	}}
	for _, id := range []string{"s", "t", "u"} {
		e := g.rig.EventOf(put(id, 1))
		usecasetest.OK(g, g.Schedule.Put(g.Context(), schedule.Item{
			ID: id, Doc: e.Doc, Key: e.Key, NotBefore: time.Now().Add(time.Hour), Sink: "search", Lane: flight.Live,
			Body: put(id, 1), Attributes: of,
		}))
	}
	g.Schedule = lostEvents{g.Schedule, "t", "u"}
}

// A message that cannot be read may be of the group. It is named, and does not hide the others.
func TestAMessageThatCannotBeReadDoesNotHideItsGroup(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.breaks(map[string]queue.Attribute{queue.AttrGroup: queue.Text("one")})
		var most atomic.Int64
		g.Operator.Parallel = func(limit, n int, f func(int)) {
			if n > 1 {
				most.Store(max(most.Load(), int64(limit)))
			}
			fanout.Runner(nil).Each(limit, n, f)
		}
		all, err := operate.Group(t.Context(), api, "one")
		if got := fmt.Sprint(all.Keys); err != nil || got != "[content#a content#s]" {
			t.Errorf("got %s, %v", got, err)
		}
		said := strings.Join(all.Unread.Remains, "\n")
		for _, want := range []string{"content#b", "content#t", "content#u", "lull dead drop"} {
			if !strings.Contains(said, want) {
				t.Errorf("it does not name %s: %s", want, said)
			}
		}
		if all.Unread.Found != 4 || len(all.Unread.Remains) != 4 {
			t.Errorf("%d cannot be read: %s", all.Unread.Found, said)
		}
		if n := most.Load(); n < 2 || n > 64 {
			t.Errorf("%d messages were read at the same time", n)
		}
		done, err := operate.CancelGroup(t.Context(), api, "one", operate.Cancellation{By: "ann", Scheduled: true})
		if len(done) != 1 || done[0].Key != "content#s" || err == nil || !strings.Contains(err.Error(), "content#t") {
			t.Errorf("cancelled %+v, %v", done, err)
		}
	})
}

// A document with nothing to cancel does not stop the others.
func TestAGroupIsCancelledTogether(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		of := map[string]queue.Attribute{queue.AttrGroup: queue.Text("one")}
		for _, id := range []string{"a", "b", "c"} {
			g.park(queue.Message{ID: id, Body: put(id, 1), Attributes: of}, put(id, 1), 0)
		}
		g.hold("f-a", put("a", 2))
		g.hold("f-c", put("c", 2))
		g.hold("f-x", put("x", 2))
		done, err := operate.CancelGroup(t.Context(), api, "one", operate.Cancellation{By: "ann"})
		if err != nil || len(done) != 2 || done[0].Key != "content#a" || done[1].Key != "content#c" {
			t.Errorf("got %+v, %v", done, err)
		}
		if g.rig.Row("content#x").Pending == "" {
			t.Error("a document outside the group was cancelled")
		}
		if _, err = operate.CancelGroup(t.Context(), api, "one", operate.Cancellation{By: "ann"}); !errors.Is(err,
			operate.ErrNotFound) {
			t.Errorf("again: %v", err)
		}
	})
}
