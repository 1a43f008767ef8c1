// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// errKilled is the error of each call of a program that was killed.
var errKilled = errors.New("killed")

// ground is a table and a sink with documents. A rebuild uses both through wrappers that can kill
// it at any call.
type ground struct {
	*usecasetest.Rig
	sink  *memorysink.Sink
	fence int64

	calls int                     // number of calls of all programs so far
	kill  int                     // the number of the call that kills the program; 0 for none
	after bool                    // that call takes effect
	dead  bool                    // the program was killed
	hook  func(call string) error // called before every call; if it returns an error, the call fails with it
	told  []rebuild.Progress

	stopped   bool               // the engine's copy was stopped
	committed map[string]version // the committed version of each document, by id
	open      []version          // versions that the sink has applied, but that are not committed
}

// version is a write of a document.
type version struct {
	id    string
	fence int64
	kind  shard.Operation
}

// play runs a test in its own bubble of virtual time, in parallel with other tests.
func play(t *testing.T, story func(g *ground)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) { story(open(t)) })
}

func open(t *testing.T) *ground {
	t.Helper()
	versions := true
	g := &ground{Rig: usecasetest.Open(t, func(c *config.Config) {
		c.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
	}), committed: map[string]version{}}
	g.sink = memorysink.New(clock.System{}, memorysink.Settings{Versions: true, Latency: time.Millisecond})
	return g
}

func (g *ground) service() *rebuild.Service {
	tokens := 0
	return &rebuild.Service{
		Shards: store{g.Shards, g}, Sink: wall{g.sink, g}, SinkName: "search", Config: &g.Config, Clock: clock.System{},
		Journal: &g.Notes, NewToken: func() shard.Token {
			tokens++
			return shard.Token(fmt.Sprint("operator-", g.calls, "-", tokens))
		},
	}
}

// call does one call of a program, or kills the program there.
func (g *ground) call(ctx context.Context, name string, do func() error) error {
	if g.dead {
		return errKilled
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	g.calls++
	if g.hook != nil {
		if err := g.hook(name); err != nil {
			return err
		}
	}
	if g.calls != g.kill {
		return do()
	}
	g.dead = true
	if g.after {
		_ = do()
	}
	return errKilled
}

type store struct {
	shard.Store
	g *ground
}

// result does one call of a program that returns a result.
func result[A any](ctx context.Context, g *ground, name string, do func() (A, error)) (a A, err error) {
	err = g.call(ctx, name, func() error {
		a, err = do()
		return err
	})
	return a, err
}

func (s store) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	return result(ctx, s.g, "read", func() ([]shard.Row, error) { return s.Store.Read(ctx, docs, c) })
}

func (s store) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	return result(ctx, s.g, w.Transition.String(), func() (shard.Row, error) { return s.Store.Write(ctx, w) })
}

type wall struct {
	*memorysink.Sink
	g *ground
}

func (w wall) Standing(ctx context.Context, c shard.Collection) (sink.Standing, error) {
	return result(ctx, w.g, "standing", func() (sink.Standing, error) { return w.Sink.Standing(ctx, c) })
}

func (w wall) Create(ctx context.Context, n sink.NewIndex) error {
	return w.g.call(ctx, "create", func() error { return w.Sink.Create(ctx, n) })
}

func (w wall) Fill(ctx context.Context, f sink.Fill) (sink.Filled, error) {
	return result(ctx, w.g, "fill", func() (sink.Filled, error) { return w.Sink.Fill(ctx, f) })
}

func (w wall) VersionsOf(ctx context.Context, index string, ids []string) ([]int64, error) {
	return result(ctx, w.g, "versions", func() ([]int64, error) { return w.Sink.VersionsOf(ctx, index, ids) })
}

func (w wall) Transfer(ctx context.Context, c shard.Collection, from, into string, ids []string) ([]sink.Outcome,
	error,
) {
	return result(ctx, w.g, "transfer", func() ([]sink.Outcome, error) { return w.Sink.Transfer(ctx, c, from, into, ids) })
}

