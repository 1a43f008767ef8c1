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
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/pipeline/index"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Rebuilding is an operator who rebuilds the collection, in some simulated runs from an export.
// Programs are killed, and other programs resume. Some programs sleep after they have written SEAL.
type Rebuilding struct {
	w      *World
	e      *engine
	dice   dice
	at     time.Duration
	source bool          // an export fills the new index
	export time.Duration // when the export was made
	copies map[string][]*engineCopy

	edits   rebuildEdits
	missing float64              // the chance that the new index does not take a write of a turn
	walks   [][][]sink.Versioned // the pages that are left of each walk
	tries   int
	stops   int  // of the job
	lost    int  // programs that another one has taken the job from
	aborts  bool // the operator aborts the rebuild once
	dead    int  // number of programs that were killed
	slept   int
	newer   int
	phases  map[rebuild.Phase]bool
	traffic int // number of writes by turns to the new index
	// erased has, for each document, the newest delete that a turn applied to the index in use,
	// committed or not.
	erased map[shard.DocID]shard.OrderKey
}

// engineCopy is a copy by the engine, which continues if no program waits for it.
type engineCopy struct{ ended, stopped bool }

// Rebuilt is the level of [rebuilding], which exists only in tests.
const Rebuilt Level = "rebuild"

// rebuildEdits change the simulated run of a rebuild, to make mutants. Nil fields change nothing.
type rebuildEdits struct {
	service func(b *Rebuilding, v *invocation, s *rebuild.Service)
	turn    func(*index.Handler)
	watch   func(Step)
	one     bool // so that the model can follow: one document with few versions, no export, no KEEP
}

// rebuilding returns the simulated run of a seed in which the collection is rebuilt.
func rebuilding(t testing.TB, seed uint64, edits rebuildEdits, change ...func(*Options)) (*World, *Rebuilding) {
	t.Helper()
	d := newDice(seed, 0x7265627569)
	b := &Rebuilding{
		dice: d, source: d.chance(0.4) && !edits.one, copies: map[string][]*engineCopy{},
		erased: map[shard.DocID]shard.OrderKey{}, edits: edits, aborts: d.chance(0.1),
		phases: map[rebuild.Phase]bool{}, missing: 0.2,
	}
	cfg := settings(t, true, func(cfg *config.Config) {
		vary(seed, cfg)
		cfg.TableOutage = config.TableOutageClosed
		if d.chance(0.5) && !edits.one {
			s := cfg.Sinks["search"]
			s.Unchanged = sink.Keep
			cfg.Sinks["search"] = s
		}
	})
	b.at = 20*time.Second + d.upTo(2*time.Minute)
	faults, over := Swarm, 3*time.Minute
	if !b.source && d.chance(0.7) { // the seal is set under traffic: no SEAL succeeds after a missed write
		faults, over, b.missing, b.at = NoFaults, 5*time.Minute, 0.005, 5*time.Second
	}
	hooks := Hooks{Index: func(h *index.Handler) {
		v, _ := h.Journal.(*invocation)
		whole, _ := h.Sink.(wholeSink)
		h.Sink = mirrored{whole, v, b}
		hooked(edits.turn, h)
	}}
	b.export = max(b.at-d.upTo(90*time.Second), 0)
	upstream := write(seed, sourcesOf(t, cfg), shape{again: d.chance(0.5), more: 8, over: over, docs: 8})
	if edits.one {
		upstream = slowly(writeOne(seed, sourcesOf(t, cfg)))
	}
	o := Options{Config: cfg, Seed: seed, Faults: faults, Hooks: hooks, Watch: b.see, Upstream: upstream}
	w := begin(t, o, change...)
	if edits.one { // the model of a rebuild has no version that is refused for good
		w.rates.ItemRefused = 0
	}
	b.w, b.e = w, w.pipes[0].engine
	w.after(b.at, func() {
		w.operator++
		b.drive(rebuild.Start, func() { b.next() })
	})
	if d.chance(0.25) && faults == Swarm {
		w.pausing(Pausing{At: b.at + d.upTo(time.Minute), For: d.upTo(time.Minute)})
	}
	if d.chance(0.5) && !edits.one {
		for range 3 {
			w.after(b.at+d.upTo(3*time.Minute), b.reconcile)
		}
	}
	return w, b
}

