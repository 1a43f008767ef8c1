// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// absurd is the body of an event after which every other one of its document is stale.
func absurd(id string) string {
	return `{"type":"doc.changed","subject":"` + id + `","sequence":"` + strings.Repeat("9", 40) + `","data":{}}`
}

func TestResetAcceptsWhatAnAbsurdVersionLeftBehind(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.commit(g.hold("f", absurd("a")), `{}`)
		before := g.rig.Row("content#a")
		for _, doc := range []string{put("a", 99), put("a", 100), put("a", 101)} {
			if e := g.rig.EventOf(doc); shard.Judge(before, e.Key, e.Class, false) != shard.Stale {
				t.Errorf("before: %s is not stale", doc)
			}
		}
		got, err := api.Reset(t.Context(), operate.ResetOrder{Key: "content#a", To: "100", By: "ann"})
		if err != nil || got.To != "100" || got.Version != strings.Repeat("9", 40) || got.Key != "content#a" {
			t.Fatalf("got %+v, error %v", got, err)
		}
		after := g.rig.Row("content#a")
		want := before
		want.Committed, want.TakenBack = after.Committed, shard.KeySetOf(before.Committed)
		if after != want || !after.Committed.IsFloor() {
			t.Errorf("row %+v, want nothing changed but what is committed in %+v", after, before)
		}
		for version, want := range map[int]shard.Judgement{99: shard.Stale, 100: shard.Held, 101: shard.Held} {
			if e := g.rig.EventOf(put("a", version)); shard.Judge(after, e.Key, e.Class, false) != want {
				t.Errorf("after: version %d is not %s", version, want)
			}
		}
		n := g.rig.Notes.All()[len(g.rig.Notes.All())-1]
		if n.Step != journal.Reset || n.Doc != "content#a" || n.Key != before.Committed ||
			!strings.Contains(n.Detail, "by ann") || !strings.Contains(n.Detail, "from 100 on") {
			t.Errorf("noted %+v", n)
		}
		x, err := api.Explain(t.Context(), "content#a")
		if err != nil || x.State != operate.StateReset || !strings.Contains(x.Sentence, "versions from 100 on") {
			t.Errorf("explained as %q, %v", x.Sentence, err)
		}
		// The sink takes the next version: its fence is greater than that of the absurd one.
		g.commit(g.hold("g", put("a", 100)), `{"title":"v100"}`)
		if d, _, err := g.sink.Get(t.Context(), "content#a"); err != nil || d.Version != "100" {
			t.Errorf("the sink holds %+v, %v; want version 100", d, err)
		}
	})
}

func TestResetIsRefused(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.commit(g.hold("f", put("a", 7)), `{}`)
		g.commit(g.hold("p", put("pending", 7)), `{}`)
		g.hold("q", put("pending", 8))
		g.commit(g.hold("l", put("leased", 7)), `{}`)
		e := g.hold("m", put("leased", 8))
		g.rig.Write(shard.Claim(shard.Bid{
			Doc: e.Doc, Key: e.Key, Token: "t", Now: micros(), Until: micros().Add(1e10),
		}))
		g.commit(g.hold("u", put("claimed", 7)), `{}`)
		e = g.hold("v", put("claimed", 8))
		g.rig.Write(shard.Claim(shard.Bid{Doc: e.Doc, Key: e.Key, Token: "t", Now: micros(), Until: micros()}))
		g.rig.Write(shard.Park(e.Doc, e.Key, micros()+2, 1, g.rig.Row(e.Doc)))
		for _, tt := range []struct {
			name  string
			order operate.ResetOrder
			is    error
			says  string
		}{
			{"by nobody", operate.ResetOrder{Key: "content#a", To: "1"}, operate.ErrInput, "by"},
			{"to nothing", operate.ResetOrder{Key: "content#a", By: "ann"}, operate.ErrInput, "version is missing"},
			{"to what is not a version", operate.ResetOrder{Key: "content#a", To: "x", By: "ann"}, operate.ErrInput, `"x"`},
			{"to what is committed", operate.ResetOrder{Key: "content#a", To: "8", By: "ann"}, operate.ErrInput, "not below"},
			{
				"to a later epoch",
				operate.ResetOrder{Key: "content#a", To: "1", Epoch: new(uint32(1)), By: "ann"},
				operate.ErrInput, "of epoch 1 is not below",
			},
			{"of no document", operate.ResetOrder{Key: "content#z", To: "1", By: "ann"}, operate.ErrNotFound, "nothing"},
			{"of a pending one", operate.ResetOrder{Key: "content#pending", To: "1", By: "ann"}, nil, "version 8 is pending"},
			{"of a leased one", operate.ResetOrder{Key: "content#leased", To: "1", By: "ann"}, nil, "the lease runs until"},
			{"of a claimed one", operate.ResetOrder{Key: "content#claimed", To: "1", By: "ann"}, nil, "may be in the sink"},
		} {
			before := g.rig.Row(tt.order.Key)
			_, err := api.Reset(t.Context(), tt.order)
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v, want %v and %q", tt.name, err, tt.is, tt.says)
			}
			if after := g.rig.Row(tt.order.Key); after != before {
				t.Errorf("%s: the row became %+v", tt.name, after)
			}
		}
	})
}

