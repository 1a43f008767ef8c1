// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Jobbing is an operator whose job is run by one program after the other, and sometimes by two at a
// time. Programs are killed, slow or stopped. Each step is a call of the API, and each call is an
// invocation.
type Jobbing struct {
	w     *World
	dice  dice
	id    string
	limit int // the most rows or messages of a step
	run   func(ctx context.Context, r job.Runner, api operate.API) error
	over  func(job.State) bool // whether the job need not start again
	due   time.Duration        // the earliest time of the last start
	edits jobEdits
	// begun is called with the state of a job that starts. whole is called with the state of a
	// finished job. begun and whole may be nil.
	origin *origin // the source that the steps ask; nil if they ask none
	begun  func(job.State)
	whole  func(s job.State, fail func(rule string))
	// dropped are the dead letters that the steps have deleted since the job started.
	dropped map[string]bool

	tries   int
	tokens  map[int64][]shard.Token // the tokens of each program's leases
	stopped map[shard.Token]bool
	stops   map[int64]bool // programs that stop the job
	edges   map[string][]jobEdge
	known   map[string]bool // states that the row may have; nil if a step makes several calls of the API
	first   map[time.Time]map[shard.DocID]shard.OrderKey

	renewed int  // documents of which a newer version was sent
	lapse   bool // nobody sends one
	others  int  // programs that were refused another file

	killed, lost, late, continued, done int
}

// jobEdge is the result of a step, as the step's program knows it.
type jobEdge struct {
	to     string
	did    int
	counts map[string]int
}

// jobEdits change the simulated run of a job, to make mutants. Nil fields change nothing.
type jobEdits struct {
	store    func(shard.Store) shard.Store
	backfill func(error) error           // changes the error of a step of a backfill
	order    func(*operate.LetterOrder)  // changes the order of each step of a redrive or drop
	done     func(*operate.LetterResult) // changes the answer to such a step
	dead     func(deadletter.Store) deadletter.Store
	publish  func(*operate.Publication) // each step of a resync
	operate  func(*operate.Operator)    // what a step runs with
	forget   func(*operate.ForgetOrder) // each step of a forget
	forgot   func(operate.ForgetOrder, *operate.ForgetStep)
}

// jobbed returns the state of a job in a simulated run.
func jobbed(seed uint64, id string, edits jobEdits) *Jobbing {
	d := newDice(seed, 0x6a6f6273)
	return &Jobbing{
		dice: d, id: id, limit: 1 + d.IntN(3), edits: edits, tokens: map[int64][]shard.Token{},
		stopped: map[shard.Token]bool{}, stops: map[int64]bool{}, edges: map[string][]jobEdge{},
		known: map[string]bool{}, first: map[time.Time]map[shard.DocID]shard.OrderKey{},
	}
}

// state returns the state in the job's row.
func (j *Jobbing) state() (s job.State) {
	_ = json.Unmarshal([]byte(j.w.table.row(shard.RunRow("job-"+j.id)).Cursor), &s)
	return s
}

// jobAPI is the API as a program calls it.
type jobAPI struct {
	j *Jobbing
	v *invocation
}

// call makes a call of the API in its own invocation, which may be killed while the program
// continues. The program may be slow before and after the call.
func (a jobAPI) call(ctx context.Context, do func(ctx context.Context, o *operate.Operator) error) error {
	w, j := a.j.w, a.j
	j.sleep(a.v)
	var answer error
	ended := false
	w.after(0, func() {
		w.invoke("operator", w.cfg.Index.SinkDeadline+5*time.Second, func(ctx context.Context, v *invocation) {
			o := w.operate(v, j.edits.operate)
			if w.archive != nil {
				o.Archive = archiveClient{w.archive, v}
			}
			o.Queues = func(sink string, lane flight.Lane) queue.Queue { return v.Queue(w.pipeNamed(sink).lane(lane)) }
			o.Publisher = func(ctx context.Context, sink string, lane flight.Lane, out queue.Outgoing) error {
				w.oracle.recordPublished(feed.RouteOf(w.cfg, w.sources, queue.Message{
					Body: out.Body, Attributes: out.Attributes, Sent: epoch.Add(w.now),
				}))
				if errs := v.Queue(w.pipeNamed(sink).lane(lane)).Send(ctx, []queue.Outgoing{out}); errs != nil {
					return errs[0]
				}
				return nil
			}
			answer = do(ctx, &o)
		}, func(died error) {
			if ended = true; died != nil {
				answer = died
			}
		})
	})
	for !ended {
		if err := a.v.await(ctx, w.now+200*time.Millisecond); err != nil {
			return err
		}
	}
	j.sleep(a.v)
	return answer
}