func (w wall) StopFill(ctx context.Context, into string) error {
	return w.g.call(ctx, "stop fill", func() error {
		w.g.stopped = true
		return w.Sink.StopFill(ctx, into)
	})
}

func (w wall) Switch(ctx context.Context, c shard.Collection, from, into string) error {
	return w.g.call(ctx, "switch", func() error { return w.Sink.Switch(ctx, c, from, into) })
}

func (w wall) Settle(ctx context.Context, index string) error {
	return w.g.call(ctx, "settle", func() error { return w.Sink.Settle(ctx, index) })
}

func (w wall) Drop(ctx context.Context, index string) error {
	return w.g.call(ctx, "drop", func() error { return w.Sink.Drop(ctx, index) })
}

// write writes a version as index does: to the index in use and to the new index. It notes a MISS
// if the new index does not have the write, and then commits. If it may not commit, settled writes
// the version again.
func (g *ground) write(id string, kind shard.Operation) {
	g.Helper()
	g.fence++
	g.put(version{id, g.fence, kind})
}

func (g *ground) put(v version) {
	g.Helper()
	g.turn(v, g.Row(shard.HealthRow("search")))
}

// unaware writes a version as a turn does that read the health row before the rebuild was
// announced.
func (g *ground) unaware(id string, kind shard.Operation) {
	g.Helper()
	g.fence++
	g.turn(version{id, g.fence, kind}, shard.Row{})
}

// turn writes a version as a turn does that has read this health row.
func (g *ground) turn(v version, row shard.Row) {
	g.Helper()
	op := sink.Op{
		Doc: shard.DocID("content#" + v.id), Kind: v.kind, Fence: shard.Fence(v.fence), At: time.Now(),
		Document: fmt.Appendf(nil, `{"n":%d}`, v.fence), Key: g.EventOf(usecasetest.Put(v.id, int(v.fence))).Key,
	}
	ctx := context.WithoutCancel(g.Context())
	if o := g.sink.Write(ctx, []sink.Op{op})[0]; o.Kind == sink.Newer {
		return
	} else if o.Kind != sink.Applied {
		g.Fatalf("write %s: %s %s", v.id, o.Kind, o.Reason)
	}
	if row.RebuildAt != 0 {
		o := g.sink.Into("content", row.RebuildInto).Write(ctx, []sink.Op{op})[0]
		if o.Kind != sink.Applied && o.Kind != sink.Newer {
			if _, err := g.Shards.Write(ctx, shard.Miss("search", row.RebuildAt)); err != nil {
				g.open = append(g.open, v)
				return
			}
		}
	}
	g.committed[v.id] = v
}

// readable fails the test if readers find less than was committed.
func (g *ground) readable(when string) {
	g.Helper()
	for id, v := range g.committed {
		got, found, err := g.sink.Get(context.WithoutCancel(g.Context()), shard.DocID("content#"+id))
		switch {
		case err != nil:
			g.Fatal(err)
		case found && int64(got.Fence) < v.fence, !found && v.kind == shard.Put && !g.undone(v):
			g.Errorf("%s: readers find version %d of %s (%t), and %d was committed", when, got.Fence, id, found,
				v.fence)
		}
	}
}

// undone reports whether a newer delete was applied, but is not committed yet.
func (g *ground) undone(v version) bool {
	for _, o := range g.open {
		if o.id == v.id && o.fence > v.fence && o.kind == shard.Delete {
			return true
		}
	}
	return false
}

// settled writes again the versions that were not committed. It fails the test unless readers then
// find every committed version.
func (g *ground) settled(when string) {
	g.Helper()
	open := g.open
	g.open = nil
	for _, v := range open {
		if g.committed[v.id].fence < v.fence {
			g.put(v)
		}
	}
	want := map[string]string{}
	for id, v := range g.committed {
		if v.kind == shard.Put {
			want[id] = fmt.Sprintf(`{"n":%d}`, v.fence)
		}
	}
	g.same(want, when)
}

