package operate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/objects"
	"github.com/lullhq/lull/internal/operate"
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
