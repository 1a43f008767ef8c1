// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const run = "01M85M8B5Q7XE1A51HGC49TZ0A"

// bench is a table and a sink. A message that a repair sends is written at once.
type bench struct {
	*usecasetest.Rig
	sink   *memorysink.Sink
	refuse func(shard.Write) bool // the table refuses these writes to the operator
	unread error                  // the sink answers requests for documents with it
	calls  int                    // how many calls of the stack are answered before it stops
	sent   int
}

func play(t *testing.T, story func(b *bench)) {
	t.Helper()
	t.Parallel()
	bubble(t, story)
}

// bubble plays a story in virtual time.
func bubble(t *testing.T, story func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{
			Rig: usecasetest.Open(t, func(c *config.Config) {
				c.Sinks = map[string]config.Sink{"search": {Kind: "memory"}}
				c.DefaultCollection = "content"
			}),
			sink:  memorysink.New(clock.System{}, memorysink.Settings{Versions: true}),
			calls: 1 << 30,
		}
		time.Sleep(time.Hour) // virtual time, so that the test can use times before now
		story(b)
	})
}

var errDenied = errors.New("AccessDenied: not authorized to perform dynamodb:UpdateItem")

// refusing is the table, with writes that the operator's role may not do.
type refusing struct {
	shard.Store
	b *bench
}

func (r refusing) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if r.b.refuse != nil && r.b.refuse(w) {
		return shard.Row{}, errDenied
	}
	return r.Store.Write(ctx, w)
}

// reading is the sink, which may answer no request for documents.
type reading struct {
	*memorysink.Sink
	b *bench
}

func (r reading) Documents(ctx context.Context, docs []shard.DocID) ([]sink.Stored, error) {
	if r.b.unread != nil {
		return nil, r.b.unread
	}
	return r.Sink.Documents(ctx, docs)
}

func (b *bench) operator() *operate.Operator {
	return &operate.Operator{
		Shards: refusing{b.Shards, b}, Scanner: b.Rig.Shards, Config: &b.Config, Sources: b.Sources,
		Clock:   clock.System{},
		Journal: &b.Notes, Sinks: map[string]sink.Sink{"search": b.sink}, Readers: map[string]sink.Reader{"search": reading{b.sink, b}},
		Publisher: func(_ context.Context, _ string, _ flight.Lane, out queue.Outgoing) error {
			b.sent++
			b.apply(out.Body, 0)
			return nil
		},
	}
}

var errAway = errors.New("the stack went away")

// leaving is a stack that stops answering after some calls. Later calls take effect, but return
// errAway.
type leaving struct {
	all operate.API
	b   *bench
}

func (l leaving) call(err error) error {
	if l.b.calls--; l.b.calls < 0 {
		return errAway
	}
	return err
}

func (l leaving) Check(ctx context.Context, o operate.CheckOrder) (operate.Checked, error) {
	a, err := l.all.Check(ctx, o)
	return a, l.call(err)
}

func (l leaving) Publish(ctx context.Context, p operate.Publication) (operate.Published, error) {
	a, err := l.all.Publish(ctx, p)
	return a, l.call(err)
}

func (l leaving) Reconcile(ctx context.Context, o operate.ReconcileOrder) (operate.ReconcilePage, error) {
	a, err := l.all.Reconcile(ctx, o)
	return a, l.call(err)
}

func (l leaving) Remove(ctx context.Context, o operate.RemoveOrder) (operate.Removed, error) {
	a, err := l.all.Remove(ctx, o)
	return a, l.call(err)
}

func (l leaving) SaveJob(ctx context.Context, s job.Lease) error {
	return l.call(l.all.SaveJob(ctx, s))
}

// apply writes an event to the row and the sink, as index does. The argument ago says how long
// before now the event was written.
func (b *bench) apply(body string, ago time.Duration) {
	b.Helper()
	e, at := b.EventOf(body), time.Now().Add(-ago)
	b.Change(e.Doc, func(r *shard.Row) {
		r.VersionClass, r.Committed, r.CommittedOp = e.Class, e.Key, e.Op
		r.LastWrite, r.ExpiresAt = shard.MicrosOf(at), b.Config.Lifecycle.Expires(at)
	})
	b.store(body, ago)
}

// store writes an event only to the sink. The time of the write is ago before now.
func (b *bench) store(body string, ago time.Duration) {
	b.Helper()
	e, at := b.EventOf(body), time.Now().Add(-ago)
	out := b.sink.Write(b.Context(), []sink.Op{{
		Doc: e.Doc, Kind: e.Op, Fence: shard.Fence(at.UnixMicro()), Key: e.Key, Version: e.Version, At: at,
		Document: []byte(e.Data),
	}})
	if out[0].Kind != sink.Applied {
		b.Fatalf("write: %+v", out)
	}
}

// export returns a function that opens a text as an export.
func export(text string) func() (*feed.Export, error) {
	return func() (*feed.Export, error) {
		return feed.NewExport("export", 0, io.NopCloser(strings.NewReader(text)))
	}
}