// slowly stretches the versions of one document over the time of a rebuild, and removes poison.
func slowly(u Upstream) Upstream {
	for i := range u.Arrivals {
		u.Arrivals[i].At *= 6
	}
	u.Calm, u.poisons = 6*u.Calm, nil
	return u
}

// see records which deletes were applied.
func (b *Rebuilding) see(s Step) {
	if b.edits.watch != nil {
		b.edits.watch(s)
	}
	if s.What == Answered && !s.Beside && s.Outcome.Kind == sink.Applied && s.Op.Kind == shard.Delete {
		b.erased[s.Op.Doc] = max(b.erased[s.Op.Doc], s.Op.Key)
	}
}

func (b *Rebuilding) collection() shard.Collection {
	return shard.Collection(b.w.cfg.DefaultCollection)
}

// reconcile runs the command once.
func (b *Rebuilding) reconcile() {
	w := b.w
	w.operator++
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		o := w.operate(v, nil)
		for r := (operate.ReconcileOrder{Collection: b.collection(), By: "the simulator"}); ; {
			p, err := o.API().Reconcile(ctx, r)
			if err != nil || p.Next == nil {
				return
			}
			r.From = *p.Next
		}
	}, func(error) { w.operator-- })
}

// drive runs one program.
func (b *Rebuilding) drive(action rebuild.Action, then func()) {
	w := b.w
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		table := &sealing{Store: w.shards(v), v: v, b: b}
		s := &rebuild.Service{
			Shards: table, Sink: rebuilder{v, b}, SinkName: "search",
			Config: w.cfg, Clock: v.clock,
			Stale: w.drawn.StaleBy + 2*w.drawn.Skew, Journal: v, NewToken: w.newToken,
			Idle: func(context.Context) (bool, error) { return w.pipes[0].bulk.total() == 0, nil },
		}
		if b.edits.service != nil {
			b.edits.service(b, v, s)
		}
		all := 1000
		o := rebuild.StepOrder{Action: action, By: "another", Allow: &all}
		var err error
		if action == rebuild.Start {
			o.By = "the simulator"
			o.From, err = s.Plan(ctx, rebuild.Order{Collection: b.collection(), Source: b.source, Allow: all, By: o.By})
		} else {
			o.From, err = s.Continue(ctx, action)
		}
		if err != nil {
			return
		}
		r := job.Runner{
			Store: job.Ledger{Shards: s.Shards, Clock: v.clock, NewToken: w.newToken}, Clock: v.clock, By: o.By,
		}
		state, err := job.Run(ctx, r, rebuild.Job("search", o, func(ctx context.Context, o rebuild.StepOrder) (
			rebuild.Cursor, bool, error,
		) {
			// A machine that sleeps before or after it sets the seal does not run its timers
			// either.
			table.seals = o.From.Phase == rebuild.Switching && o.From.Stage == "" && !o.Again && !w.calm
			if table.seals {
				ctx = context.WithoutCancel(ctx)
			}
			return s.Step(ctx, o)
		}), func(rebuild.Progress) {})
		if errors.Is(err, job.ErrLost) {
			b.lost++
		}
		p, _ := rebuild.ResultOf(state, nil)
		b.newer = max(b.newer, p.Newer)
	}, func(err error) {
		if err != nil {
			b.dead++
		}
		then()
	})
}

// stop is an operator who stops the job, whatever its program does.
func (b *Rebuilding) stop() {
	w := b.w
	b.stops++
	w.operator++
	w.invoke("operator", patience, func(ctx context.Context, v *invocation) {
		ledger := job.Ledger{Shards: w.shards(v), Clock: v.clock, NewToken: w.newToken}
		_ = ledger.StopJob(ctx, "rebuild-search", "a third")
	}, func(error) { w.operator-- })
}

