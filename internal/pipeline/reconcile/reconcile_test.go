// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench has a table and a sink whose contents may differ.
type bench struct {
	*usecasetest.Rig
	sink   *memorysink.Sink
	inject fault.Injector
	lines  []reconcile.Line
	seen   []reconcile.Copy
	places []reconcile.Place // where the pages began, except the first page
	skew   time.Duration     // how wrong the operator's clock is
}

const collection = "content"

// playIn runs a story with a sink that has versions or has none.
func playIn(t *testing.T, versions bool, story func(b *bench)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) { story(open(t, versions)) })
}

func play(t *testing.T, story func(b *bench)) {
	t.Helper()
	playIn(t, true, story)
}

func open(t *testing.T, versions bool) *bench {
	t.Helper()
	b := &bench{
		Rig: usecasetest.Open(t, func(c *config.Config) {
			c.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
			c.DefaultCollection = collection
		}),
		sink:   memorysink.New(clock.System{}, memorysink.Settings{Versions: versions}),
		inject: usecasetest.Healthy,
	}
	time.Sleep(time.Hour) // virtual time, so that earlier times exist
	return b
}

// service makes a new service. The injector may make its calls fail.
func (b *bench) service(token string) *reconcile.Service {
	v := fault.NewInvocation(b.inject, "operator", 1)
	tokens := 0
	return &reconcile.Service{
		Looker: reconcile.Looker{
			Shards: v.Shards(b.Shards), Reader: b.sink, SinkName: "search", Config: &b.Config,
			Clock: clock.Skewed{Clock: clock.System{}, By: b.skew}, Off: b.skew.Abs(),
		},
		Scanner: v.Scanner(b.Shards), Sink: v.Sink(b.sink), Journal: &b.Notes,
		NewToken: func() shard.Token { tokens++; return shard.Token(fmt.Sprint(token, tokens)) },
	}
}

// run compares the collection, page by page.
func (b *bench) run(change ...func(*reconcile.Order)) (reconcile.Report, error) {
	b.Helper()
	b.lines, b.seen, b.places = nil, nil, nil
	o := reconcile.Order{Collection: collection, By: "somebody"}
	for _, c := range change {
		c(&o)
	}
	sum, s := reconcile.Report{Outcomes: map[reconcile.Outcome]int{}}, b.service("reconcile-")
	for {
		p, err := s.Compare(b.Context(), o)
		b.lines, b.seen = append(b.lines, p.Lines...), append(b.seen, p.Seen...)
		sum.Rows, sum.Documents, sum.Waiting = sum.Rows+p.Rows, sum.Documents+p.Documents, sum.Waiting+p.Waiting
		for outcome, n := range p.Outcomes {
			sum.Outcomes[outcome] += n
		}
		if p.Next == nil || err != nil {
			return sum, err
		}
		o.From = *p.Next
		b.places = append(b.places, o.From)
	}
}

// remaining returns how many documents still differ.
func (b *bench) remaining() (n int) {
	for _, l := range b.lines {
		switch l.Outcome {
		case reconcile.Resync, reconcile.Later, reconcile.Failed, reconcile.Left:
			n++
		case reconcile.Raised, reconcile.Reasserted, reconcile.Moving:
		}
	}
	return n
}

// key returns the order key of a version; empty for version 0.
func (b *bench) key(id string, version int) shard.OrderKey {
	if version == 0 {
		return ""
	}
	return b.EventOf(usecasetest.Put(id, version)).Key
}

// stored writes a version into the sink, as if it had been written the given time ago.
func (b *bench) stored(id string, version int, ago time.Duration) {
	b.Helper()
	at := time.Now().Add(-ago)
	out := b.sink.Write(b.Context(), []sink.Op{{
		Doc: usecasetest.Doc(id), Kind: shard.Put, Fence: shard.Fence(at.UnixMicro()), Key: b.key(id, version),
		Version: fmt.Sprint(version), At: at, Document: []byte(`{"title":"x"}`),
	}})
	if out[0].Kind != sink.Applied {
		b.Fatalf("write: %+v", out)
	}
}

// row makes the row of a document whose version was committed ten minutes ago.
func (b *bench) row(id string, version int, op shard.Operation, change ...func(*shard.Row)) {
	b.Helper()
	b.Change(usecasetest.Doc(id), func(r *shard.Row) {
		r.VersionClass, r.Committed, r.CommittedOp = shard.ClassInt, b.key(id, version), op
		r.LastWrite = shard.MicrosOf(time.Now().Add(-10 * time.Minute))
		r.ExpiresAt = b.Config.Lifecycle.Expires(time.Now())
		for _, c := range change {
			c(r)
		}
	})
}