// holds returns the documents that readers find: their contents by id.
func (g *ground) holds() map[string]string {
	g.Helper()
	out := map[string]string{}
	err := g.sink.All(context.WithoutCancel(g.Context()), func(s sink.Stored) error {
		out[s.Doc.ID()] = string(s.Document)
		return nil
	})
	if err != nil {
		g.Fatal(err)
	}
	return out
}

// same fails the test unless readers find exactly these documents.
func (g *ground) same(want map[string]string, when string) {
	g.Helper()
	got := g.holds()
	for id, text := range want {
		if got[id] != text {
			g.Errorf("%s: readers find %q for %s, want %s", when, got[id], id, text)
		}
	}
	if len(got) != len(want) {
		g.Errorf("%s: readers find %d documents, want %d: %v", when, len(got), len(want), got)
	}
}

// clean fails the test if a rebuild has left rows, a job or more than this number of earlier
// indices.
func (g *ground) clean(when string, earlier int) {
	g.Helper()
	ctx := context.WithoutCancel(g.Context())
	row, run := g.Row(shard.HealthRow("search")), g.Row(shard.RunRow("job-rebuild-search"))
	if row.RebuildAt != 0 || row.RebuildInto != "" || row.RebuildMissed != 0 || run.Owner != "" && run.Cursor != "" {
		g.Errorf("%s: rows are left: %+v %+v", when, row, run)
	}
	if s, err := g.ledger().Job(ctx, "rebuild-search"); err == nil && s.Active() {
		g.Errorf("%s: the job is still active: %+v", when, s)
	}
	if names, _ := g.sink.Earlier(ctx, "content"); len(names) != earlier {
		g.Errorf("%s: the sink still has the indices %v, want %d", when, names, earlier)
	}
}

func (g *ground) order() rebuild.Order {
	return rebuild.Order{Collection: "content", Keep: 1, By: "ann"}
}

// seed writes some documents, and deletes one of them again.
func (g *ground) seed() {
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		g.write(id, shard.Put)
	}
	g.write("c", shard.Delete)
}

func TestARebuildBringsEveryDocumentIntoTheNewIndex(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		want := g.holds()
		p, err := g.startWith(g.service(), g.order())
		if err != nil || p.Phase != rebuild.Done || p.Passes != 1 || p.Repaired != 0 {
			g.Fatalf("%+v, %v", p, err)
		}
		g.same(want, "at the end")
		g.clean("at the end", 0)
		at, _ := g.sink.Standing(g.Context(), "content")
		if at.Index != p.New || !strings.HasPrefix(p.New, "content.r") {
			g.Errorf("the name points to %s, want %s", at.Index, p.New)
		}
		var phases []rebuild.Phase
		for _, told := range g.told {
			if len(phases) == 0 || phases[len(phases)-1] != told.Phase {
				phases = append(phases, told.Phase)
			}
		}
		if got := fmt.Sprint(phases); got != "[creating announced filling comparing switching tidying done]" {
			g.Errorf("the progress showed the phases %s", got)
		}
	})
}

// traffic does the n-th change of live traffic during a rebuild.
func (g *ground) traffic(n int) {
	switch ids := "abcdefgh"; {
	case n%7 == 3:
		g.write(string(ids[n%len(ids)]), shard.Delete)
	case n%2 == 0:
		g.write(string(ids[n%len(ids)]), shard.Put)
	}
	g.readable(fmt.Sprint("at call ", n))
}

// beside makes live traffic at every call. If miss is not 0, the new index does not answer the
// write at every miss-th call.
func (g *ground) beside(miss int) {
	n := 0
	g.hook = func(string) error {
		n++
		row, writes := g.Row(shard.HealthRow("search")), n%2 == 0 || n%7 == 3 // only if traffic writes now
		if miss > 0 && n%miss == 0 && writes && row.RebuildInto != "" && n < 60 {
			if at := g.sink.Beside(row.RebuildInto); at != nil {
				at.ScriptRequests(memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}})
			}
		}
		g.traffic(n)
		return nil
	}
}