// verify runs one program that begins or continues a verification.
func (b *bench) verify(o verify.Order, text string, change ...func(*verify.Verification)) (verify.Result, []verify.Line,
	error,
) {
	b.Helper()
	o.Collection = "content"
	stack := b.operator().API()
	stack = operatetest.API(stack, leaving{stack, b})
	v := &verify.Verification{
		Order: o, Stack: stack, Clock: clock.System{}, By: "ann", Open: export(text), Patience: 2 * time.Minute,
	}
	for _, c := range change {
		c(v)
	}
	var lines []verify.Line
	r := job.Runner{Store: stack.JobStore(), Clock: clock.System{}, By: "ann", Rate: v.Rate}
	state, err := job.Run(b.Context(), r, v.Job(run), func(l verify.Line) { lines = append(lines, l) })
	if closed := v.Close(); closed != nil {
		b.Error(closed)
	}
	if err != nil {
		return verify.Result{}, lines, err
	}
	res, err := o.ResultOf(state)
	return res, lines, err
}

func told(lines []verify.Line) (texts []string) {
	for _, l := range lines {
		words := []string{string(l.Key), l.Difference, l.Outcome, l.Note}
		texts = append(texts, strings.TrimSpace(strings.Join(words, " ")))
	}
	slices.Sort(texts)
	return texts
}

func put(id string, version int) string { return usecasetest.Put(id, version) }

// The table has lost the row of a document that was written a moment ago.
func TestARowThatTheTableLostIsRaisedAtOnce(t *testing.T) {
	play(t, func(b *bench) {
		b.apply(put("a", 5), 0)
		b.Change("content#a", func(r *shard.Row) { *r = shard.Row{Doc: "content#a"} })
		if row := b.Row("content#a"); row.Exists() {
			b.Fatalf("got the row %+v, want no row", row)
		}
		res, lines, err := b.verify(verify.Order{Repair: true}, "")
		if err != nil || res.Remaining != 0 || res.InMotion != 0 || res.Repaired["raised"] != 1 ||
			!slices.Equal(told(lines), []string{"content#a behind raised"}) {
			b.Errorf("got %+v, %v, %v", res, told(lines), err)
		}
		if got, want := b.Row("content#a").Committed, b.EventOf(put("a", 5)).Key; got != want {
			b.Errorf("the row is at %s, want %s", got, want)
		}
	})
}

// The restored row says that the document was written a moment ago, so it cannot be judged yet.
func TestARowThatIsBehindIsRaisedWhenItCanBeJudged(t *testing.T) {
	play(t, func(b *bench) {
		b.apply(put("a", 3), 0)
		b.store(put("a", 5), 0)
		began := time.Now()
		res, lines, err := b.verify(verify.Order{Repair: true}, "")
		if err != nil || res.Remaining != 0 || res.InMotion != 0 ||
			!slices.Equal(told(lines), []string{"content#a behind raised"}) {
			b.Errorf("got %+v, %v, %v", res, told(lines), err)
		}
		committed := b.Row("content#a").Committed
		if took := time.Since(began); took < 30*time.Second || committed != b.EventOf(put("a", 5)).Key {
			b.Errorf("took %s, the row is %+v", took, b.Row("content#a"))
		}
	})
}

// A role that may not change the document's row cannot repair it, and the answer says so. Then the
// job is done, and another role can repair the row.
func TestAnotherRoleRepairsWhatTheFirstMayNot(t *testing.T) {
	play(t, func(b *bench) {
		b.store(put("a", 5), 0)
		b.refuse = func(w shard.Write) bool { return w.Doc == "content#a" }
		res, lines, err := b.verify(verify.Order{Repair: true}, "")
		if err != nil || res.Remaining != 1 || len(lines) != 1 || lines[0].Error != "RAISE: "+errDenied.Error() {
			b.Errorf("the wrong role: got %+v, %v, %v", res, lines, err)
		}
		if row := b.Row("content#a"); row.Exists() {
			b.Errorf("the row is %+v", row)
		}
		b.refuse = nil
		if res, lines, err = b.verify(verify.Order{Repair: true}, ""); err != nil || res.Remaining != 0 ||
			!slices.Equal(told(lines), []string{"content#a behind raised"}) {
			b.Errorf("the right role: got %+v, %v, %v", res, told(lines), err)
		}
	})
}

// A role that may not write the row of the job changes nothing. Then another role can begin the
// job.
func TestARoleThatMayNotWriteTheJobChangesNothing(t *testing.T) {
	play(t, func(b *bench) {
		b.store(put("a", 5), 0)
		b.refuse = func(w shard.Write) bool { return !w.Doc.IsDocument() }
		if _, lines, err := b.verify(verify.Order{Repair: true}, ""); !errors.Is(err, errDenied) || len(lines) > 0 {
			b.Errorf("the wrong role: got %v, %v", lines, err)
		}
		if row := b.Row("content#a"); row.Exists() {
			b.Errorf("the row is %+v", row)
		}
		b.refuse = nil
		if res, lines, err := b.verify(verify.Order{Repair: true}, ""); err != nil || res.Remaining != 0 ||
			!slices.Equal(told(lines), []string{"content#a behind raised"}) {
			b.Errorf("the right role: got %+v, %v, %v", res, told(lines), err)
		}
	})
}