// held returns the version that the sink has; empty for none.
func (b *bench) held(id string) string {
	b.Helper()
	s, _, err := b.sink.Get(b.Context(), usecasetest.Doc(id))
	if err != nil {
		b.Fatal(err)
	}
	return s.Version
}

// reported returns the reported lines as text, without documents that are being written.
func (b *bench) reported() []string {
	return b.linesAsText(func(l reconcile.Line) bool { return l.Outcome != reconcile.Moving })
}

func (b *bench) linesAsText(wanted func(reconcile.Line) bool) []string {
	var out []string
	for _, l := range b.lines {
		if wanted(l) {
			out = append(out, fmt.Sprint(l.Row.Doc.ID(), " ", l.Difference, " ", l.Outcome))
		}
	}
	slices.Sort(out)
	return out
}

// drifted makes one document for each kind of difference.
func (b *bench) drifted() {
	b.row("same", 5, shard.Put)
	b.stored("same", 5, 10*time.Minute)
	b.row("behind", 3, shard.Put)
	b.stored("behind", 5, 5*time.Minute)
	b.row("came-back", 5, shard.Delete)
	b.stored("came-back", 3, 20*time.Minute)
	b.row("gone", 5, shard.Delete)
	b.row("missing", 5, shard.Put)
	b.row("older", 5, shard.Put)
	b.stored("older", 3, 20*time.Minute)
	b.stored("rowless", 5, 5*time.Minute)
	b.stored("collected", 5, b.Config.Lifecycle.RowRetention+time.Hour)
	b.row("writing", 3, shard.Put, func(r *shard.Row) {
		r.Owner, r.LeaseUntil = "index", shard.MicrosOf(time.Now().Add(time.Second))
	})
	b.stored("writing", 5, time.Second)
	b.row("waiting", 3, shard.Put, func(r *shard.Row) { r.Pending = b.key("waiting", 7) })
}

var everyKind = []string{
	"behind behind raised", "came-back undone reasserted", "missing missing resync", "older older resync",
	"rowless behind raised",
}

func TestReconcileRepairsWhatRowAndSinkSufficeFor(t *testing.T) {
	for _, versions := range []bool{true, false} {
		t.Run(fmt.Sprintf("versions %t", versions), func(t *testing.T) {
			playIn(t, versions, func(b *bench) {
				b.drifted()
				r := usecasetest.Must(b.run())(b)
				if got := b.reported(); !slices.Equal(got, everyKind) {
					b.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(everyKind, "\n"))
				}
				want := map[reconcile.Outcome]int{reconcile.Raised: 2, reconcile.Reasserted: 1, reconcile.Resync: 2}
				if !maps.Equal(r.Outcomes, want) || r.Rows != 9 || r.Documents != 7 || r.Waiting != 2 ||
					b.remaining() != 2 {
					b.Errorf("got %+v", r)
				}
				row := b.Row(usecasetest.Doc("behind"))
				copied, _, _ := b.sink.Get(b.Context(), row.Doc)
				if row.Committed != b.key("behind", 5) || row.LastWrite != shard.Micros(copied.Fence) ||
					row.ExpiresAt == 0 {
					b.Errorf("raised: %+v", row)
				}
				if got := b.held("came-back"); got != "" {
					b.Errorf("the deleted document still has version %s", got)
				}
				if row := b.Row(usecasetest.Doc("came-back")); row.Owner != "" || row.LeaseUntil != 0 {
					b.Errorf("a lease remains: %+v", row)
				}
				b.Noted(journal.Raised, 2)
				b.Noted(journal.Reasserted, 1)
				// The second comparison finds nothing to repair. Documents that only the source can
				// send remain.
				if _, err := b.run(); err != nil || !slices.Equal(b.reported(), everyKind[2:4]) {
					b.Errorf("the second comparison found %v, error %v", b.reported(), err)
				}
			})
		})
	}
}

