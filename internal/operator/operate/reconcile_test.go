// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"errors"
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
			order := operate.ReconcileOrder{Collection: "content", DryRun: dry, By: "me"}
			page, err := api.Reconcile(t.Context(), order)
			lines := page.Lines
			if err != nil || len(lines) != 2 || lines[0].Key != "content#a" || lines[0].Outcome != "raised" ||
				lines[0].Difference != "behind" || lines[0].Version != "5" || lines[1].Outcome != "resync" ||
				lines[1].InSink != "" {
				t.Fatalf("got %+v, %v", lines, err)
			}
			if page.Rows != 2 || page.Documents != 1 || page.Outcomes["raised"] != 1 || page.Next != nil ||
				page.Unknown {
				t.Errorf("got %+v", page)
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
			"no collection":          {order{By: "me"}, "collection: ", operate.ErrInput},
			"a name that is not one": {order{Collection: "a#b", By: "me"}, "collection: ", operate.ErrInput},
			"nobody who asks":        {order{Collection: "content"}, "by: name the operator", operate.ErrInput},
			"a limit below zero":     {order{Collection: "content", By: "me", Limit: -1}, "limit -1", operate.ErrInput},
			"a sample below zero":    {order{Collection: "content", By: "me", Sample: -1}, "sample -1", operate.ErrInput},
			"too many documents": {
				order{Collection: "content", By: "me", Keys: make([]shard.DocID, 1001)}, "keys: 1001", operate.ErrInput,
			},
			"a sink that cannot be read": {order{Collection: "far", By: "me"}, "sink remote of", operate.ErrInput},
		} {
			_, err := api.Reconcile(t.Context(), tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.is) {
				t.Errorf("%s: got %v, want %q", name, err, tt.want)
			}
		}
		page, err := api.Reconcile(t.Context(), order{Collection: "contents", By: "me"})
		if err != nil || !page.Unknown || page.Rows+page.Documents > 0 || page.Next != nil {
			t.Errorf("a collection that no setting names: got %+v, %v", page, err)
		}
	})
}