// next runs programs until no part of a rebuild remains.
func (b *Rebuilding) next() {
	w := b.w
	run, health := w.table.row(shard.RunRow("job-rebuild-search")), w.table.row(shard.HealthRow("search"))
	var state job.State
	_ = json.Unmarshal([]byte(run.Cursor), &state)
	p := rebuild.Progress{}
	_ = json.Unmarshal(state.At, &p)
	b.tries++
	b.phases[p.Phase] = true
	wait, action := time.Second+b.dice.upTo(2*time.Minute), rebuild.Resume
	switch {
	case health.RebuildSeal != 0 && b.dice.chance(0.8): // while the call that switches the name is on its way
		b.stop()
		wait = time.Second + b.dice.upTo(10*time.Second)
	case b.dice.chance(0.3):
		b.stop()
	}
	switch {
	case !state.Active() && health.RebuildAt == 0:
		if w.operator--; b.tries > 60 {
			w.oracle.always("a rebuild ends", "it did not begin")
		}
		return
	case b.tries > 60:
		w.operator--
		w.oracle.always("a rebuild ends", run.Cursor)
		return
	case p.Phase == rebuild.Sourcing && !b.phases["sent"]:
		b.phases["sent"] = true
		b.send()
		wait = time.Minute
	case !state.Active(), p.Phase == rebuild.Creating, strings.Contains(state.Error, "abort it"),
		strings.Contains(p.Error, "abort it"):
		action = rebuild.Abort
	case b.aborts && p.Phase != rebuild.Sourcing:
		b.aborts, action = false, rebuild.Abort
	}
	w.after(wait, func() { b.drive(action, b.next) })
}

// send sends the lines of the export: the documents that existed when the export was made, with
// their state at that time.
func (b *Rebuilding) send() {
	latest, at := map[string]string{}, map[string]int64{}
	for _, a := range b.w.options.Upstream.Arrivals {
		if a.At > b.export || strings.Contains(a.Message.Body, "resyncrun") {
			continue
		}
		var e struct{ Type, Subject, Sequence string }
		if json.Unmarshal([]byte(a.Message.Body), &e) != nil || e.Subject == "" || e.Sequence == "" {
			continue
		}
		var n int64
		if _, err := fmt.Sscan(e.Sequence, &n); err != nil || n < at[e.Subject] {
			continue
		}
		if at[e.Subject] = n; e.Type == "doc.deleted" {
			delete(latest, e.Subject)
		} else {
			latest[e.Subject] = a.Message.Body
		}
	}
	for i, id := range slices.Sorted(maps.Keys(latest)) {
		line := `{"mode":"resync","resyncrun":"01JD2V6Y5T3KQ8Z4M7N9P0R1S9",` + latest[id][1:]
		b.w.after(time.Duration(i)*100*time.Millisecond, func() { b.w.publish(queue.Outgoing{Body: line}) })
	}
}

// sealing is the table of a program that may sleep, or be killed, around its SEAL. In the meantime
// the job is stopped, or its lease ends, and another program resumes.
type sealing struct {
	shard.Store
	v     *invocation
	b     *Rebuilding
	seals bool // what is read next is where the job is, before the seal is set
}

func (s *sealing) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	rows, err := s.Store.Read(ctx, docs, c)
	// The model has one program at a time.
	if s.seals && !s.b.edits.one && !s.v.Killed() && s.b.dice.chance(0.3) {
		s.b.overtaken(time.Second)
		_ = s.v.pause(s.b.dice.upTo(6 * time.Minute))
	}
	s.seals = false
	return rows, err
}

func (s *sealing) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	b := s.b
	row, err := s.Store.Write(ctx, w)
	if w.Transition == shard.UNSEAL && err == nil {
		b.missing = 0.3 // a program that sleeps may wake up now
	}
	if w.Transition == shard.SEAL && err == nil && !s.v.Killed() && !b.w.calm {
		switch {
		case b.dice.chance(0.4):
			b.slept++
			if b.dice.chance(0.8) {
				b.overtaken(11 * time.Second)
			} else {
				b.w.operator++
				b.w.after(job.HoldFor+time.Second, func() { b.drive(rebuild.Resume, func() { b.w.operator-- }) })
			}
			b.sleep(s.v)
		case b.dice.chance(0.4): // turns find the SEAL, and the name is switched
			_ = s.v.pause(b.dice.upTo(9 * time.Second))
		default: // it is killed, perhaps while its call that switches the name is on its way
			s.v.doom = 1 + b.dice.IntN(2)
		}
	}
	return row, err
}