// A row that changes between the look and the write is left alone, and a lost answer is recognised.
func TestResetKnowsItsOwnWriteAndNoOther(t *testing.T) {
	t.Parallel()
	g := setup(t)
	g.commit(g.hold("f", absurd("a")), `{}`)
	order := operate.ResetOrder{Key: "content#a", To: "1", By: "ann"}
	g.Shards = between{g.rig.Shards, func() {
		g.hold("g", strings.Replace(absurd("a"), `"data"`, `"mode":"resync","resyncrun":"01ARZ3NDEKTSV4RRFFQ69G5FAV","data"`, 1))
	}}
	_, err := g.API().Reset(t.Context(), order)
	if err == nil || !strings.Contains(err.Error(), "changed in the meantime") {
		t.Errorf("beside a newer version: %v, want it to be refused", err)
	}
	g.commit(g.hold("h", absurd("b")), `{}`)
	order.Key = "content#b"
	g.Shards = between{g.rig.Shards, func() {
		other := *g.Operator
		other.Shards = g.rig.Shards
		if _, err := other.API().Reset(t.Context(), order); err != nil {
			t.Error(err)
		}
	}}
	if got, err := g.API().Reset(t.Context(), order); err != nil || got.To != "1" {
		t.Errorf("after a lost answer: %+v, %v; want it done", got, err)
	}
}