// killedEverywhere kills a rebuild at each call in turn, before or after the call takes effect.
// Then next must resume or abort the rebuild.
func killedEverywhere(t *testing.T, next func(g *ground, when string, err error) error) {
	t.Helper()
	t.Parallel()
	for kill, ended := 1, false; !ended && !t.Failed(); kill++ {
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				g := open(t)
				g.seed()
				g.beside(5)
				g.kill, g.after = kill, after
				_, err := g.startWith(g.service(), g.order())
				if ended = !g.dead; ended {
					t.Logf("%d calls", kill-1)
					return
				}
				when := fmt.Sprintf("killed at call %d, after it: %t", kill, after)
				g.kill, g.dead = 0, false
				if kill%2 == 0 {
					time.Sleep(job.HoldFor + time.Second)
				} else {
					g.stop()
				}
				// ErrNone: the rebuild had not begun, or was done and only its last answer was lost.
				if err := next(g, when, err); err != nil && !errors.Is(err, rebuild.ErrNone) {
					g.Fatalf("%s: %v", when, err)
				}
				g.hook = nil
				g.settled(when)
				g.clean(when, 0)
			})
		}
	}
}

func TestARebuildIsKilledAtEveryCallAndResumed(t *testing.T) {
	killedEverywhere(t, func(g *ground, when string, err error) error {
		if !errors.Is(err, errKilled) && err != nil { // the last answer may be lost
			g.Fatalf("%s: %v", when, err)
		}
		p, err := g.resume(g.service(), "bob", nil)
		if err != nil && p.Phase == rebuild.Creating {
			_, err = g.abort(g.service(), "bob")
		}
		return err
	})
}

func TestAWriteThatIsMissedWhileIndicesAreComparedIsRepaired(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		missed := false
		g.hook = func(call string) error {
			if call == "SEAL" && !missed { // just before the seal is set
				missed = true
				at := g.sink.Beside(g.Row(shard.HealthRow("search")).RebuildInto)
				at.Script("content#a", memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, Status: 429}})
				g.write("a", shard.Put)
			}
			return nil
		}
		p, err := g.startWith(g.service(), g.order())
		if err != nil || p.Passes != 2 || p.Repaired != 1 || p.Missed != 1 {
			g.Errorf("%+v, %v; want two comparisons, one repair, one missed write", p, err)
		}
		g.settled("at the end")
		g.clean("at the end", 0)
	})
}

func TestADeleteThatTheNewIndexMissedIsRepaired(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		g.hook = func(call string) error {
			if call == "SAVE RUN" && len(g.open) == 0 && g.committed["a"].kind == shard.Put {
				if at := g.sink.Beside(g.Row(shard.HealthRow("search")).RebuildInto); at != nil && len(walked(g,
					at)) > 0 {
					at.Script("content#a", memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown}})
					g.write("a", shard.Delete)
				}
			}
			return nil
		}
		p, err := g.startWith(g.service(), g.order())
		if err != nil || p.Missed != 1 || p.Repaired != 1 {
			g.Errorf("%+v, %v; want one missed write and one repair", p, err)
		}
		g.settled("at the end")
	})
}

func walked(g *ground, at *memorysink.Sink) (ids []string) {
	_ = at.All(context.WithoutCancel(g.Context()), func(s sink.Stored) error {
		ids = append(ids, s.Doc.ID())
		return nil
	})
	return ids
}

// strict refuses some documents in every new index.
func (g *ground) strict(ids ...string) {
	g.hook = func(string) error {
		if at := g.sink.Beside(g.Row(shard.HealthRow("search")).RebuildInto); at != nil {
			at.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
				for _, id := range ids {
					if op.Doc.ID() == id && op.Kind == shard.Put && string(op.Document) != `{"n":1}` {
						return memorysink.Answer{Outcome: sink.Outcome{
							Kind: sink.Rejected, Status: 400, Reason: "mapper_parsing_exception: field n",
						}}, true
					}
				}
				return memorysink.Answer{}, false
			})
		}
		return nil
	}
}

