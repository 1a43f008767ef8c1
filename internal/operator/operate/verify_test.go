// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

func TestAPageOfAComparisonSaysWhatItSawAndWhereItEnded(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.behind()
		order := operate.ReconcileOrder{Collection: "content", DryRun: true, By: "me", Sink: "search", Seen: true, Limit: 1}
		var lines, seen []string
		ask := func(o operate.ReconcileOrder) operate.ReconcilePage {
			t.Helper()
			page, err := api.Reconcile(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range page.Lines {
				lines = append(lines, string(l.Key)+" "+l.Difference)
			}
			for _, c := range page.Seen {
				seen = append(seen, string(c.Key))
			}
			return page
		}
		page := ask(order)
		if page.Documents != 1 || page.Rows != 0 || page.Next == nil || page.Next.After != "a" || page.Next.Rows {
			t.Fatalf("the first page: %+v", page)
		}
		for page.Next != nil {
			order.From = *page.Next
			page = ask(order)
		}
		want := []string{"content#a behind", "content#b missing"}
		if !slices.Equal(lines, want) || !slices.Equal(seen, []string{"content#a"}) || !order.From.Rows {
			t.Fatalf("got %v, seen %v, the last page began at %+v", lines, seen, order.From)
		}
		for name, tt := range map[string]struct {
			change func(*operate.ReconcileOrder)
			want   []string
		}{
			"these documents": {
				func(o *operate.ReconcileOrder) { o.Keys = []shard.DocID{"content#a", "content#z"} }, want[:1],
			},
			"a sample of all": {func(o *operate.ReconcileOrder) { o.Sample = 10 }, want},
		} {
			o := operate.ReconcileOrder{Collection: "content", DryRun: true, By: "me"}
			tt.change(&o)
			lines, seen = nil, nil
			ask(o)
			if slices.Sort(lines); !slices.Equal(lines, tt.want) || len(seen) > 0 {
				t.Errorf("%s: got %v, seen %v", name, lines, seen)
			}
		}
		order.Sink = "remote"
		if _, err := api.Reconcile(t.Context(), order); !errors.Is(err, operate.ErrInput) {
			t.Errorf("of another sink: %v", err)
		}
	})
}

func TestCheckComparesAPageOfAnExport(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.behind()
		order := operate.CheckOrder{Collection: "content", Messages: outgoing(put("a", 4), put("b", 5), `{`)}
		got, err := api.Check(t.Context(), order)
		told := fmt.Sprint(got.Events)
		if len(got.Events) == 3 {
			got.Events[2].Why = ""
		}
		want := []operate.CheckedEvent{
			{Message: 0, Key: "content#a", Version: "4", State: "newer"},
			{Message: 1, Key: "content#b", Version: "5", State: "missing", Drift: true},
			{Message: 2, State: "invalid"},
		}
		if err != nil || !slices.Equal(got.Events, want) {
			t.Errorf("got %s, %v", told, err)
		}
		order.Names = true
		got, err = api.Check(t.Context(), order)
		if err != nil || len(got.Events) != 3 || got.Events[1].Key != "content#b" || got.Events[1].State != "" ||
			got.Events[2].State != "invalid" {
			t.Errorf("names: got %+v, %v", got, err)
		}
		order.Names = false
		g.rig.Write(shardtest.Put(shard.Row{Doc: "content#a", Committed: g.rig.EventOf(put("a", 5)).Key, CommittedOp: shard.Put}))
		for _, enriched := range []bool{false, true} { // what an enricher added is not a change
			of := g.Config.Collections["content"]
			if enriched {
				of.Enrich = &config.Enrich{}
			}
			g.Config.Collections["content"] = of
			order := operate.CheckOrder{Collection: "content", Messages: outgoing(put("a", 5))}
			got, err := api.Check(t.Context(), order)
			if err != nil || len(got.Events) != 1 || got.Events[0].Drift == enriched {
				t.Errorf("enriched %t: %+v, %v", enriched, got, err)
			}
		}
		for _, c := range []shard.Collection{"Con#tent", "far"} { // not a name, and not to be read from here
			order.Collection = c
			if _, err := api.Check(t.Context(), order); !errors.Is(err, operate.ErrInput) {
				t.Errorf("%s: %v", c, err)
			}
		}
	})
}