// sleep has a program wake up some time after another one has broken its seal.
func (b *Rebuilding) sleep(v *invocation) {
	for range 60 {
		if v.pause(5*time.Second) != nil || b.w.table.row(shard.HealthRow("search")).RebuildSeal == 0 {
			break
		}
	}
	_ = v.pause(b.dice.upTo(time.Minute))
}

// overtaken stops the job after a while, and resumes it with another program.
func (b *Rebuilding) overtaken(after time.Duration) {
	w := b.w
	w.operator++
	w.after(after, func() {
		b.stop()
		w.after(time.Second, func() { b.drive(rebuild.Resume, func() { w.operator-- }) })
	})
}

// wholeSink has the methods of a sink that index uses in the simulator.
type wholeSink interface {
	sink.Sink
	sink.Generator
	sink.Sampler
	Get(ctx context.Context, doc shard.DocID) (sink.Stored, bool, error)
}

// mirrored is the sink of a turn that can write to a second index.
type mirrored struct {
	wholeSink
	v *invocation
	b *Rebuilding
}

func (m mirrored) Into(c shard.Collection, name string) sink.Sink {
	return m.v.Sink(intoClient{m.wholeSink, m.v, m.b, c, name})
}

// intoClient writes to an index by its name.
type intoClient struct {
	sink.Sink
	v     *invocation
	b     *Rebuilding
	c     shard.Collection
	index string
}

// Write is one bulk request to the index. The request may be carried out after the caller has
// stopped waiting.
func (c intoClient) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	w, out := c.v.w, make([]sink.Outcome, len(ops))
	for i := range out {
		out[i] = sink.Outcome{Kind: sink.Unknown, Reason: "time-out"}
	}
	answers := slices.Clone(out)
	late := time.Duration(0)
	if w.strikes("sink late", w.rates.SinkLate) || !w.calm && c.b.dice.chance(0.15) {
		late = w.dice.upTo(lateness)
	}
	if c.b.request(ctx, c.v, late, ops, func() {
		for i, op := range ops {
			c.b.traffic++
			switch {
			case !w.calm && c.b.dice.chance(c.b.missing), w.strikes("item refused", w.rates.ItemRefused):
				answers[i] = sink.Outcome{Kind: sink.Refused, Status: 500, Reason: "item failed"}
			case w.strikes("item throttled", w.rates.ItemThrottle):
				answers[i] = sink.Outcome{Kind: sink.Throttled, Status: 429, Reason: "busy"}
			default:
				answers[i] = c.b.write(c.v, c.c, c.index, op)
			}
		}
	}) != nil {
		return out
	}
	return answers
}

// tornAfter is the longest time between sending a request and carrying it out. Package rebuild
// waits longer.
const tornAfter = 29 * time.Second

// request sends a request about these items to an index by its name.
func (b *Rebuilding) request(ctx context.Context, v *invocation, late time.Duration, ops []sink.Op, do func()) error {
	at := time.Duration(0)
	return v.send(ctx, fault.Search, late, func() {
		at = b.w.now
		b.about(v, Sent, ops)
	}, func() {
		if b.w.now-at < tornAfter {
			do()
		}
		b.about(v, Landed, ops)
	})
}

// about reports the items of a request to the new index.
func (b *Rebuilding) about(v *invocation, what StepKind, ops []sink.Op) {
	for _, op := range ops {
		b.w.watch(v, Step{What: what, Op: op, Beside: true})
	}
}

// write writes to an index now.
func (b *Rebuilding) write(v *invocation, c shard.Collection, index string, op sink.Op) sink.Outcome {
	out := b.e.docs.Into(c, index).Write(background, []sink.Op{op})[0]
	b.w.watch(v, Step{What: Answered, Op: op, Outcome: out, Beside: true})
	if at, _ := b.e.docs.Standing(background, c); at.Index == index {
		b.look(op.Doc, "a write to the new index")
	}
	return out
}

// looked compares what readers find of every document.
func (b *Rebuilding) looked(when string) {
	for _, doc := range b.w.oracle.sorted() {
		b.look(doc, when)
	}
}