// The operator's machine has its own clock. If this clock is ahead, a lease that is in use must not
// look expired. Otherwise an older version could be written after the row was raised.
func TestAClockThatIsAheadRaisesNoRowUnderALease(t *testing.T) {
	play(t, func(b *bench) {
		b.stored("a", 5, 20*time.Minute)
		// the row was restored; then the event of version 4 arrived again
		b.row("a", 3, shard.Put, func(r *shard.Row) {
			r.Pending, r.Claimed, r.Owner = b.key("a", 4), b.key("a", 4), "index"
			r.BurstStart, r.LeaseUntil = usecasetest.Now(), usecasetest.Now().Add(b.Config.Lease("search"))
		})
		before := b.Row(usecasetest.Doc("a"))
		b.skew = 4 * time.Minute
		r, err := b.run()
		if err != nil || b.remaining() != 1 || !slices.Equal(b.reported(), []string{"a behind later"}) ||
			b.Row(usecasetest.Doc("a")) != before {
			b.Errorf("got %+v, %v, row %+v: want the document left for later", r, err, b.Row(usecasetest.Doc("a")))
		}
		time.Sleep(10 * time.Minute)
		if _, err := b.run(); err != nil || !slices.Equal(b.reported(), []string{"a behind raised"}) {
			b.Errorf("the later comparison found %v, error %v", b.reported(), err)
		}
	})
}

// If the operator's clock is behind, the lease of a delete must not end before its request.
func TestAClockThatIsBehindKeepsTheLeaseOfADelete(t *testing.T) {
	playIn(t, false, func(b *bench) {
		b.stored("a", 3, time.Hour)
		b.row("a", 5, shard.Delete)
		b.skew = -4 * time.Minute
		asked := 0
		b.inject = usecasetest.At("_bulk", func() {
			asked++
			if r := b.Row(usecasetest.Doc("a")); !r.Leased(usecasetest.Now().Add(b.Config.Index.SinkDeadline)) {
				b.Errorf("row %+v, want a lease for as long as the request may take", r)
			}
		})
		if _, err := b.run(); err != nil || asked != 1 || b.held("a") != "" {
			b.Errorf("got %v, %d requests, version %q", err, asked, b.held("a"))
		}
	})
}

// A copy whose order key cannot be read never counts as the row's version.
func TestACopyThatCannotBeReadIsListed(t *testing.T) {
	for _, op := range []shard.Operation{shard.Put, shard.Delete} {
		t.Run(string(op), func(t *testing.T) {
			play(t, func(b *bench) {
				b.row("a", 5, op)
				out := b.sink.Write(b.Context(), []sink.Op{{
					Doc: usecasetest.Doc("a"), Kind: shard.Put, Fence: 1, Key: "\xff hunter2", Document: []byte(`{}`),
				}})
				if _, err := b.run(); err != nil || !slices.Equal(b.reported(), []string{"a other_class resync"}) {
					b.Errorf("got %v, %v (%v)", b.reported(), err, out)
				}
			})
		})
	}
}

func TestADryRunSaysTheSameAndChangesNothing(t *testing.T) {
	play(t, func(b *bench) {
		b.drifted()
		b.inject = usecasetest.Decide(func(op fault.Op) fault.Verdict {
			switch op.Call {
			case "_bulk", "RAISE", "REASSERT", "REASSERTED":
				b.Errorf("a dry run calls %s", op.Call)
			}
			return fault.OK
		})
		r, err := b.run(func(o *reconcile.Order) { o.DryRun = true })
		if err != nil || !slices.Equal(b.reported(), everyKind) {
			b.Errorf("got %v, %+v, %v", b.reported(), r, err)
		}
		if len(b.Notes.All()) > 0 {
			b.Errorf("noted %+v", b.Notes.All())
		}
	})
}

// A restored row would accept a late older version. After RAISE that version is stale: the row
// refuses receive's ADMIT and index's CLAIM. A claim of a newer version gets a greater fence.
func TestARaisedRowRefusesWhatIsOlderThanTheSink(t *testing.T) {
	play(t, func(b *bench) {
		b.row("a", 3, shard.Put)
		b.stored("a", 5, -2*time.Second) // written by a clock that is ahead
		usecasetest.Must(b.run())(b)
		late := b.EventOf(usecasetest.Put("a", 4))
		_, err := b.Shards.Write(b.Context(), shard.Admit(shard.Admission{
			Doc: late.Doc, Key: late.Key, Class: late.Class, Flight: "f", Now: usecasetest.Now(),
		}))
		refused, ok := shard.AsRefused(err)
		if !ok || shard.Judge(refused.Row, late.Key, late.Class, false) != shard.Stale {
			b.Errorf("version 4: %v, want a stale version", err)
		}
		next := b.EventOf(usecasetest.Put("a", 6))
		b.Admit(next)
		_, err = b.Shards.Write(b.Context(), shard.Claim(shard.Bid{
			Doc: next.Doc, Key: next.Key, Token: "t", Now: usecasetest.Now(), Until: usecasetest.Now() + 1,
		}))
		if _, ok := shard.AsRefused(err); !ok {
			b.Errorf("claim before the sink's fence: %v, want a refusal", err)
		}
		time.Sleep(3 * time.Second)
		b.Claim(next)
	})
}

