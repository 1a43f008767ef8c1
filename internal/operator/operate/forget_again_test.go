// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// forgets runs the job as the command line does.
func forgets(ctx context.Context, api operate.API, f operate.Forgetting) (operate.Forgotten, error) {
	f.Clock = cmp.Or[clock.Clock](f.Clock, clock.System{})
	return f.Forget(ctx, job.Runner{Store: api.JobStore(), Clock: f.Clock, By: f.By}, api)
}

// forgetGroup forgets the documents of a group. It returns the result, and the documents that the
// group still has.
func (g *ground) forgetGroup(api operate.API, group string) (operate.Forgotten, operate.GroupPage) {
	g.Helper()
	all := usecasetest.Must(operate.Group(g.Context(), api, group))(g)
	f := usecasetest.Must(forgets(g.Context(), api, operate.Forgetting{Group: group, Keys: all.Keys, By: "ann"}))(g)
	return f, usecasetest.Must(api.InGroup(g.Context(), operate.GroupQuery{Group: group}))(g)
}

// member commits a document of a group.
func (g *ground) member(group string, ids ...string) {
	g.Helper()
	for _, id := range ids {
		e := g.rig.EventOf(put(id, 1))
		g.rig.Write(shard.Admit(shard.Admission{
			Doc: e.Doc, Key: e.Key, Class: e.Class, Flight: "f", Group: group, Now: micros(),
		}))
		g.commit(e, `{}`)
	}
}

// If something remains of one document, and lull refuses another one, the others are still
// forgotten.
func TestEveryDocumentOfAGroupIsForgotten(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		of := map[string]queue.Attribute{queue.AttrGroup: queue.Text("one")}
		g.member("one", "a", "b", "d")
		g.member("two", "x")
		g.park(queue.Message{ID: "1", Body: rabbit(put("b", 1), put("x", 1))}, put("x", 1), 1)
		g.park(queue.Message{ID: "2", Body: put("c*", 1), Attributes: of}, put("c*", 1), 0)
		unknown := g.park(queue.Message{ID: "3", Body: "{", Attributes: of}, "", 0)
		f, left := g.forgetGroup(api, "one")
		said := remains(f)
		if f.Remaining != 2 || !strings.Contains(said, "c*") || !strings.Contains(said, "content#x") {
			t.Errorf("got %s, %s", places(f), said)
		}
		if len(left.Letters) != 1 || left.Letters[0] != unknown {
			t.Errorf("left %+v", left)
		}
		for id, want := range map[string]bool{"a": true, "b": true, "d": true, "x": false} {
			if got := g.rig.Row(usecasetest.Doc(id)).Committed.IsFinal(); got != want {
				t.Errorf("%s is forgotten: %t, want %t", id, got, want)
			}
		}
	})
}

// The dead letter of b has an event of a, and goes with b. So nothing of a remains.
func TestDocumentsOfAGroupThatShareAMessageGoTogether(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.member("one", "a", "b")
		g.park(queue.Message{ID: "1", Body: rabbit(put("a", 1), put("b", 1))}, put("b", 1), 1)
		if f, _ := g.forgetGroup(api, "one"); f.Remaining != 0 || !strings.Contains(places(f), "tombstone 2/2") ||
			!strings.HasSuffix(places(f), ", dead letters 1/1") {
			t.Errorf("got %s", places(f))
		}
	})
}

// A message that cannot be read remains, unless it went with its document.
func TestWhatCannotBeReadRemainsOfAGroup(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.breaks(map[string]queue.Attribute{queue.AttrGroup: queue.Text("one")})
		g.member("one", "b")
		f, left := g.forgetGroup(api, "one")
		if said := strings.Join(left.Unread.Remains, "\n"); left.Unread.Found != 3 || strings.Contains(said, "content#b") {
			t.Errorf("got %s, and %s", places(f), said)
		}
	})
}