func TestWhatTheMappingRefusesIsCountedNamedAndLeftOutOnRequest(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		g.strict("b", "d")
		p, err := g.startWith(g.service(), g.order())
		if !errors.Is(err, rebuild.ErrRefused) || p.Left != 2 || fmt.Sprint(p.Refused) !=
			"[{b mapper_parsing_exception: field n} {d mapper_parsing_exception: field n}]" {
			g.Fatalf("%+v, %v; want two documents that are refused", p, err)
		}
		g.settled("before documents may be left out")
		one := 1
		if p, err = g.resume(g.service(), "bob", &one); !errors.Is(err, rebuild.ErrRefused) ||
			p.Left != 2 {
			g.Fatalf("got %+v, %v; want two documents that are still refused", p, err)
		}
		// The new index has accepted a version, and refuses the next one. Readers must not find the older
		// version.
		two := 2
		if p, err = g.resume(g.service(), "bob", &two); err != nil || p.Left != 2 ||
			p.Phase != rebuild.Done {
			g.Fatalf("%+v, %v", p, err)
		}
		delete(g.committed, "b")
		delete(g.committed, "d")
		g.settled("at the end")
		g.clean("at the end", 0)
	})
}

func TestAnOlderVersionOfADocumentThatIsRefusedIsNotWhatReadersFind(t *testing.T) {
	play(t, func(g *ground) {
		g.write("a", shard.Put) // version 1, which the mapping accepts
		g.write("b", shard.Put)
		g.strict("a")
		strict, calls := g.hook, 0
		g.hook = func(call string) error {
			if calls++; call == "versions" && g.committed["a"].fence == 1 {
				g.write("a", shard.Put)
			}
			return strict(call)
		}
		order := g.order()
		order.Allow = 1
		p, err := g.startWith(g.service(), order)
		if err != nil || p.Left != 1 {
			g.Fatalf("%+v, %v", p, err)
		}
		delete(g.committed, "a")
		g.settled("at the end")
	})
}

func TestARebuildIsAbortedAtEveryCallAndLeavesNothing(t *testing.T) {
	killedEverywhere(t, func(g *ground, _ string, _ error) error {
		_, err := g.abort(g.service(), "bob")
		if errors.Is(err, rebuild.ErrSwitched) {
			_, err = g.resume(g.service(), "bob", nil)
		}
		return err
	})
}

func TestASecondRebuildIsRefused(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		g.kill = 20
		_, _ = g.startWith(g.service(), g.order())
		g.kill, g.dead = 0, false
		if _, err := g.startWith(g.service(), g.order()); !errors.Is(err, rebuild.ErrBusy) {
			g.Errorf("while a program drives a rebuild: got %v, want %v", err, rebuild.ErrBusy)
		}
		time.Sleep(job.HoldFor + time.Second)
		if _, err := g.startWith(g.service(), g.order()); !errors.Is(err, rebuild.ErrUnderWay) {
			g.Errorf("after it was killed: %v, want %v", err, rebuild.ErrUnderWay)
		}
		if p, err := g.service().Status(g.Context()); err != nil || p.By != "ann" || p.Collection != "content" {
			g.Errorf("status %+v, %v", p, err)
		}
		if _, err := g.resume(g.service(), "bob", nil); err != nil {
			g.Error(err)
		}
		g.settled("at the end")
		if _, err := g.service().Status(g.Context()); !errors.Is(err, rebuild.ErrNone) {
			g.Errorf("at the end: %v, want %v", err, rebuild.ErrNone)
		}
	})
}