func TestRaiseIsTriedAnewWhereTheRowChanged(t *testing.T) {
	type row struct {
		change func(b *bench)
		want   string
		row    int // the committed version in the end
	}
	usecasetest.Table(t, play, map[string]row{
		"a newer version became pending": {func(b *bench) {
			b.Admit(b.EventOf(usecasetest.Put("a", 7)))
		}, "a behind raised", 5},
		"a flight claimed the version": {func(b *bench) {
			e := b.EventOf(usecasetest.Put("a", 7))
			b.Admit(e)
			b.Claim(e)
		}, "a behind later", 3},
		"a flight wrote and committed a newer version": {func(b *bench) {
			e := b.EventOf(usecasetest.Put("a", 7))
			b.Admit(e)
			l := b.Claim(e)
			b.stored("a", 7, 0)
			b.Commit(l, shard.Put)
		}, "a behind later", 7},
	}, func(b *bench, tt row) {
		b.row("a", 3, shard.Put)
		b.stored("a", 5, 5*time.Minute)
		b.inject = usecasetest.At("RAISE", func() { tt.change(b) })
		if _, err := b.run(); err != nil || !slices.Equal(b.reported(), []string{tt.want}) {
			b.Errorf("got %v, %v, want %s", b.reported(), err, tt.want)
		}
		if got, want := b.Row(usecasetest.Doc("a")).Committed, b.key("a", tt.row); got != want {
			b.Errorf("committed %s, want %s", got, want)
		}
	})
}

func TestLostAnswersAreNotFailures(t *testing.T) {
	for _, call := range []string{"RAISE", "REASSERT", "REASSERTED", "Scan", "Read"} {
		t.Run(call, func(t *testing.T) {
			play(t, func(b *bench) {
				b.drifted()
				b.inject = usecasetest.Fails(call, fault.FailAfter, 1)
				if _, err := b.run(); err != nil || !slices.Equal(b.reported(), everyKind) {
					b.Errorf("got %v, %v", b.reported(), err)
				}
			})
		})
	}
}

func TestADeleteThatTheSinkDoesNotTakeRemains(t *testing.T) {
	answer := func(kind sink.OutcomeKind) memorysink.Answer {
		return memorysink.Answer{Outcome: sink.Outcome{Kind: kind, Reason: "told so"}}
	}
	type row struct {
		answers []memorysink.Answer
		want    string
		leased  bool
	}
	usecasetest.Table(t, play, map[string]row{
		"throttled once":      {[]memorysink.Answer{answer(sink.Throttled)}, "a undone reasserted", false},
		"throttled for good":  {slices.Repeat([]memorysink.Answer{answer(sink.Throttled)}, 3), "a undone failed", false},
		"refused":             {[]memorysink.Answer{answer(sink.Refused)}, "a undone failed", false},
		"without an answer":   {[]memorysink.Answer{answer(sink.Unknown)}, "a undone failed", true},
		"a newer copy exists": {[]memorysink.Answer{answer(sink.Newer)}, "a undone failed", true},
	}, func(b *bench, tt row) {
		b.row("a", 5, shard.Delete)
		b.stored("a", 3, 20*time.Minute)
		b.sink.Script(usecasetest.Doc("a"), tt.answers...)
		if _, err := b.run(); err != nil || !slices.Equal(b.reported(), []string{tt.want}) {
			b.Errorf("got %v, %v, want %s", b.reported(), err, tt.want)
		}
		if got := b.Row(usecasetest.Doc("a")).Leased(usecasetest.Now()); got != tt.leased {
			b.Errorf("leased: %t, want %t", got, tt.leased)
		}
	})
}