// sleep makes a program slow, in some cases for longer than its lease.
func (j *Jobbing) sleep(v *invocation) {
	if !j.w.calm && j.dice.chance(0.15) {
		_ = v.pause(j.dice.upTo(4 * time.Minute))
	}
}

func (a jobAPI) Backfill(ctx context.Context, o operate.BackfillOrder) (step operate.BackfillStep, err error) {
	o.Limit = a.j.limit
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		if step, err = op.API().Backfill(ctx, o); a.j.edits.backfill != nil {
			err = a.j.edits.backfill(err)
		}
		return err
	})
	if err == nil {
		a.j.stepped(o.Cursor, step.Next, step.Outcomes[operate.Copied], step.Outcomes)
	}
	return step, err
}

// stepped records the result of a step.
func (j *Jobbing) stepped(from, to any, did int, counts map[string]int) {
	text := jsonOf(from)
	counts = maps.Clone(counts)
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	j.edges[text] = append(j.edges[text], jobEdge{jsonOf(to), did, counts})
}

func jsonOf(v any) string {
	text, _ := json.Marshal(v) // texts and numbers only
	return string(text)
}

func knownAs(begun time.Time, steps int, at string, did int, counts map[string]int) string {
	return fmt.Sprint(begun.UnixMicro(), steps, at, did, jsonOf(counts))
}

// see checks each write of the job's row. The stored state must follow by one step from an earlier
// state. The earlier state was stored, or could have been stored.
func (j *Jobbing) see(s Step) {
	if s.What != Wrote || s.Write.Doc != shard.RunRow("job-"+j.id) {
		return
	}
	fail := func(rule string) {
		j.w.oracle.always(rule, fmt.Sprintf("%s by %d: %s, was %s", s.Write.Transition, s.By, s.New.Cursor, s.Old.Cursor))
	}
	var old, now job.State
	_, _ = json.Unmarshal([]byte(s.Old.Cursor), &old), json.Unmarshal([]byte(s.New.Cursor), &now)
	switch {
	case s.Write.Transition == shard.STARTRUN:
		return
	case j.stops[s.By]:
		j.stopped[s.Old.Owner] = true
	case !slices.Contains(j.tokens[s.By], s.Old.Owner):
		fail("a program without the lease of a job stores nothing")
	case j.stopped[s.Old.Owner]:
		fail("a program whose job was stopped stores nothing")
	}
	if old.Phase == job.Done && now.Phase != job.Done && now.Begun.Equal(old.Begun) {
		fail("a job that is done stays done")
	}
	if now.Steps > 0 && old.Phase != job.Running && now.Phase == job.Running {
		j.continued++
	}
	if !j.follows(now) {
		fail("the cursor and the counts of a job are those of its steps")
	}
	switch {
	case now.Steps == 0 && j.first[now.Begun] == nil:
		j.first[now.Begun] = j.w.committed()
		if j.begun != nil {
			j.begun(now)
		}
	case now.Phase == job.Done && old.Phase != job.Done:
		j.done++
		if j.complete(now, fail); j.whole != nil {
			j.whole(now, fail)
		}
	}
}

// follows reports whether a state may be stored.
func (j *Jobbing) follows(s job.State) bool {
	if j.known == nil {
		return true
	}
	if s.Counts == nil {
		s.Counts = map[string]int{}
	}
	key := knownAs(s.Begun, s.Steps, string(s.At), s.Did, s.Counts)
	if s.Steps == 0 && s.Did == 0 && len(s.Counts) == 0 {
		j.known[key] = true
	}
	for from, edges := range j.edges {
		for _, e := range edges {
			if j.known[key] || e.to != string(s.At) {
				continue
			}
			counts := maps.Clone(s.Counts)
			for outcome, n := range e.counts {
				if counts[outcome] -= n; counts[outcome] == 0 {
					delete(counts, outcome)
				}
			}
			j.known[key] = j.known[knownAs(s.Begun, s.Steps-1, from, s.Did-e.did, counts)]
		}
	}
	return j.known[key]
}

// committed returns the committed versions of the first sink.
func (w *World) committed() map[shard.DocID]shard.OrderKey {
	all := map[shard.DocID]shard.OrderKey{}
	for r := range w.table.rows.All() {
		if r.Doc.IsDocument() && r.Doc.Sink() == "" && r.Committed != "" && !r.Committed.IsFloor() {
			all[r.Doc] = r.Committed
		}
	}
	return all
}