// answers are what the flights of a document are answered with, one after the other; the last one
// for good.
type answers struct {
	began time.Time
	asked []time.Duration
	waits []int
}

func (a *answers) Forget(_ context.Context, o operate.ForgetOrder) (s operate.ForgetStep, err error) {
	n := a.waits[min(len(a.asked), len(a.waits)-1)]
	a.asked = append(a.asked, time.Since(a.began))
	s.Counts = map[string]int{
		"tombstone found": 1, "tombstone removed": 1, "archive found": 1, "archive removed": 1, "flights found": n, "waiting": n,
	}
	return s, nil
}

func TestForgetAsksAgainForWhatGoesByItself(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		waits   []int
		most    time.Duration
		asked   string
		remain  int
		removed int
	}{
		"nothing waits":         {[]int{0}, time.Minute, "[0s]", 0, 1},
		"it goes":               {[]int{2, 1, 0}, time.Minute, "[0s 1s 3s]", 0, 3},
		"no patience":           {[]int{1}, 0, "[0s]", 1, 1},
		"it outlasts patience":  {[]int{1}, 5 * time.Second, "[0s 1s 3s 5s]", 1, 4},
		"the waits have a most": {[]int{1}, 40 * time.Second, "[0s 1s 3s 7s 15s 30s 40s]", 1, 7},
	} {
		for group, keys := range map[string][]shard.DocID{"": nil, "one": {"content#a"}} {
			t.Run(name+group, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					api := &answers{began: time.Now(), waits: tt.waits}
					f := operate.Forgetting{Key: "content#a", Group: group, Keys: keys, By: "ann", Patience: tt.most}
					if group != "" {
						f.Key = ""
					}
					done, err := forgets(t.Context(), operatetest.API(setup(t).API(), api), f)
					want := fmt.Sprintf("tombstone 1/1, flights 0/%d, scheduled events 0/0, dead letters 0/0, archive %d/%d", tt.remain,
						tt.removed, tt.removed)
					if got := fmt.Sprint(api.asked); err != nil || got != tt.asked || places(done) != want ||
						done.Waits != tt.remain {
						t.Errorf("asked at %s, %s, %v; want %s, %s", got, places(done), err, tt.asked, want)
					}
				})
			})
		}
	}
}

func TestForgetStopsWaitingWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		api := &answers{began: time.Now(), waits: []int{1}}
		_, err := forgets(ctx, operatetest.API(setup(t).API(), api), operate.Forgetting{
			Key: "content#a", By: "ann", Patience: time.Hour,
		})
		if !errors.Is(err, context.DeadlineExceeded) || len(api.asked) != 1 {
			t.Errorf("asked %d times, %v", len(api.asked), err)
		}
	})
}

// stopAfter makes api interrupt a job after some steps.
func stopAfter(api operate.API, steps int, stop func()) operate.API {
	forget := api.Forget
	api.Forget = func(ctx context.Context, o operate.ForgetOrder) (operate.ForgetStep, error) {
		step, err := forget(ctx, o)
		if steps--; steps == 0 {
			stop()
		}
		return step, err
	}
	return api
}

