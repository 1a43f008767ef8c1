// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/shard"
)

func TestAnObjectIsShownAndAborted(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		ask := operate.ObjectOrder{Object: "s3://b/a b/c.ndjson"}
		if got, err := api.Object(t.Context(), ask); err != nil || len(got.Sinks) != 0 {
			t.Errorf("nothing was read: %+v, %v", got, err)
		}
		p := objects.Progress{
			Version: "01", Lines: 7, Sent: 5, Faults: 1, First: []objects.Fault{{Line: 3, Offset: 9, Why: "is bad"}},
			At: objects.Position{From: 20, Gzip: &objects.Gzip{Before: []byte("text of a document")}}, Bytes: 90,
		}
		g.rig.Write(shard.Advance(shard.ObjectRow("search", "b", "a b/c.ndjson"), 0, 5, p.String(), 9))
		got, err := api.Object(t.Context(), ask)
		if err != nil || len(got.Sinks) != 1 || got.Sinks[0].Sink != "search" || got.Sinks[0].Lines != 7 ||
			got.Sinks[0].At != (objects.Position{From: 20}) || got.Sinks[0].First[0].Why != "is bad" {
			t.Errorf("got %+v, %v; want its progress without any text", got, err)
		}
		ask.Abort = true
		_, err = api.Object(t.Context(), ask)
		if !errors.Is(err, operate.ErrInput) || !strings.Contains(err.Error(), "by:") {
			t.Errorf("aborted by nobody: %v", err)
		}
		ask.By, ask.Why = "ann", "the wrong file"
		for _, first := range []bool{true, false} {
			got, err = api.Object(t.Context(), ask)
			if err != nil || got.Sinks[0].Aborted != "ann: the wrong file" || got.Sinks[0].Changed != first {
				t.Errorf("aborted: %+v, %v", got, err)
			}
		}
		row := g.rig.Row(shard.ObjectRow("search", "b", "a b/c.ndjson"))
		kept, err := objects.Parse(row.Cursor)
		if next, _ := objects.Decide(kept, "01", 0, row.RanAt, row.RanAt); err != nil || next != objects.WasAborted {
			t.Errorf("the row says %+v, %v", kept, err)
		}
		for _, bad := range []string{"", "b/k", "s3://b", "s3:///k"} {
			if _, err := api.Object(t.Context(), operate.ObjectOrder{Object: bad}); !errors.Is(err, operate.ErrInput) {
				t.Errorf("%q: %v, want bad input", bad, err)
			}
		}
	})
}

func TestASequencerOfAnObjectIsTakenBack(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		forged := objects.Progress{Version: "FFFF", Lines: 7, Done: true}
		row := shard.ObjectRow("search", "b", "k")
		g.rig.Write(shard.Advance(row, 0, 5, forged.String(), 9))
		order := operate.ObjectOrder{Object: "s3://b/k", Reset: true, Why: "forged"}
		_, err := api.Object(t.Context(), order)
		if !errors.Is(err, operate.ErrInput) || !strings.Contains(err.Error(), "by:") {
			t.Errorf("reset by nobody: %v", err)
		}
		order.By, order.Abort = "ann", true
		if _, err := api.Object(t.Context(), order); !errors.Is(err, operate.ErrInput) {
			t.Errorf("reset and aborted: %v", err)
		}
		for order.Abort = false; ; order.By = "eve" {
			got, err := api.Object(t.Context(), order)
			if err != nil || len(got.Sinks) != 1 || got.Sinks[0].Version != "" ||
				!slices.Equal(got.Sinks[0].TakenBack, objects.TakenBack{"FFFF"}) {
				t.Fatalf("reset: %+v, %v", got, err)
			}
			if got.Sinks[0].Changed != (order.By == "ann") {
				t.Errorf("by %s: changed %t", order.By, got.Sinks[0].Changed)
			}
			if order.By == "eve" {
				break
			}
		}
		now := g.rig.Row(row)
		kept, err := objects.Parse(now.Cursor)
		if err != nil || now.ExpiresAt != 9 {
			t.Errorf("the row says %+v, %v", now, err)
		}
		for version, want := range map[string]objects.Next{
			"FFFF": objects.WasReset, "FFFF00": objects.WasReset,
			"01": objects.Begin, "FFFE": objects.Begin, "FFFFFF": objects.Begin,
		} {
			if next, err := objects.Decide(kept, version, 0, now.RanAt, now.RanAt); err != nil || next != want {
				t.Errorf("%s: %d, %v", version, next, err)
			}
		}
	})
}

func TestAPlaceRemembersEachSequencerThatWasTakenBack(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		row := shard.ObjectRow("search", "b", "k")
		order := operate.ObjectOrder{Object: "s3://b/k", Reset: true, By: "ann"}
		// As an earlier build left the row.
		g.rig.Write(shard.Advance(row, 0, 5, `{"schema":1,"version":"F01","takenBack":"F00","done":true}`, 9))
		for n := 1; n <= objects.MaxTakenBack; n++ {
			before := g.rig.Row(row)
			got, err := api.Object(t.Context(), order)
			if full := n == objects.MaxTakenBack; full {
				if err == nil || !strings.Contains(err.Error(), "F00, F01, ") || g.rig.Row(row) != before {
					t.Errorf("a full place: %+v, %v", got, err)
				}
				break
			}
			if err != nil || !got.Sinks[0].Changed {
				t.Fatalf("reset %d: %+v, %v", n, got, err)
			}
			p, err := objects.Parse(g.rig.Row(row).Cursor)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n + 1 {
				if next, err := objects.Decide(p, fmt.Sprintf("F%02X00", i), 0, 0, 0); err != nil || next != objects.WasReset {
					t.Errorf("after %d resets sequencer F%02X is %d, %v", n, i, next, err)
				}
			}
			p.Version = fmt.Sprintf("F%02X", n+1)
			at := g.rig.Row(row).RanAt
			g.rig.Write(shard.Advance(row, at, at+1, p.String(), 9))
		}
	})
}