// What is taken back is remembered in a place of its own, whatever becomes a dead letter later,
// until the operator names that version.
func TestAVersionThatWasTakenBackIsAcceptedAgainByName(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		nines := strings.Repeat("9", 40)
		e := g.rig.EventOf(absurd("a"))
		g.commit(g.hold("f", absurd("a")), `{}`)
		reset := func(to string) operate.Resetted {
			t.Helper()
			got, err := api.Reset(t.Context(), operate.ResetOrder{Key: "content#a", To: to, By: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := reset("5"); got.GivenBack {
			t.Errorf("got %+v", got)
		}
		g.commit(g.hold("g", put("a", 6)), `{}`)
		dies := g.rig.EventOf(put("a", 7))
		g.rig.Write(shard.Park(dies.Doc, dies.Key, micros()+2, 1, g.rig.Row(dies.Doc)))
		if j := shard.Judge(g.rig.Row(e.Doc), e.Key, e.Class, false); j != shard.TakenBack {
			t.Errorf("after another dead letter it is %s", j)
		}
		if got := reset(nines); !got.GivenBack || got.To != nines {
			t.Errorf("got %+v, want it given back", got)
		}
		if r := g.rig.Row(e.Doc); r.TakenBack != "" || r.Committed != g.rig.EventOf(put("a", 6)).Key {
			t.Errorf("row %+v", r)
		}
	})
}

func TestARowRemembersABoundedNumberOfVersions(t *testing.T) {
	t.Parallel()
	g := setup(t)
	order := operate.ResetOrder{Key: "content#a", To: "5", By: "ann"}
	for v := 100 + shard.MaxTakenBack; v > 99; v-- {
		g.commit(g.hold("f", put("a", v)), `{}`)
		before := g.rig.Row("content#a")
		_, err := g.API().Reset(t.Context(), order)
		if full := v == 100; full != (err != nil) || full && !strings.Contains(err.Error(), "--to (101, 102, 103,") {
			t.Fatalf("version %d: %v", v, err)
		}
		if err != nil && g.rig.Row("content#a") != before {
			t.Error("the row changed")
		}
	}
}

// v900, reset to 5, v2000, reset to 950, v960, reset to 5: v900 does not come again. Then the row
// is full, and a higher reset says what it forgets.
func TestAHigherResetForgetsNothingUntilTheRowIsFull(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		reset := func(version int, to string) operate.Resetted {
			t.Helper()
			g.commit(g.hold("f", put("a", version)), `{}`)
			got, err := api.Reset(t.Context(), operate.ResetOrder{Key: "content#a", To: to, By: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		judged := func(version int) shard.Judgement {
			e := g.rig.EventOf(put("a", version))
			return shard.Judge(g.rig.Row("content#a"), e.Key, e.Class, false)
		}
		reset(900, "5")
		reset(2000, "950")
		reset(960, "5")
		for v := 3; v < shard.MaxTakenBack; v++ {
			if got := reset(1000+v, "5"); got.Forgotten != nil {
				t.Errorf("version %d: forgot %q", v, got.Forgotten)
			}
		}
		if j := judged(900); j != shard.TakenBack {
			t.Errorf("version 900 is %s", j)
		}
		if got := reset(3000, "970"); !slices.Equal(got.Forgotten, []string{"900"}) {
			t.Errorf("forgot %q, want version 900 alone", got.Forgotten)
		}
		if j := judged(900); j != shard.Stale {
			t.Errorf("a forgotten version below the floor is %s", j)
		}
		n := g.rig.Notes.All()[len(g.rig.Notes.All())-1]
		if !strings.HasSuffix(n.Detail, "the row forgot version 900") {
			t.Errorf("noted %q", n.Detail)
		}
		reset(3001, "990")
		if got := len(g.rig.Row("content#a").TakenBack.Keys()); got != shard.MaxTakenBack {
			t.Errorf("the row remembers %d versions", got)
		}
	})
}

// between does something before the first write.
type between struct {
	shard.Store

	first func()
}

func (b between) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	b.first()
	return b.Store.Write(ctx, w)
}

func TestExplainSaysThatACommittedVersionIsFarAhead(t *testing.T) {
	t.Parallel()
	g := setup(t)
	s := g.Config.Sources["native"]
	s.MaxVersion = "6"
	g.Config.Sources["native"] = s
	g.commit(g.hold("f", put("a", 7)), `{}`)
	g.commit(g.hold("g", put("b", 6)), `{}`)
	for doc, far := range map[shard.DocID]bool{"content#a": true, "content#b": false} {
		x, err := g.API().Explain(t.Context(), doc)
		if err != nil || (x.State == operate.StateFarAhead) != far {
			t.Errorf("%s: explained as %q, %v", doc, x.Sentence, err)
		}
	}
}

// A counter has 20 digits at most. The positions of two sources have more, and are not absurd.
func TestLongVersionsOfASourceAreNotFarAhead(t *testing.T) {
	t.Parallel()
	for kind, far := range map[string]bool{"native": true, "debezium": false, "dynamodb-stream": false} {
		g := setup(t)
		s := g.Config.Sources["native"]
		s.Kind, s.MaxVersion = kind, strings.Repeat("9", 40)
		g.Config.Sources["native"] = s
		g.commit(g.hold("f", strings.Replace(put("a", 7), `"7"`, `"`+strings.Repeat("7", 21)+`"`, 1)), `{}`)
		x, err := g.API().Explain(t.Context(), "content#a")
		if err != nil || (x.State == operate.StateFarAhead) != far {
			t.Errorf("a version of 21 digits, source %s: explained as %s, %q, %v", kind, x.State, x.Sentence, err)
		}
	}
}