func TestBadInputIsNamedAndChangesNothing(t *testing.T) {
	type row struct {
		spoil func(b *bench)
		want  string
	}
	usecasetest.Table(t, play, map[string]row{
		"the sink is away": {
			func(b *bench) { b.sink.SetDown(errors.New("connection refused")) },
			"sink search does not answer, nothing was changed: connection refused",
		},
		"the table is away": {
			func(b *bench) { b.inject = usecasetest.Fails("Read", fault.FailBefore, 100) },
			"the table does not answer, nothing was changed",
		},
	}, func(b *bench, tt row) {
		b.row("a", 3, shard.Put)
		b.stored("a", 5, 5*time.Minute)
		tt.spoil(b)
		before := b.Row(usecasetest.Doc("a"))
		_, err := b.run()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			b.Errorf("got %v, want %s", err, tt.want)
		}
		if after := b.Row(usecasetest.Doc("a")); after != before {
			b.Errorf("the row changed: %+v", after)
		}
	})
}

// A large collection is read page by page. Other collections are not read.
func TestALargeCollectionIsPaged(t *testing.T) {
	play(t, func(b *bench) {
		const n = 350
		for i := range n {
			b.row(fmt.Sprintf("d%03d", i), 5, shard.Put)
			if i%50 > 0 {
				b.stored(fmt.Sprintf("d%03d", i), 5, 10*time.Minute)
			}
		}
		for _, other := range []string{"a#1", "z#1"} {
			b.Change(shard.DocID(other), func(r *shard.Row) { r.Committed, r.CommittedOp = "x", shard.Put })
			b.sink.Write(b.Context(), []sink.Op{{
				Doc: shard.DocID(other), Kind: shard.Put, Key: b.key("x", 9), Document: []byte(`{}`), Fence: 1,
			}})
		}
		for limit, pages := range map[int]int{0: 1, 1: 2 * n, 100: 8, reconcile.MaxPage: 1} {
			r, err := b.run(func(o *reconcile.Order) { o.Limit, o.DryRun = limit, true })
			if err != nil || r.Rows != n || r.Documents != n-7 || r.Outcomes[reconcile.Resync] != 7 ||
				len(b.lines) != 7 ||
				len(b.places) >= pages || len(b.places) < pages/2 {
				b.Errorf("limit %d: got report %+v in %d pages, error %v", limit, r, len(b.places)+1, err)
			}
		}
	})
}

func TestReconcileEndsWithItsContext(t *testing.T) {
	play(t, func(b *bench) {
		b.drifted()
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_, err := b.service("reconcile-").Compare(ctx, reconcile.Order{Collection: collection})
		if !errors.Is(err, context.Canceled) {
			b.Errorf("got %v, want the error of the context", err)
		}
	})
}

// If a rebuild or a pause begins during a comparison, no delete is written again.
func TestADeleteIsNotAssertedBesideARebuildOrAPause(t *testing.T) {
	usecasetest.Table(t, play, map[string]func() shard.Write{
		"a rebuild": func() shard.Write { return shard.Rebuild("search", collection, "new", usecasetest.Now()) },
		"a pause":   func() shard.Write { return shard.Pause("search", usecasetest.Now(), "ann", "") },
	}, func(b *bench, begins func() shard.Write) {
		b.row("a", 5, shard.Delete)
		b.stored("a", 3, 20*time.Minute)
		first := true
		b.inject = usecasetest.On("Read", func(fault.Op) {
			if !first && b.Row(shard.HealthRow("search")).RebuildAt == 0 &&
				b.Row(shard.HealthRow("search")).PausedAt == 0 {
				b.Write(begins())
			}
			first = false
		})
		before := b.Row(usecasetest.Doc("a"))
		if _, err := b.run(); err != nil || !slices.Equal(b.reported(), []string{"a undone later"}) {
			b.Errorf("got %v, %v, want the outcome later", b.reported(), err)
		}
		if after := b.Row(usecasetest.Doc("a")); after != before || b.held("a") != "3" {
			b.Errorf("the row is %+v, the sink has %q: want both unchanged", after, b.held("a"))
		}
	})
}

func TestAPausedSinkIsComparedInADryRunOnly(t *testing.T) {
	play(t, func(b *bench) {
		b.drifted()
		b.Write(shard.Pause("search", usecasetest.Now(), "ann", ""))
		if _, err := b.run(); err == nil || !strings.Contains(err.Error(), "lull resume") || len(b.lines) > 0 {
			b.Errorf("%v, %v; want a refusal that names `lull resume`", b.reported(), err)
		}
		if _, err := b.run(func(o *reconcile.Order) { o.DryRun = true }); err != nil ||
			!slices.Equal(b.reported(), everyKind) {
			b.Errorf("a dry run: %v, %v; want %v", b.reported(), err, everyKind)
		}
	})
}