func TestASwitchWithoutAnAnswerIsLookedAt(t *testing.T) {
	t.Parallel()
	for what, applied := range map[string]bool{"carried out": true, "not carried out": false} {
		t.Run(what, func(t *testing.T) {
			play(t, func(g *ground) {
				g.seed()
				lost := false
				g.hook = func(call string) error {
					if call != "switch" || lost {
						return nil
					}
					lost = true
					if at := g.Row(shard.HealthRow("search")); applied {
						if err := g.sink.Switch(g.Context(), "content", "content", at.RebuildInto); err != nil {
							g.Error(err)
						}
					}
					return errors.New("no answer")
				}
				p, err := g.startWith(g.service(), g.order())
				if applied != (err == nil) {
					g.Fatalf("%+v, %v", p, err)
				}
				if !applied {
					if row := g.Row(shard.HealthRow("search")); row.RebuildSeal != 0 {
						g.Errorf("the health row still has the seal: %+v", row)
					}
					g.write("a", shard.Put)
					if p, err = g.resume(g.service(), "bob", nil); err != nil {
						g.Fatal(err)
					}
				}
				if p.Phase != rebuild.Done {
					g.Errorf("%+v, want it done", p)
				}
				g.settled("at the end")
				g.clean("at the end", 0)
			})
		})
	}
}

func TestANewIndexThatTakesNothingStopsTheRebuildNotTheWrites(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		full := true
		g.hook = func(call string) error {
			if at := g.sink.Beside(g.Row(shard.HealthRow("search")).RebuildInto); at != nil {
				at.SetRule(func(sink.Op) (memorysink.Answer, bool) {
					return memorysink.Answer{Outcome: sink.Outcome{
						Kind: sink.Configuration, Status: 403, Apart: true, Reason: "cluster_block_exception",
					}}, full
				})
			}
			if call == "SAVE RUN" {
				g.write("a", shard.Put)
			}
			return nil
		}
		p, err := g.startWith(g.service(), g.order())
		if err == nil || !strings.Contains(err.Error(), "cluster_block_exception") || len(g.open) > 0 {
			g.Fatalf("got %+v, %v, and %d writes that are not committed; want the block and no such write", p, err, len(g.open))
		}
		full = false
		if p, err = g.resume(g.service(), "bob", nil); err != nil || p.Phase != rebuild.Done {
			g.Fatalf("%+v, %v", p, err)
		}
		g.settled("at the end")
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		order := g.order()
		order.DryRun = true
		p, err := g.startWith(g.service(), order)
		if err != nil || p.Old != "content" || p.Total != 6 || p.New == "" {
			g.Errorf("%+v, %v", p, err)
		}
		g.clean("after it", 0)
	})
}

// picky is an engine that refuses a mapping if refuses is set, and that records its calls.
type picky struct {
	sink.Rebuilder

	refuses bool
	calls   []string
}

func (p *picky) Create(ctx context.Context, n sink.NewIndex) error {
	p.calls = append(p.calls, "create "+n.Name+" like "+n.Like+" "+string(n.Mapping)+string(n.Settings))
	if p.refuses {
		return fmt.Errorf("no analyzer x: %w", sink.ErrUnfit)
	}
	return p.Rebuilder.Create(ctx, n)
}

func (p *picky) Drop(ctx context.Context, index string) error {
	p.calls = append(p.calls, "drop "+index)
	return p.Rebuilder.Drop(ctx, index)
}

func TestADryRunTriesTheMapping(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*rebuild.Order)
		refuses bool
		paused  bool
		tries   bool
		fails   error
	}{
		"nothing changes":      {func(*rebuild.Order) {}, false, false, false, nil},
		"a mapping":            {func(o *rebuild.Order) { o.Mapping = []byte("{}") }, false, false, true, nil},
		"settings":             {func(o *rebuild.Order) { o.Settings = []byte("{}") }, false, false, true, nil},
		"a mapping that fails": {func(o *rebuild.Order) { o.Mapping = []byte("{}") }, true, false, true, sink.ErrUnfit},
		"a sink that is paused": {
			func(o *rebuild.Order) { o.Mapping = []byte("{}") }, false, true, false, rebuild.ErrPaused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(g *ground) {
				g.seed()
				order := g.order()
				order.DryRun, order.Mapping, order.Settings = true, nil, nil
				c.change(&order)
				s := g.service()
				engine := &picky{Rebuilder: s.Sink, refuses: c.refuses}
				s.Sink = engine
				if c.paused {
					usecasetest.Must(g.Shards.Write(g.Context(),
						shard.Pause(s.SinkName, shard.MicrosOf(time.Now()), "ann", "")))(g)
				}
				p, err := g.startWith(s, order)
				if !errors.Is(err, c.fails) {
					g.Errorf("got %v, want %v", err, c.fails)
				}
				var want []string
				if c.tries {
					want = []string{"create " + p.New + ".try like content {}", "drop " + p.New + ".try"}
				}
				if !slices.Equal(engine.calls, want) {
					g.Errorf("the engine was asked %q, want %q", engine.calls, want)
				}
			})
		})
	}
}

