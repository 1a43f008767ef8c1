package operate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// forgetGroup forgets a group and returns what was told, and what remains.
func (g *ground) forgetGroup(api operate.API, group string, p operate.Patience) (told string, remain int,
	left operate.GroupPage, err error,
) {
	p.Clock = clock.System{}
	remain, left, err = operate.ForgetGroup(g.Context(), api, group, operate.ForgetOrder{By: "ann"}, p,
		func(key shard.DocID, f operate.Forgotten, err error) error {
			told += fmt.Sprintf(" %s:%d", key.ID(), f.Remaining)
			if err != nil {
				told += "!"
			}
			return nil
		})
	return told, remain, left, err
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
		told, remain, left, err := g.forgetGroup(api, "one", operate.Patience{})
		if told != " a:0 c*:0! d:0 b:1" || remain != 3 || err != nil {
			t.Errorf("told%s, %d remain, %v", told, remain, err)
		}
		if len(left.Letters) != 1 || left.Letters[0] != unknown {
			t.Errorf("left %+v", left)
		}
		for id, want := range map[string]bool{"a": true, "b": true, "d": true, "x": false} {
			if got := g.rig.Row(usecasetest.Doc(id)).Committed.IsFinal(); got != want {
				t.Errorf("%s is forgotten: %t, want %t", id, got, want)
			}
		}
		if _, _, _, err := g.forgetGroup(api, "two words", operate.Patience{}); !errors.Is(err, operate.ErrInput) {
			t.Errorf("no group: %v", err)
		}
	})
}

// The dead letter of b has an event of a, and goes with b. So nothing of a remains.
func TestDocumentsOfAGroupThatShareAMessageGoTogether(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.member("one", "a", "b")
		g.park(queue.Message{ID: "1", Body: rabbit(put("a", 1), put("b", 1))}, put("b", 1), 1)
		told, remain, _, err := g.forgetGroup(api, "one", operate.Patience{})
		if told != " b:0 a:0" || remain != 0 || err != nil {
			t.Errorf("told%s, %d remain, %v", told, remain, err)
		}
	})
}

// A message that cannot be read remains, unless it went with its document.
func TestWhatCannotBeReadRemainsOfAGroup(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.Config.Debounce.MinInterval = 0
		g.breaks(map[string]queue.Attribute{queue.AttrGroup: queue.Text("one")})
		g.member("one", "b")
		_, remain, left, err := g.forgetGroup(api, "one", operate.Patience{})
		if said := strings.Join(left.Unread.Remains, "\n"); err != nil || left.Unread.Found != 3 || remain < 3 ||
			strings.Contains(said, "content#b") {
			t.Errorf("%d remain: %s, %v", remain, said, err)
		}
	})
}

// answers are what a document is answered with, one after the other; the last one for good.
type answers struct {
	operate.API
	began time.Time
	asked []time.Duration
	waits []int
}

func (a *answers) Forget(context.Context, operate.ForgetOrder) (f operate.Forgotten, err error) {
	n := a.waits[min(len(a.asked), len(a.waits)-1)]
	a.asked = append(a.asked, time.Since(a.began))
	f.Steps = []operate.ForgetStep{{Place: "flights", Found: n + 1, Removed: 1}}
	f.Remaining, f.Waits = n, n
	return f, nil
}

func TestForgetAsksAgainForWhatGoesByItself(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		waits         []int
		most          time.Duration
		asked, waited string
		removed       int
	}{
		"nothing waits":         {[]int{0}, time.Minute, "[0s]", "[]", 1},
		"it goes":               {[]int{2, 1, 0}, time.Minute, "[0s 1s 3s]", "[2 1]", 3},
		"no patience":           {[]int{1}, 0, "[0s]", "[]", 1},
		"it outlasts patience":  {[]int{1}, 5 * time.Second, "[0s 1s 3s 5s]", "[1 1 1]", 4},
		"the waits have a most": {[]int{1}, 40 * time.Second, "[0s 1s 3s 7s 15s 30s 40s]", "[1 1 1 1 1 1]", 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api, waited := &answers{began: time.Now(), waits: tt.waits}, []int{}
				done, err := operate.ForgetAndWait(t.Context(), api, operate.ForgetOrder{}, operate.Patience{
					Clock: clock.System{}, Most: tt.most, Waiting: func(n int) { waited = append(waited, n) },
				})
				if got := fmt.Sprint(api.asked); err != nil || got != tt.asked || fmt.Sprint(waited) != tt.waited {
					t.Errorf("asked at %s, waited for %v, %v; want %s, %s", got, waited, err, tt.asked, tt.waited)
				}
				if got := done.Steps[0].Removed; got != tt.removed {
					t.Errorf("removed %d in all, want %d", got, tt.removed)
				}
			})
		})
	}
}

func TestForgetStopsWaitingWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	api := &answers{began: time.Now(), waits: []int{1}}
	_, err := operate.ForgetAndWait(ctx, api, operate.ForgetOrder{}, operate.Patience{
		Clock: clock.System{}, Most: time.Hour, Waiting: func(int) { cancel() },
	})
	if !errors.Is(err, context.Canceled) || len(api.asked) != 1 {
		t.Errorf("asked %d times, %v", len(api.asked), err)
	}
}

func (a *answers) InGroup(context.Context, operate.GroupQuery) (operate.GroupPage, error) {
	return operate.GroupPage{Keys: []shard.DocID{"content#a"}}, nil
}

// What outlasts patience is asked for a second time, and not waited for.
func TestADocumentOfAGroupIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &answers{began: time.Now(), waits: []int{1}}
		remain, _, err := operate.ForgetGroup(t.Context(), api, "one", operate.ForgetOrder{}, operate.Patience{
			Clock: clock.System{}, Most: time.Second,
		}, func(_ shard.DocID, f operate.Forgotten, err error) error {
			if f.Steps[0].Removed != 3 || f.Remaining != 1 {
				t.Errorf("told %+v, %v", f, err)
			}
			return nil
		})
		if got := fmt.Sprint(api.asked); remain != 1 || err != nil || got != "[0s 1s 1s]" {
			t.Errorf("asked at %s, %d remain, %v", got, remain, err)
		}
	})
}
