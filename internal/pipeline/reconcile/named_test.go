// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func dry(o *reconcile.Order) { o.DryRun = true }

// stranger writes a document without a mark into the sink, as another program would.
func (b *bench) stranger(id string) {
	b.Helper()
	out := b.sink.Write(b.Context(), []sink.Op{{
		Doc: usecasetest.Doc(id), Kind: shard.Put, Fence: shard.Fence(usecasetest.Now()),
		Document: []byte(`{"title":"by hand"}`),
	}})
	if out[0].Kind != sink.Applied {
		b.Fatalf("write: %+v", out)
	}
}

func TestAComparisonNamesWhatLullDidNotWriteAndWhatIsInMotion(t *testing.T) {
	play(t, func(b *bench) {
		b.drifted()
		b.stranger("by-hand")
		b.row("over", 5, shard.Delete)
		b.stranger("over")
		b.row("instead", 5, shard.Put)
		b.stranger("instead")
		b.stranger("coming")
		b.Admit(b.EventOf(usecasetest.Put("coming", 1)))
		r, err := b.run(dry)
		want := append(slices.Clone(everyKind),
			"by-hand stranger left", "coming waiting in_motion", "instead other_class resync", "over stranger left",
			"waiting waiting in_motion", "writing busy in_motion")
		slices.Sort(want)
		if got := b.linesAsText(func(reconcile.Line) bool { return true }); err != nil || !slices.Equal(got, want) {
			b.Errorf("got\n%s\nwant\n%s (%v)", strings.Join(got, "\n"), strings.Join(want, "\n"), err)
		}
		if r.Waiting != 3 || r.Documents != 11 || len(b.seen) != 11 {
			b.Errorf("got report %+v, and %d copies seen", r, len(b.seen))
		}
	})
}

// many makes n documents. Every third document is missing in the sink, and every fifth row is
// behind the sink.
func (b *bench) many(n int) {
	for i := range n {
		id := fmt.Sprintf("d%03d", i)
		b.row(id, 3, shard.Put)
		switch {
		case i%5 == 0:
			b.stored(id, 4, 20*time.Minute)
		case i%3 != 0:
			b.stored(id, 3, 20*time.Minute)
		}
	}
}

// A comparison can stop after each page. The next page continues, and together the pages leave
// nothing out.
func TestAComparisonContinuesWhereItsPageEnded(t *testing.T) {
	play(t, func(b *bench) {
		b.many(450)
		usecasetest.Must(b.run(dry))(b)
		want := b.reported()
		if len(want) != 90+120 {
			b.Fatalf("%d differences", len(want))
		}
		for _, limit := range []int{1, 7, 100, 449} {
			r, err := b.run(dry, func(o *reconcile.Order) { o.Limit = limit })
			got := b.reported()
			if err != nil || !slices.Equal(got, want) || r.Rows != 450 || len(b.places) < 450/limit {
				b.Errorf("limit %d: got %d differences in %d pages, report %+v, error %v", limit, len(got), len(b.places), r, err)
			}
		}
	})
}

// If a call fails in the middle of a page, the answer still says what the page has repaired.
func TestAPageThatFailsSaysWhatItRepaired(t *testing.T) {
	play(t, func(b *bench) {
		b.many(450)
		reads := 0
		b.inject = usecasetest.Decide(func(op fault.Op) fault.Verdict {
			if op.Call == "Read" {
				if reads++; reads > 4 {
					return fault.FailBefore
				}
			}
			return fault.OK
		})
		p, err := b.service("reconcile-").Compare(b.Context(), reconcile.Order{Collection: collection})
		if err != nil || p.Next == nil || p.Outcomes[reconcile.Raised] == 0 {
			b.Fatalf("got %+v, %v", p.Report, err)
		}
		b.inject = usecasetest.Healthy
		r, err := b.run(func(o *reconcile.Order) { o.From = *p.Next })
		if n := r.Outcomes[reconcile.Raised] + p.Outcomes[reconcile.Raised]; err != nil || n != 90 {
			b.Errorf("%d rows were raised, %v", n, err)
		}
	})
}

func TestAComparisonOfSomeDocumentsLooksAtThese(t *testing.T) {
	play(t, func(b *bench) {
		b.many(450)
		keys := []shard.DocID{"content#d003", "content#d004", "content#d005", "content#x"}
		r, err := b.run(dry, func(o *reconcile.Order) { o.Keys = keys })
		got := b.reported()
		if err != nil || !slices.Equal(got, []string{"d003 missing resync", "d005 behind raised"}) ||
			r.Rows != 3 || r.Documents != 2 {
			b.Errorf("got %v, %+v, %v", got, r, err)
		}
		seen := map[string]bool{}
		for seed := range 20 {
			r, err := b.run(dry, func(o *reconcile.Order) { o.Sample, o.Seed = 50, fmt.Sprint(seed) })
			if err != nil || r.Rows != 50 {
				b.Fatalf("got %+v, %v", r, err)
			}
			for _, l := range b.reported() {
				seen[l] = true
			}
		}
		if len(seen) < 60 {
			b.Errorf("20 samples of 50 found %d of 210 differences: the samples are not random", len(seen))
		}
	})
}

var _ sink.Auditor = (*memorysink.Sink)(nil)