// drifted makes documents with every kind of difference, and returns their export.
func (b *bench) drifted() (text string) {
	var events []string
	for i := range 230 {
		id := fmt.Sprintf("d%03d", i)
		b.apply(put(id, 5), time.Hour)
		switch i % 50 {
		case 1:
			b.store(put(id, 7), 30*time.Minute) // behind
			events = append(events, put(id, 7))
			continue
		case 2, 3: // the source has a newer version that lull never received
			events = append(events, put(id, 6))
			continue
		case 4:
			continue // an orphan
		}
		events = append(events, put(id, 5))
	}
	b.Change("content#d060", func(r *shard.Row) { // a lease: the document can be judged later
		r.Owner, r.LeaseUntil = "index", shard.MicrosOf(time.Now().Add(20*time.Second))
	})
	return strings.Join(events, "\n") + "\n\n"
}

// A program is stopped at each of its calls in turn, and another program continues. The result is
// the same, and nothing is counted twice.
func TestAnotherProgramContinuesAVerification(t *testing.T) {
	for name, o := range map[string]verify.Order{
		"without an export":  {},
		"an export":          {Export: "export.ndjson"},
		"a repair":           {Repair: true},
		"a repair by export": {Export: "export.ndjson", Repair: true},
		"a complete export":  {Export: "export.ndjson", Repair: true, CompleteAt: time.Unix(1<<33, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want verify.Result
			stopped := 0
			for calls := -1; ; calls++ {
				ended := false
				t.Run(fmt.Sprint(calls), func(t *testing.T) {
					bubble(t, func(b *bench) { ended = b.continued(o, calls, &want) })
				})
				if calls >= 0 && ended {
					break
				}
				stopped++
			}
			if stopped < 3 {
				t.Errorf("the program was stopped %d times, want at least 3", stopped)
			}
		})
	}
}

// continued runs a program that is stopped after some calls, and then other programs until the job
// is done. It reports whether the first program reached the end. With -1 calls it stores the result
// in want.
func (b *bench) continued(o verify.Order, calls int, want *verify.Result) bool {
	text := b.drifted()
	confirmed := func(v *verify.Verification) { v.Confirmed = true }
	if calls >= 0 {
		b.calls = calls
	}
	res, lines, err := b.verify(o, text, confirmed)
	whole := err == nil
	if !whole && !errors.Is(err, errAway) {
		b.Fatalf("stopped: %v", err)
	}
	for n := 0; err != nil; n++ {
		if b.calls = 40; n > 20 {
			b.Fatal("the job does not end")
		}
		time.Sleep(job.HoldFor)
		var more []verify.Line
		if res, more, err = b.verify(o, text, confirmed); err != nil && !errors.Is(err, errAway) {
			b.Fatalf("continued: %v", err)
		}
		lines = append(lines, more...)
	}
	if calls < 0 {
		*want = res
		return whole
	}
	// A step may repair documents before its program is stopped. The repeated step finds no
	// difference there.
	if res.Documents != want.Documents || res.Rows != want.Rows || res.InMotion != 0 ||
		res.Remaining != want.Remaining ||
		!o.Repair && !maps.Equal(res.Drift, want.Drift) {
		b.Errorf("stopped after %d calls: %+v, want %+v", calls, res, want)
	}
	sum := 0
	for state, n := range res.Export {
		if sum += n; n > want.Export[state] && state != "same" && state != "in_motion" {
			b.Errorf("stopped after %d calls: %d events are %s, want %d at most", calls, n, state, want.Export[state])
		}
	}
	if o.Export != "" && sum != 225 {
		b.Errorf("stopped after %d calls: %d events, want each once", calls, sum)
	}
	for text, n := range count(told(lines)) {
		if n > 1 {
			b.Errorf("stopped after %d calls: the answer has %q %d times", calls, text, n)
		}
	}
	if o.Repair {
		for i := range 230 {
			id := fmt.Sprintf("d%03d", i)
			row := b.Row(usecasetest.Doc(id))
			s, there, err := b.sink.Get(b.Context(), row.Doc)
			orphan := i%50 == 4 && !o.CompleteAt.IsZero()
			if err != nil || there == orphan || there && s.Key != row.Committed.String() {
				b.Errorf("stopped after %d calls: the row of %s has %s, the sink has %+v", calls, id, row.Committed, s)
			}
		}
	}
	return whole
}

func count(texts []string) map[string]int {
	n := map[string]int{}
	for _, text := range texts {
		n[text]++
	}
	return n
}
