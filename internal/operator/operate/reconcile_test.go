package operate_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/sink"
)

// behind makes a document whose row is behind the sink, and one that the sink has lost.
func (g *ground) behind() {
	g.Helper()
	long := time.Now().Add(-time.Hour)
	for _, doc := range []struct {
		id     string
		stored bool
	}{{"a", true}, {"b", false}} {
		old, newer := g.rig.EventOf(put(doc.id, 3)), g.rig.EventOf(put(doc.id, 5))
		g.rig.Write(shardtest.Put(shard.Row{
			Doc: old.Doc, VersionClass: old.Class, Committed: old.Key, CommittedOp: shard.Put,
			LastWrite: shard.MicrosOf(long),
		}))
		if doc.stored {
			g.sink.Write(g.Context(), []sink.Op{{
				Doc: old.Doc, Kind: shard.Put, Fence: shard.Fence(long.UnixMicro()) + 1, Key: newer.Key, Version: "5",
				Document: []byte(`{"title":"secret"}`),
			}})
		}
	}
}

func TestReconcileNamesEachDocumentThatDiffersAndRaisesRows(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.behind()
		for _, dry := range []bool{true, false} {
			var lines []operate.ReconcileLine
			res, err := api.Reconcile(t.Context(), operate.ReconcileOrder{
				Collection: "content", DryRun: dry, By: "me",
				Found: func(l operate.ReconcileLine) { lines = append(lines, l) },
			})
			if err != nil || len(lines) != 2 || lines[0].Key != "content#a" || lines[0].Outcome != "raised" ||
				lines[0].Difference != "behind" || lines[0].Version != "5" || lines[1].Outcome != "resync" ||
				lines[1].InSink != "" {
				t.Fatalf("got %+v, %v", lines, err)
			}
			want := map[bool]int{true: 2, false: 1}[dry]
			if res.Rows != 2 || res.Documents != 1 || res.Remaining != want || res.Outcomes["raised"] != 1 ||
				res.DryRun != dry {
				t.Errorf("got %+v, want %d to remain", res, want)
			}
			if raised := g.rig.Row("content#a").Committed == g.rig.EventOf(put("a", 5)).Key; raised == dry {
				t.Errorf("dry run %t, raised %t", dry, raised)
			}
		}
		notes := g.rig.Notes.Of(journal.Raised)
		if len(notes) != 1 || !strings.HasPrefix(notes[0].Detail, "by me: ") ||
			strings.Contains(notes[0].Detail, "secret") {
			t.Errorf("the audit says %+v", notes)
		}
	})
}

func TestReconcileRefusesWhatItCannotCompare(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		type order = operate.ReconcileOrder
		for name, tt := range map[string]struct {
			o    order
			want string
			is   error
		}{
			"no collection":               {order{By: "me"}, "collection: ", operate.ErrInput},
			"a name that is not one":      {order{Collection: "a#b", By: "me"}, "collection: ", operate.ErrInput},
			"nobody who asks":             {order{Collection: "content"}, "by: name who asks", operate.ErrInput},
			"a rate below zero":           {order{Collection: "content", By: "me", Rate: -1}, "rate -1", operate.ErrInput},
			"a sink that cannot be read":  {order{Collection: "far", By: "me"}, "sink remote of", operate.ErrInput},
			"a collection nobody knows":   {order{Collection: "contents", By: "me"}, "no such collection", operate.ErrNotFound},
			"a rate that is never enough": {order{Collection: "content", By: "me", Rate: math.MaxFloat64}, "", nil},
		} {
			_, err := api.Reconcile(t.Context(), tt.o)
			if tt.want == "" && err == nil {
				continue
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.is) {
				t.Errorf("%s: got %v, want %q", name, err, tt.want)
			}
		}
	})
}