// look compares what readers find of a document with the committed version, after a change that was
// not a turn's write. A version that was applied but not committed may be missing.
func (b *Rebuilding) look(doc shard.DocID, when string) {
	o := b.w.oracle
	l, op, erased := o.ledger(doc), b.w.table.row(doc).CommittedOp, b.erased[doc]
	stored, there, _ := b.e.docs.Get(background, doc)
	k, _ := shard.ParseOrderKey(stored.Key)
	l.inSink, l.inSinkOp, l.same = k, shard.Put, ""
	switch {
	case there && k >= l.committed:
	case there && op == shard.Put && o.shows(doc, l.committed):
		l.same = l.committed
	case !there && (l.committed == "" || op == shard.Delete || erased > l.committed):
		l.inSink, l.inSinkOp = max(l.committed, erased), shard.Delete
	default:
		o.always("readers find what was committed", fmt.Sprintf("%s: %q of %s, %s (%s) was committed", when, k, doc,
			l.committed, op))
	}
}

// rebuilder is the sink as a rebuilding program calls it.
type rebuilder struct {
	v *invocation
	b *Rebuilding
}

var _ sink.Rebuilder = rebuilder{}

// request sends one request to the engine, which carries it out at one moment. The request has the
// same random faults as every other request.
func (r rebuilder) request(ctx context.Context, do func() error) error {
	return r.send(ctx, 0, nil, func() {}, do, func() {})
}

// send sends a request, whose arrival the argument late delays. send calls sent when the request is
// sent, and over when the request has ended.
func (r rebuilder) send(ctx context.Context, late time.Duration, ops []sink.Op, sent func(), do func() error,
	over func(),
) error {
	w := r.v.w
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.v.doom > 0 {
		if r.v.doom--; r.v.doom == 0 {
			if w.dice.chance(0.5) {
				sent()
				r.b.about(r.v, Sent, ops)
				w.after(late+w.travel(fault.Search), func() {
					_ = do()
					over()
					r.b.about(r.v, Landed, ops)
				})
			}
			r.v.Kill()
			return errKilled
		}
	}
	if w.strikes("sink error", w.rates.SinkError) {
		return errors.New("503")
	}
	var answer error
	at := time.Duration(0)
	err := r.v.send(ctx, fault.Search, late, func() {
		at = w.now
		sent()
		r.b.about(r.v, Sent, ops)
	}, func() {
		if answer = errors.New("the connection was torn"); w.now-at < tornAfter {
			answer = do()
		}
		over()
		r.b.about(r.v, Landed, ops)
	})
	if err != nil {
		return err
	}
	return answer
}

// compares reports the versions of documents that a program reads in an index.
func (r rebuilder) compares(index string, ids []string) {
	at, _ := r.b.e.docs.Standing(background, r.b.collection())
	versions, _ := r.b.e.docs.VersionsOf(background, index, ids)
	for i, id := range ids {
		r.b.w.watch(r.v, Step{What: Compared, Beside: index != at.Index, Op: sink.Op{
			Doc: shard.DocID(string(r.b.collection()) + "#" + id), Fence: shard.Fence(max(versions[i], 0)),
		}})
	}
}

func (r rebuilder) Into(shard.Collection, string) sink.Sink { return nil }

func (r rebuilder) Standing(ctx context.Context, c shard.Collection) (at sink.Standing, err error) {
	err = r.request(ctx, func() (err error) { at, err = r.b.e.docs.Standing(background, c); return err })
	return at, err
}

func (r rebuilder) Create(ctx context.Context, n sink.NewIndex) error {
	return r.request(ctx, func() error { return r.b.e.docs.Create(background, n) })
}

func (r rebuilder) Fill(ctx context.Context, f sink.Fill) (done sink.Filled, err error) {
	n := 0
	if _, err := fmt.Sscan(f.Task, &n); err != nil { // the task is unknown, so another copy may be under way
		if r.b.dice.chance(0.3) {
			return done, sink.ErrNoCopy
		}
		if err := r.request(ctx, func() error {
			n = len(r.b.copies[f.Into])
			r.b.copies[f.Into] = append(r.b.copies[f.Into], &engineCopy{})
			r.b.engineCopies(r.b.copies[f.Into][n], f)
			return nil
		}); err != nil {
			return done, err
		}
		if err := f.Started(fmt.Sprint(n)); err != nil {
			return done, err
		}
	}
	copied := r.b.copies[f.Into][n]
	for {
		ended := false
		if err := r.request(ctx, func() error { ended = copied.ended; return nil }); err != nil {
			return done, err
		}
		if f.Progress(0); ended {
			return done, nil
		}
		if err := r.v.clock.Sleep(ctx, time.Second); err != nil {
			return done, err
		}
	}
}

