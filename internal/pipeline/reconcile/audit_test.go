package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func audit(a *reconcile.Audit) func(*reconcile.Order) {
	return func(o *reconcile.Order) { o.Audit, o.DryRun = a, true }
}

// stranger writes a document into the sink without a mark, as another program would.
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

func TestAnAuditNamesWhatLullDidNotWriteAndWhatIsInMotion(t *testing.T) {
	play(t, func(b *bench) {
		b.drifted()
		b.stranger("by-hand")
		b.row("over", 5, shard.Delete)
		b.stranger("over")
		b.row("instead", 5, shard.Put)
		b.stranger("instead")
		b.stranger("coming")
		b.Admit(b.EventOf(usecasetest.Put("coming", 1)))
		var seen []reconcile.Copy
		r, err := b.run(audit(&reconcile.Audit{Seen: func(page []reconcile.Copy) { seen = append(seen, page...) }}))
		want := append(slices.Clone(everyKind),
			"by-hand stranger left", "coming waiting in_motion", "instead other_class resync", "over stranger left",
			"waiting waiting in_motion", "writing busy in_motion")
		slices.Sort(want)
		if got := b.told(); err != nil || !slices.Equal(got, want) {
			b.Errorf("got\n%s\nwant\n%s (%v)", strings.Join(got, "\n"), strings.Join(want, "\n"), err)
		}
		if r.Waiting != 3 || r.Documents != 11 || len(seen) != 11 || r.Remaining() != 8 {
			b.Errorf("got %+v, %d copies seen", r, len(seen))
		}
		// A comparison of lull's own documents ignores them.
		if _, err := b.run(func(o *reconcile.Order) { o.DryRun = true }); err != nil ||
			slices.ContainsFunc(b.told(), func(l string) bool { return strings.Contains(l, "stranger") }) {
			b.Errorf("without an audit: %v, %v", b.told(), err)
		}
	})
}

// many makes documents. Every third one is missing in the sink, and every fifth one is older there.
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

// An audit can stop at any point. The next one continues, and together they leave nothing out.
func TestAnAuditGoesOnWhereItStopped(t *testing.T) {
	play(t, func(b *bench) {
		b.many(450)
		whole, err := b.run(audit(&reconcile.Audit{}))
		want := b.told()
		if err != nil || len(want) != whole.Remaining() || len(want) != 90+120 {
			b.Fatalf("%d differences, %+v, %v", len(want), whole, err)
		}
		var places []reconcile.Place
		if _, err := b.run(audit(&reconcile.Audit{
			Reached: func(p reconcile.Place, _ reconcile.Report) { places = append(places, p) },
		})); err != nil || len(places) < 4 {
			b.Fatalf("reached %v, %v", places, err)
		}
		for n := range places {
			var before []string
			var stop reconcile.Place
			reached := 0
			_, err := b.run(audit(&reconcile.Audit{Reached: func(p reconcile.Place, _ reconcile.Report) {
				if reached++; reached == n+1 {
					before, stop = b.told(), p
				}
			}}))
			if err != nil {
				b.Fatal(err)
			}
			usecasetest.Must(b.run(audit(&reconcile.Audit{From: stop})))(b)
			all := append(before, b.told()...)
			slices.Sort(all)
			if !slices.Equal(slices.Compact(all), want) {
				b.Errorf("stopped at %+v: %d differences, want %d", stop, len(all), len(want))
			}
		}
	})
}

func TestAnAuditOfSomeDocumentsLooksAtThese(t *testing.T) {
	play(t, func(b *bench) {
		b.many(450)
		keys := []shard.DocID{"content#d003", "content#d004", "content#d005", "content#x"}
		r, err := b.run(audit(&reconcile.Audit{Keys: keys}))
		if got := b.told(); err != nil || !slices.Equal(got, []string{"d003 missing resync", "d005 behind raised"}) ||
			r.Rows != 3 || r.Documents != 2 {
			b.Errorf("got %v, %+v, %v", got, r, err)
		}
		seen := map[string]bool{}
		for seed := range 20 {
			r, err := b.run(audit(&reconcile.Audit{Sample: 50, Seed: fmt.Sprint(seed)}))
			if err != nil || r.Rows != 50 {
				b.Fatalf("got %+v, %v", r, err)
			}
			for _, l := range b.told() {
				seen[l] = true
			}
		}
		if len(seen) < 60 {
			b.Errorf("20 samples of 50 found %d of 210 differences: they are not at random", len(seen))
		}
	})
}

var _ sink.Auditor = (*memorysink.Sink)(nil)