func TestWhatTheSourceDoesNotSendIsLeftOutOnRequest(t *testing.T) {
	play(t, func(g *ground) {
		g.fence = time.Now().UnixMicro()
		g.seed()
		g.fence = time.Now().Add(time.Hour).UnixMicro()
		order := g.order()
		order.Source = true
		p, err := g.startWith(g.service(), order)
		if err != nil || p.Phase != rebuild.Sourcing {
			g.Fatalf("%+v, %v; want it to wait for the source", p, err)
		}
		for _, id := range []string{"a", "b", "d", "e", "f"} { // all but g
			g.write(id, shard.Put)
		}
		if p, err = g.resume(g.service(), "ann", nil); !errors.Is(err, rebuild.ErrRefused) ||
			p.Left != 1 ||
			p.Refused[0].ID != "g" {
			g.Fatalf("%+v, %v; want g to be left out", p, err)
		}
		one := 1
		if _, err = g.resume(g.service(), "ann", &one); err != nil {
			g.Fatal(err)
		}
		delete(g.committed, "g")
		g.settled("at the end")
	})
}

func TestEarlierIndicesAreKeptAsManyAsWanted(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		for i, keep := range []int{2, 2, 2, 2, 0} {
			time.Sleep(time.Second)
			order := g.order()
			order.Keep = keep
			if p, err := g.startWith(g.service(), order); err != nil {
				g.Fatalf("%+v, %v", p, err)
			}
			g.clean(fmt.Sprint("rebuild ", i), min(i, keep))
		}
		order := g.order()
		order.Drop = true
		usecasetest.Must(g.startWith(g.service(), order))(g)
		g.clean("with --drop-old", 0)
		g.settled("at the end")
	})
}

// sleeper is the table of a program that is suspended once, after its seal is set.
type sleeper struct {
	shard.Store
	sleep func()
}

func (s sleeper) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	row, err := s.Store.Write(ctx, w)
	if w.Transition == shard.SEAL && err == nil {
		s.sleep()
	}
	return row, err
}

// setBack is the clock of a machine whose time was set back.
type setBack struct {
	clock.Clock
	by time.Duration
}

func (s *setBack) Now() time.Time { return s.Clock.Now().Add(-s.by) }

