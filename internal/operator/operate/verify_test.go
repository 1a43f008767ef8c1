package operate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

func TestAnAuditTellsOfItsPlaceAndOfAllThatTheSinkHolds(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.behind()
		order := operate.ReconcileOrder{Collection: "content", DryRun: true, By: "me", Sink: "search"}
		var lines, seen []string
		var places []reconcile.Place
		order.Audit = &operate.ReconcileAudit{Seen: true}
		order.Found = func(l operate.ReconcileLine) { lines = append(lines, string(l.Key)+" "+l.Difference) }
		order.Seen = func(page []operate.ReconcileCopy) {
			for _, c := range page {
				seen = append(seen, string(c.Key))
			}
		}
		order.Reached = func(p reconcile.Place, r operate.ReconcileResult) {
			if p.Rows && r.Documents != 1 {
				t.Errorf("at %+v: %+v", p, r)
			}
			places = append(places, p)
		}
		want := []string{"content#a behind", "content#b missing"}
		if r, err := api.Reconcile(t.Context(), order); err != nil || r.Remaining != 2 || !slices.Equal(lines, want) ||
			!slices.Equal(seen, []string{"content#a"}) || len(places) != 2 || places[0].After != "a" {
			t.Fatalf("got %v, seen %v, places %v, %+v, %v", lines, seen, places, r, err)
		}
		for name, tt := range map[string]struct {
			audit operate.ReconcileAudit
			want  []string
		}{
			"from its end":    {operate.ReconcileAudit{From: places[1]}, want[1:]},
			"these documents": {operate.ReconcileAudit{Keys: []shard.DocID{"content#a", "content#z"}}, want[:1]},
			"a sample of all": {operate.ReconcileAudit{Sample: 10}, want},
		} {
			lines, order.Audit = nil, &tt.audit
			_, err := api.Reconcile(t.Context(), order)
			if slices.Sort(lines); err != nil || !slices.Equal(lines, tt.want) {
				t.Errorf("%s: got %v, %v", name, lines, err)
			}
		}
		order.Sink = "remote"
		if _, err := api.Reconcile(t.Context(), order); !errors.Is(err, operate.ErrInput) {
			t.Errorf("of another sink: %v", err)
		}
		order.Sink, order.Audit = "", &operate.ReconcileAudit{Sample: -1}
		if _, err := api.Reconcile(t.Context(), order); !errors.Is(err, operate.ErrInput) {
			t.Errorf("a sample of -1: %v", err)
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