// engineCopies copies page by page. The engine writes each page a little after reading it.
func (b *Rebuilding) engineCopies(c *engineCopy, f sink.Fill) {
	at := time.Duration(0)
	for _, page := range b.pages(f.From) {
		read := b.read(f.From, idsOf(page))
		b.about(nil, Copies, read)
		if at += b.dice.upTo(5 * time.Second); b.dice.chance(0.2) {
			at += b.dice.upTo(3 * time.Minute)
		}
		b.w.after(at, func() {
			for _, op := range read {
				if !c.stopped {
					b.write(nil, b.collection(), f.Into, op)
				}
			}
		})
	}
	b.w.after(at, func() { b.copied(c) })
}

// copied ends a copy.
func (b *Rebuilding) copied(c *engineCopy) {
	c.ended = true
	for _, all := range b.copies {
		if slices.ContainsFunc(all, func(c *engineCopy) bool { return !c.ended }) {
			return
		}
	}
	b.w.watch(nil, Step{What: Copied}) // the last copy has ended
}

func idsOf(docs []sink.Versioned) (ids []string) {
	for _, d := range docs {
		ids = append(ids, d.ID)
	}
	return ids
}

// read returns the current documents of an index.
func (b *Rebuilding) read(index string, ids []string) (ops []sink.Op) {
	docs := b.e.docs.Beside(index)
	if docs == nil {
		docs = b.e.docs
	}
	for _, id := range ids {
		doc := shard.DocID(string(b.collection()) + "#" + id)
		d, found, _ := docs.Get(background, doc)
		if !found {
			continue
		}
		k, _ := shard.ParseOrderKey(d.Key)
		ops = append(ops, sink.Op{
			Doc: doc, Kind: shard.Put, Fence: d.Fence, Key: k, Version: d.Version, At: d.Indexed, Document: d.Document,
		})
	}
	return ops
}

func (r rebuilder) StopFill(ctx context.Context, into string) error {
	return r.request(ctx, func() error {
		for _, c := range r.b.copies[into] {
			c.stopped = true
			r.b.copied(c)
		}
		return nil
	})
}

// pages are the documents of an index, now.
func (b *Rebuilding) pages(index string) (pages [][]sink.Versioned) {
	for place := ""; ; {
		docs, next, _ := b.e.docs.Walk(background, index, place)
		if len(docs) > 0 {
			pages = append(pages, docs)
		}
		if place = next; place == "" {
			return pages
		}
	}
}