// The job is interrupted after each of its steps, and another machine continues it. It counts each
// thing once, and its row names nobody.
func TestAForgetContinuesOnAnotherMachine(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.everywhere("alice")
		usecasetest.OK(t, g.flights.Delete(t.Context(), "f-alice"))
		g.park(message(rabbit(put("alice", 1), put("bob", 1))), put("bob", 1), 1)
		f := operate.Forgetting{Key: "content#alice", By: "ann"}
		for continued := 0; ; continued++ {
			ctx, stop := context.WithCancel(t.Context())
			done, err := forgets(ctx, stopAfter(api, 1, stop), f)
			stop()
			listed := usecasetest.Must(api.Jobs(t.Context()))(t)
			text := string(usecasetest.Must(json.Marshal(listed))(t))
			text = strings.ReplaceAll(text, "s-alice", "") // elsewhere the id of a scheduled event is a hash
			if len(listed) != 1 || listed[0].ID != "forget" || strings.Contains(text, "alice") || strings.Contains(text, "bob") {
				t.Fatalf("listed %s, want one job that names nobody", text)
			}
			if err != nil {
				if !errors.Is(err, context.Canceled) || listed[0].Phase != job.Stopped || continued > 20 {
					t.Fatalf("stopped %d times: %v, %s", continued, err, text)
				}
				continue
			}
			const want = "tombstone 1/1, sink search 1/1, flights 0/0, scheduled events 1/1, dead letters 1/1, " +
				"messages of other dead letters 0/1"
			if places(done) != want || done.Remaining != 1 || continued < 5 ||
				!strings.Contains(remains(done), "ask again") {
				t.Errorf("continued %d times: %s, %s", continued, places(done), remains(done))
			}
			return
		}
	})
}

// Another document does not need what a stopped job left: its job begins anew.
func TestAForgetOfAnotherDocumentBeginsAnew(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.member("", "a", "b")
		ctx, stop := context.WithCancel(t.Context())
		_, err := forgets(ctx, stopAfter(api, 2, stop), operate.Forgetting{Key: "content#a", By: "ann"})
		if err == nil {
			t.Fatal("it was not interrupted")
		}
		for _, key := range []shard.DocID{"content#b", "content#a"} {
			done, err := forgets(t.Context(), api, operate.Forgetting{Key: key, By: "ann"})
			if err != nil || done.Remaining != 0 || !strings.HasPrefix(places(done), "tombstone 1/1") {
				t.Errorf("%s: %s, %v", key, places(done), err)
			}
		}
	})
}

// A key that nothing knows does not stay unknown.
func TestADocumentThatWasUnknownIsForgottenLater(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		f := operate.Forgetting{Key: "content#a", By: "ann"}
		if _, err := forgets(t.Context(), api, f); !errors.Is(err, operate.ErrNotFound) {
			t.Fatalf("got %v", err)
		}
		g.park(message(put("a", 1)), put("a", 1), 0)
		done, err := forgets(t.Context(), api, f)
		if err != nil || places(done) != "tombstone 1/1, flights 0/0, scheduled events 0/0, dead letters 1/1" ||
			!g.rig.Row("content#a").Committed.IsFinal() {
			t.Errorf("got %s, %v", places(done), err)
		}
	})
}

// A document leaves its group while the job that forgets the group is stopped.
func TestADocumentThatLeftItsGroupRemains(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.member("one", "a", "b")
		keys := []shard.DocID{"content#a", "content#b"}
		ctx, stop := context.WithCancel(t.Context())
		_, err := forgets(ctx, stopAfter(api, 3, stop), operate.Forgetting{Group: "one", Keys: keys, By: "ann"})
		if err == nil {
			t.Fatal("it was not interrupted")
		}
		remain := 0
		for _, key := range keys { // which of them was begun, a hash says
			f := operate.Forgetting{Group: "one", Keys: []shard.DocID{key}, By: "ann"}
			remain += usecasetest.Must(forgets(t.Context(), api, f))(t).Remaining
		}
		if remain != 1 {
			t.Errorf("%d remain, want the one that is not listed", remain)
		}
	})
}

// The error of a step may name a document. The row of the job does not have it.
func TestTheRowOfAForgetHasNoErrors(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		f := operate.Forgetting{Key: "content#a*", By: "ann"}
		_, err := forgets(t.Context(), api, f)
		if !errors.Is(err, operate.ErrInput) || !strings.Contains(err.Error(), "a*") {
			t.Errorf("got %v", err)
		}
		all := usecasetest.Must(api.Jobs(t.Context()))(t)
		if len(all) != 1 || all[0].Phase != job.Failed || all[0].Error == "" || strings.Contains(all[0].Error, "a*") {
			t.Errorf("listed %+v", all)
		}
	})
}