// complete compares the result of a finished job with the rows at its start.
func (j *Jobbing) complete(s job.State, fail func(rule string)) {
	if s.Verb != "backfill" {
		return
	}
	for r := range j.w.table.rows.All() {
		if reconcile.Copying(r) && !refusedCopy(s, r.Doc) {
			fail("a backfill that is done has completed its copies")
		}
	}
	if unclean(s) > 0 {
		return
	}
	for doc, k := range j.first[s.Begun] {
		if there := j.w.table.row(doc.In("vectors")).Committed; there < k {
			fail(fmt.Sprintf("a backfill that is done left nothing out: %s is at %q, not %q", doc, there, k))
		}
	}
}

// refusedCopy reports whether the lines of a backfill say that the sink refused this document, and
// that the document was the cause.
func refusedCopy(s job.State, doc shard.DocID) bool {
	return slices.ContainsFunc(s.Lines, func(text json.RawMessage) bool {
		var l operate.BackfillLine
		return json.Unmarshal(text, &l) == nil && l.Key == doc &&
			(strings.HasPrefix(l.Error, "put: "+sink.Refused.String()) ||
				strings.HasPrefix(l.Error, "put: "+sink.Rejected.String()))
	})
}

// unclean returns how many documents a backfill has to check again.
func unclean(s job.State) int {
	return s.Counts[operate.InMotion] + s.Counts[operate.Failed] + s.Counts[operate.Differs]
}

// laterStore is the table of a program. Some writes of the job's row arrive late, after a retry.
type laterStore struct {
	shard.Store
	j *Jobbing
	v *invocation
}

func (l laterStore) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	j := l.j
	if w.Doc == shard.RunRow("job-"+j.id) && !j.w.calm && j.dice.chance(0.15) && !l.v.Killed() {
		j.late++
		j.w.after(j.dice.upTo(3*time.Minute), func() { _, _ = j.w.table.write(l.v, w) })
		return shard.Row{}, errors.New("no answer")
	}
	return l.Store.Write(ctx, w)
}

// ledger returns the store of jobs for one program.
func (j *Jobbing) ledger(v *invocation) job.Ledger {
	l := job.Ledger{Shards: laterStore{j.w.shards(v), j, v}, Clock: v.clock, NewToken: func() shard.Token {
		t := j.w.newToken()
		j.tokens[v.ID] = append(j.tokens[v.ID], t)
		return t
	}}
	if j.edits.store != nil {
		l.Shards = j.edits.store(l.Shards)
	}
	return l
}

// program runs the job's command once.
func (j *Jobbing) program(then func()) {
	w := j.w
	w.operator++
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		if !w.calm && j.dice.chance(0.4) {
			v.doom = 1 + j.dice.IntN(20)
		}
		if j.dice.chance(0.2) { // an operator interrupts the program
			ctx, _ = limit(ctx, &w.scheduler, w.now+j.dice.upTo(3*time.Minute))
		}
		r := job.Runner{Store: j.ledger(v), Clock: v.clock, By: "the simulator", Rate: oneOf(j.dice, 0, 0, 0.5)}
		if err := j.run(ctx, r, operatetest.API(operate.API{}, jobAPI{j, v})); errors.Is(err, job.ErrLost) {
			j.lost++
		}
	}, func(died error) {
		if died != nil {
			j.killed++
		}
		w.operator--
		then()
	})
}

// stop simulates an operator who stops the job.
func (j *Jobbing) stop() {
	w := j.w
	w.operator++
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		j.stops[v.ID] = true
		_ = j.ledger(v).StopJob(ctx, j.id, "another")
	}, func(error) { w.operator-- })
}

// next runs one program after the other until the job is done and need not start again.
func (j *Jobbing) next() {
	w := j.w
	s := j.state()
	if s.Phase == job.Done && j.over(s) {
		w.operator--
		return
	}
	if s.Phase == job.Done && w.calm && w.now < j.due {
		w.after(j.due-w.now, j.next)
		return
	}
	if j.tries++; j.tries > 100 {
		w.operator--
		w.oracle.always("a job ends", fmt.Sprintf("%+v", s))
		return
	}
	if !w.calm && j.dice.chance(0.4) { // a second program runs the same command
		w.after(j.dice.upTo(3*time.Minute), func() { j.program(func() {}) })
	}
	if !w.calm && j.dice.chance(0.3) {
		w.after(j.dice.upTo(time.Minute), j.stop)
	}
	w.after(time.Second+j.dice.upTo(30*time.Second), func() { j.program(j.next) })
}

