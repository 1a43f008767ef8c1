// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// parkMany parks dead letters without rows; every tenth is a refusal, every hundredth undecodable.
func (g *ground) parkMany(n int) {
	g.Helper()
	began := time.Now().Add(-time.Hour)
	for i := range n {
		reason, doc := deadletter.RejectedBySink, shard.DocID(fmt.Sprintf("content#%05d", i))
		switch {
		case i%100 == 0:
			reason, doc = deadletter.Undecodable, ""
		case i%10 == 0:
			reason = deadletter.Refusals
		}
		l := deadletter.New(queue.Message{ID: fmt.Sprint("m-", i), Body: fmt.Sprint("body ", i), Sent: began}, reason,
			"detail", doc, "", 0, began.Add(time.Duration(i)*time.Microsecond))
		l.Sink, l.Lane = "search", "live"
		usecasetest.Must(g.rig.Letters.Park(g.Context(), l))(g)
	}
}

func TestDeadLettersComePageByPage(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		if p, err := api.LetterPage(t.Context(), operate.LetterQuery{}); err != nil || p.Letters == nil ||
			len(p.Letters) != 0 ||
			p.Next != "" {
			t.Errorf("none: %+v, error %v; want an empty list", p, err)
		}
		all := 1_000
		if !g.remote {
			all = 10_000 // as a bad day leaves them
		}
		g.parkMany(all)
		for name, tt := range map[string]struct {
			filter operate.LetterFilter
			limit  int
			want   int
		}{
			"everything":        {operate.LetterFilter{}, 1000, all},
			"a reason":          {operate.LetterFilter{Reason: deadletter.Refusals}, 300, all/10 - all/100},
			"one key":           {operate.LetterFilter{Key: "content#00999"}, 10, 1},
			"another state":     {operate.LetterFilter{State: deadletter.Redriven}, 900, 0},
			"the default limit": {operate.LetterFilter{Reason: deadletter.Undecodable}, 0, all / 100},
		} {
			seen, pages := map[string]bool{}, 0
			for q := (operate.LetterQuery{LetterFilter: tt.filter, Limit: tt.limit}); ; pages++ {
				p, err := api.LetterPage(t.Context(), q)
				if err != nil || pages > all {
					t.Fatalf("%s: page %d: %v", name, pages, err)
				}
				if len(p.Letters) > max(tt.limit, 100) {
					t.Errorf("%s: a page of %d, want at most %d", name, len(p.Letters), tt.limit)
				}
				for _, l := range p.Letters {
					if seen[l.ID] || l.Body != "" {
						t.Fatalf("%s: %+v is there twice, or with its body", name, l)
					}
					seen[l.ID] = true
				}
				if q.Cursor = p.Next; p.Next == "" {
					break
				}
			}
			if len(seen) != tt.want {
				t.Errorf("%s: got %d, want %d", name, len(seen), tt.want)
			}
		}
		for name, q := range map[string]operate.LetterQuery{
			"limit": {Limit: 1001}, "negative limit": {Limit: -1},
			"reason": {LetterFilter: operate.LetterFilter{Reason: "x"}},
		} {
			if _, err := api.LetterPage(t.Context(), q); !errors.Is(err, operate.ErrInput) {
				t.Errorf("a bad %s: %v, want ErrInput", name, err)
			}
		}
	})
}

func TestDeadLettersAreCountedByReasonUpToABound(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		if c, err := api.LetterGroups(t.Context(), operate.LetterFilter{}); err != nil || c.Groups == nil ||
			len(c.Groups) != 0 ||
			c.Capped {
			t.Errorf("none: %+v, error %v; want no group", c, err)
		}
		g.parkMany(1000)
		redriven := g.die(put("a", 1), deadletter.Cancelled)
		usecasetest.OK(t, g.rig.Letters.MarkRedriven(t.Context(), redriven, time.Now(), false))
		c, err := api.LetterGroups(t.Context(), operate.LetterFilter{})
		if err != nil || len(c.Groups) != 4 || c.Capped {
			t.Fatalf("got %+v, error %v; want four groups", c, err)
		}
		for i, want := range []operate.LetterGroup{
			{Reason: deadletter.RejectedBySink, Parked: 900},
			{Reason: deadletter.Refusals, Parked: 90},
			{Reason: deadletter.Undecodable, Parked: 10},
			{Reason: deadletter.Cancelled, Redriven: 1},
		} {
			got := c.Groups[i]
			if got.Oldest.IsZero() || got.Newest.Before(got.Oldest) {
				t.Errorf("group %+v, want the times of its first and last", got)
			}
			if got.Oldest, got.Newest = want.Oldest, want.Newest; got != want {
				t.Errorf("group %d: got %+v, want %+v", i, got, want)
			}
		}
		if g.remote {
			return
		}
		g.parkMany(10_001)
		if c, err := api.LetterGroups(t.Context(), operate.LetterFilter{}); err != nil || !c.Capped {
			t.Errorf("with 10,002: %+v, error %v; want it to say that there are more", c, err)
		}
	})
}