// Walk goes through what the index held at the first page. As with a scroll of an engine, each page
// is given once.
func (r rebuilder) Walk(ctx context.Context, index, place string) (docs []sink.Versioned, next string, err error) {
	b := r.b
	err = r.request(ctx, func() error {
		if place == "" {
			var ids []string
			for _, doc := range b.w.oracle.sorted() {
				ids = append(ids, doc.ID())
			}
			if len(ids) == 0 { // nothing was sent so far
				at, _ := b.e.docs.Standing(background, b.collection())
				b.w.watch(r.v, Step{What: Compared, Beside: index != at.Index})
			}
			r.compares(index, ids)
			place = fmt.Sprint(len(b.walks))
			b.walks = append(b.walks, b.pages(index))
		}
		n := 0
		_, _ = fmt.Sscan(place, &n)
		if left := b.walks[n]; len(left) > 0 {
			docs, next, b.walks[n] = left[0], place, left[1:]
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return docs, next, nil
}

func (r rebuilder) VersionsOf(ctx context.Context, index string, ids []string) (versions []int64, err error) {
	err = r.request(ctx, func() (err error) {
		r.compares(index, ids)
		versions, err = r.b.e.docs.VersionsOf(background, index, ids)
		return err
	})
	return versions, err
}

// Transfer reads documents, and writes them a little later.
func (r rebuilder) Transfer(ctx context.Context, c shard.Collection, from, into string, ids []string) ([]sink.Outcome,
	error,
) {
	var ops []sink.Op
	if err := r.request(ctx, func() error { ops = r.b.read(from, ids); return nil }); err != nil {
		return nil, err
	}
	out := slices.Repeat([]sink.Outcome{{Kind: sink.Applied}}, len(ids))
	err := r.send(ctx, 0, ops, func() {}, func() error {
		for _, op := range ops {
			out[slices.Index(ids, op.Doc.ID())] = r.b.write(r.v, c, into, op)
		}
		return nil
	}, func() {})
	if err != nil {
		out = slices.Repeat([]sink.Outcome{{Kind: sink.Unknown, Reason: "time-out"}}, len(ids))
	}
	return out, nil
}

func (r rebuilder) Erase(ctx context.Context, c shard.Collection, index string, docs []sink.Versioned) []sink.Outcome {
	out := make([]sink.Outcome, len(docs))
	if len(docs) == 0 {
		return out
	}
	ops := make([]sink.Op, len(docs))
	for i, d := range docs {
		ops[i] = sink.Op{
			Doc: shard.DocID(string(c) + "#" + d.ID), Kind: shard.Delete, Fence: shard.Fence(d.Version),
		}
	}
	err := r.send(ctx, 0, ops, func() {}, func() error {
		for i, op := range ops {
			out[i] = r.b.write(r.v, c, index, op)
		}
		return nil
	}, func() {})
	if err != nil {
		out = slices.Repeat([]sink.Outcome{{Kind: sink.Unknown, Reason: "time-out"}}, len(docs))
	}
	return out
}

func (r rebuilder) Switch(ctx context.Context, c shard.Collection, from, into string) error {
	tell := func(what StepKind) { r.b.w.watch(r.v, Step{What: what}) }
	late := time.Duration(0)
	if !r.v.w.calm && r.b.dice.chance(0.5) {
		late = r.b.dice.upTo(tornAfter)
	}
	return r.send(ctx, late, nil, func() { tell(Calls) }, func() error {
		before, _ := r.b.e.docs.Standing(background, c)
		err := r.b.e.docs.Switch(background, c, from, into)
		if err == nil && before.Index != into {
			r.b.phases["switched"] = true
			tell(Switched)
			r.b.looked("the switch")
		}
		return err
	}, func() { tell(Called) })
}

func (r rebuilder) Settle(ctx context.Context, index string) error {
	return r.request(ctx, func() error { return r.b.e.docs.Settle(background, index) })
}

func (r rebuilder) Earlier(ctx context.Context, c shard.Collection) (names []string, err error) {
	err = r.request(ctx, func() (err error) { names, err = r.b.e.docs.Earlier(background, c); return err })
	return names, err
}

func (r rebuilder) Drop(ctx context.Context, index string) error {
	return r.request(ctx, func() error {
		err := r.b.e.docs.Drop(background, index)
		r.b.looked("a drop")
		return err
	})
}

// TestEveryPromiseHoldsWhereACollectionIsRebuilt: in these simulated runs, turns overlap with every
// step of the rebuild.
func TestEveryPromiseHoldsWhereACollectionIsRebuilt(t *testing.T) {
	t.Parallel()
	var decisions, switched, sourced, newer, slept, dead, lost, traffic, missed, kept int
	last := &Rebuilding{}
	for w, r := range runs(t, 300, Rebuilt, func(seed uint64) (w *World) {
		w, last = rebuilding(t, seed, rebuildEdits{})
		return w
	}) {
		decisions += r.Decisions
		newer, slept, dead, lost = newer+last.newer, slept+last.slept, dead+last.dead, lost+last.lost
		missed, kept, traffic = missed+w.coverage[step(journal.Missed)], kept+w.coverage[step(journal.Kept)],
			traffic+last.traffic
		if last.phases["switched"] {
			switched++
			if last.source {
				sourced++
			}
		}
	}
	t.Logf("%d decisions; %d worlds switched, %d of them from an export; %d documents newer than the export, %d "+
		"programs slept at the seal, %d killed, %d lost their job; %d writes to new indices, %d notes of missed ones, %d kept", decisions,
		switched, sourced, newer, slept, dead, lost, traffic, missed, kept)
	if min(switched, sourced, dead, lost, traffic, missed, kept) == 0 || min(newer, slept) == 0 && seeds(10) == 10 {
		t.Error("no simulated run reaches this case")
	}
}