// begin starts the operator at a given time.
func (j *Jobbing) begin(w *World, at time.Duration) {
	j.w = w
	w.operator++
	w.after(at, j.next)
}

// Filled is the level of [filling], which exists only in tests.
const Filled Level = "filled"

// filling returns the simulated run of a seed in which a sink is added and a job fills it.
func filling(t testing.TB, seed uint64, edits jobEdits, change ...func(*Options)) (*World, *Jobbing) {
	t.Helper()
	j := jobbed(seed, "backfill-content@vectors", edits)
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) {
		vary(seed, cfg)
		fanOut(cfg)
	})
	w := begin(t, Options{
		Config: cfg, Seed: seed, Faults: Swarm, Upstream: Write(seed, sourcesOf(t, cfg)), Watch: j.see,
	}, change...)
	at := j.dice.upTo(w.options.Upstream.Calm / 2)
	w.added = map[string]time.Duration{"vectors": at}
	order := operate.BackfillOrder{Collection: "content", Sink: "vectors", By: "the simulator"}
	j.run = func(ctx context.Context, r job.Runner, api operate.API) error {
		_, err := job.Run(ctx, r, operate.BackfillJob(api, order, 0), func(operate.BackfillLine) {})
		return err
	}
	// The job runs once more when all messages of the first sink's queue and schedule have arrived.
	// At the first run, no row knew these messages.
	last, again := time.Duration(0), 0
	j.over = func(s job.State) bool {
		j.due = max(w.oracle.lastDue+20*time.Minute, w.options.Upstream.Calm+5*time.Minute)
		if w.now < j.due {
			return false
		} else if last == 0 {
			last = w.now
		}
		if s.Begun.Before(epoch.Add(last)) {
			return false
		}
		again++
		begun := slices.ContainsFunc(slices.Collect(w.table.rows.All()), func(r shard.Row) bool {
			return reconcile.Copying(r)
		})
		return !begun && (unclean(s) == 0 || again > 20)
	}
	j.begin(w, at+j.dice.upTo(20*time.Second))
	return w, j
}

// TestASinkIsFilledByAJobWhateverFails: programs are killed and stopped, and two run at a time. The
// added sink must still get all documents of the first sink. The counts of the job must be the
// counts of its steps.
func TestASinkIsFilledByAJobWhateverFails(t *testing.T) {
	t.Parallel()
	var last *Jobbing
	sum := &Jobbing{}
	copied, compared := 0, 0
	for w, r := range runs(t, 300, Filled, func(seed uint64) (w *World) {
		w, last = filling(t, seed, jobEdits{})
		return w
	}) {
		sum.add(last)
		copied += w.coverage[step(journal.Copied)]
		for doc, first := range w.oracle.docs {
			if !doc.IsDocument() || doc.Sink() != "" || first.committed == "" || w.HasDied(doc) {
				continue
			}
			compared++
			if second := w.oracle.docs[doc.In("vectors")]; second == nil || second.committed < first.committed {
				t.Errorf("seed %d: %s is at %s in the first sink, and at %+v in the added one", r.Seed, doc, first.committed,
					second)
			}
		}
	}
	sum.report(t)
	if copied == 0 || compared == 0 {
		t.Errorf("%d copied, %d compared: want some of each", copied, compared)
	}
}

// TestTheSameSeedGivesTheSameTraceOfAJob: the seed also decides each wait of a job.
func TestTheSameSeedGivesTheSameTraceOfAJob(t *testing.T) {
	t.Parallel()
	for seed := range seeds(300) {
		var traces [2]string
		for i := range traces {
			w, _ := filling(t, seed+1, jobEdits{})
			traces[i] = w.Run().Summary(Swarm).Trace
		}
		if traces[0] != traces[1] {
			t.Fatalf("seed %d: the traces differ", seed+1)
		}
	}
}

func (j *Jobbing) add(o *Jobbing) {
	j.killed, j.lost, j.late = j.killed+o.killed, j.lost+o.lost, j.late+o.late
	j.continued, j.done = j.continued+o.continued, j.done+o.done
}

func (j *Jobbing) report(t *testing.T) {
	t.Helper()
	t.Logf("%d programs killed, %d lost their lease, %d late writes, %d times continued, %d times done", j.killed, j.lost,
		j.late, j.continued, j.done)
	if min(j.killed, j.lost, j.late, j.continued, j.done) == 0 {
		t.Error("no simulated run reaches this case")
	}
}