func TestAProgramThatSleptAtItsSealDoesNotSwitch(t *testing.T) {
	t.Parallel()
	for what, of := range map[string]struct {
		wakes string // the call of the other program at which the first program wakes
		back  bool   // then the clock of the first program is set to a time before its seal
	}{
		"while another waits for its call":                   {"standing", false},
		"after another removed the seal":                     {"versions", false},
		"after another removed the seal, and clock set back": {"versions", true},
		"after another set a seal":                           {"switch", false},
		"after another set a seal, and clock set back":       {"switch", true},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(g *ground) {
				g.seed()
				first, clk, wakes := g.service(), &setBack{Clock: clock.System{}}, of.wakes
				first.Clock = clk
				first.Shards = sleeper{first.Shards, func() {
					time.Sleep(job.HoldFor + time.Second)
					killed := false
					g.hook = func(call string) error {
						if killed {
							return errKilled
						}
						if call != wakes {
							return nil
						}
						killed = true
						if at := g.sink.Beside(g.Row(shard.HealthRow("search")).RebuildInto); wakes == "versions" {
							at.Script("content#a", memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown}})
							g.write("a", shard.Put)
						}
						return errKilled
					}
					if _, err := g.resume(g.service(), "bob", nil); !errors.Is(err, errKilled) {
						g.Fatalf("the other program got %v, want it killed", err)
					}
					g.hook = func(call string) error {
						if call == "switch" {
							g.Error("the first program switches the name")
						}
						return nil
					}
					if of.back {
						clk.by = 10 * time.Minute
					}
				}}
				// Timers do not run while the machine sleeps, so the limit of a step does not end the call.
				untimed := func(ctx context.Context, o rebuild.StepOrder) (rebuild.Cursor, bool, error) {
					return first.Step(context.WithoutCancel(ctx), o)
				}
				c, err := first.Plan(g.Context(), g.order())
				if err != nil {
					g.Fatal(err)
				}
				o := rebuild.StepOrder{Action: rebuild.Start, From: c, By: "ann"}
				if p, err := driven(g.Context(), first, o, untimed, nil); err == nil {
					g.Errorf("the first program ends with %+v, want an error", p)
				}
				g.hook = nil
				g.readable("when both have ended")
				time.Sleep(job.HoldFor + time.Second)
				if _, err := g.resume(g.service(), "eve", nil); err != nil {
					g.Error(err)
				}
				g.settled("at the end")
				g.clean("at the end", 0)
			})
		})
	}
}

// napper is the clock of a program that is suspended once, after it has read the time of day.
type napper struct {
	clock.System
	asks func() bool // reports whether to suspend the program now
}

func (n napper) Now() time.Time {
	now := n.System.Now()
	if n.asks() {
		time.Sleep(4 * time.Minute)
	}
	return now
}

// The time limit of the call that switches the name begins before the program reads the seal.
func TestAProgramThatSleptAfterItLookedAtTheSealDoesNotSwitch(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		var last string
		var sealed time.Time
		slept := false
		g.hook = func(call string) error {
			switch now := time.Now(); {
			case call == "SEAL":
				sealed = now
			case call == "switch" && now.Sub(sealed) > 30*time.Second:
				g.Errorf("the name is switched %s after the seal was set, want at most 30 s", now.Sub(sealed))
			}
			last = call
			return nil
		}
		s := g.service()
		s.Clock = napper{asks: func() bool {
			now := last == "read" && !sealed.IsZero() && !slept
			slept = slept || now
			return now
		}}
		if p, err := g.startWith(s, g.order()); err == nil || !slept {
			g.Errorf("%+v, %v, slept: %t; want an error", p, err, slept)
		}
		if p, err := g.resume(g.service(), "bob", nil); err != nil || p.Phase != rebuild.Done {
			g.Errorf("%+v, %v", p, err)
		}
		g.settled("at the end")
	})
}

func TestAPausedSinkIsNotRebuilt(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		pause := func() { g.Write(shard.Pause("search", usecasetest.Now(), "ann", "")) }
		resume := func() {
			g.Write(shard.Resume("search", g.Row(shard.HealthRow("search")), usecasetest.Now(), g.Config.Retry.OpenFor))
		}
		pause()
		if p, err := g.startWith(g.service(), g.order()); !errors.Is(err, rebuild.ErrPaused) {
			g.Errorf("%+v, %v; want %v", p, err, rebuild.ErrPaused)
		}
		g.clean("after a start that was refused", 0)
		resume()
		paused := false
		g.hook = func(call string) error {
			if call == "stop fill" && !paused {
				paused = true
				pause()
			}
			return nil
		}
		if p, err := g.startWith(g.service(), g.order()); !errors.Is(err, rebuild.ErrPaused) {
			g.Errorf("paused before the comparison: got %+v, %v; want %v", p, err, rebuild.ErrPaused)
		}
		if _, err := g.resume(g.service(), "bob", nil); !errors.Is(err, rebuild.ErrPaused) {
			g.Errorf("resumed: %v, want %v", err, rebuild.ErrPaused)
		}
		resume()
		if _, err := g.resume(g.service(), "bob", nil); err != nil {
			g.Error(err)
		}
		g.settled("at the end")
	})
}
