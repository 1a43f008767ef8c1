// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

func (a jobAPI) Publish(ctx context.Context, p operate.Publication) (done operate.Published, err error) {
	hooked(a.j.edits.publish, &p)
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		done, err = op.API().Publish(ctx, p)
		return err
	})
	return done, err
}

// resyncJob is the job that the programs of a world run.
type resyncJob = job.Job[operate.ResyncCursor, operate.Refusal]

// export is the content of a source at one moment. Each line is one event.
type export struct{ lines []string }

func (e export) open() (*feed.Export, error) {
	text := strings.Join(e.lines, "\n") + "\n"
	return feed.NewExport("export", int64(len(text)), io.NopCloser(strings.NewReader(text)))
}

// exported returns the export of an upstream's source at the time until. The export has the newest
// version of each document that was sent until then. The version may be a delete.
func exported(sources *source.Set, list []Arrival, until time.Duration) (e export) {
	newest := map[shard.DocID]shard.OrderKey{}
	ops := map[shard.DocID]shard.Operation{}
	var docs []shard.DocID
	for _, a := range list {
		if a.At > until {
			continue
		}
		m := queue.Message{Body: a.Message.Body, Attributes: a.Message.Attributes, Sent: epoch.Add(a.At)}
		for _, r := range sources.Decode(m) {
			if r.Skip != "" || r.Invalid != nil {
				continue
			}
			doc := r.Event.Doc
			if newest[doc] == "" {
				docs = append(docs, doc)
			}
			if r.Event.Key > newest[doc] {
				newest[doc], ops[doc] = r.Event.Key, r.Event.Op
			}
		}
	}
	for _, doc := range docs {
		e.add(doc.ID(), newest[doc].VersionText(), ops[doc])
	}
	return e
}

// add adds an event to an export.
func (e *export) add(id, version string, op shard.Operation) {
	if op == shard.Delete {
		e.lines = append(e.lines, fmt.Sprintf(`{"type":"doc.deleted","subject":%q,"sequence":%q}`, id, version))
		return
	}
	e.lines = append(e.lines, fmt.Sprintf(
		`{"type":"doc.changed","subject":%q,"sequence":%q,"data":{"title":"%s, exported"}}`, id, version, version))
}

// resynced is the world of a seed in which a source's export is published again by a job, several
// times and beside live events. The export has documents that lull never heard of, and deletes that
// it never got. A program may have another file of the same name.
func resynced(t testing.TB, seed uint64, edits jobEdits, change func(j *Jobbing, own export, made *resyncJob),
) (*World, *Jobbing) {
	t.Helper()
	j := jobbed(seed, "resync-export.ndjson", edits)
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) { vary(seed, cfg) })
	w := begin(t, Options{
		Config: cfg, Seed: seed, Faults: Swarm, Upstream: Write(seed, sourcesOf(t, cfg)), Watch: j.see,
	})
	at := w.options.Upstream.Calm/4 + j.dice.upTo(w.options.Upstream.Calm/4)
	e := exported(w.sources, w.options.Upstream.Arrivals, at)
	for i := range 1 + j.dice.IntN(3) {
		e.add(fmt.Sprintf("unheard-%d", i), "1", shard.Put)
		id := fmt.Sprintf("orphan-%d", i)
		w.after(j.dice.upTo(at), func() {
			w.publish(queue.Outgoing{Body: fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"1","data":{}}`, id)})
		})
		e.add(id, "2", shard.Delete)
	}
	other := export{append([]string{`{"type":"doc.changed","subject":"other","sequence":"1","data":{}}`}, e.lines...)}
	j.run = func(ctx context.Context, r job.Runner, api operate.API) error {
		own := e
		if j.dice.chance(0.15) {
			own = other
		}
		var did operate.Published
		size := 0
		in := &feed.Reader{Open: own.open}
		publish := api.Publish
		api.Publish = func(ctx context.Context, p operate.Publication) (_ operate.Published, err error) {
			did, err = publish(ctx, p)
			size = len(p.Messages)
			return did, err
		}
		made := operate.ResyncJob(api, operate.ResyncOrder{Input: "export.ndjson"}, in,
			string(w.newID(epoch.Add(w.now))), float64(j.limit))
		step := made.Step
		made.Step = func(ctx context.Context, at operate.ResyncCursor, s *job.Step[operate.Refusal],
		) (operate.ResyncCursor, bool, error) {
			if at.Messages == 0 && len(own.lines) != len(e.lines) { // whoever begins has the right file
				return at, false, &feed.InputError{Err: errors.New("not this file")}
			}
			did, size = operate.Published{}, 0
			next, done, err := step(ctx, at, s)
			if err == nil {
				j.stepped(at, next, size, map[string]int{
					operate.ResyncSent: did.Messages, operate.ResyncEvents: did.Events,
					operate.ResyncRefused: len(did.Refused),
				})
			}
			return next, done, err
		}
		if change != nil {
			change(j, own, &made)
		}
		_, err := job.Run(ctx, r, made, func(operate.Refusal) {})
		if errors.Is(err, feed.ErrOther) {
			j.others++
		}
		return err
	}
	j.whole = func(s job.State, fail func(string)) {
		c, err := job.CursorOf[operate.ResyncCursor](s)
		if err != nil || s.Did != len(e.lines) || c.Messages != len(e.lines) {
			fail(fmt.Sprintf("a resync that is done sent each message: %d of %d, %v", s.Did, len(e.lines), err))
		}
		run, err := shard.ParseRun(c.Run)
		for _, line := range e.lines {
			m, wrong := feed.Resync(w.cfg, w.sources, queue.Message{Body: line, Sent: epoch}, run, "")
			for _, r := range w.sources.Decode(m) {
				if err != nil || wrong != nil || w.oracle.events[idOf(r.Event.Doc, r.Event.Key)] == nil {
					fail(fmt.Sprintf("a resync that is done sent each event in its run: %s %s, %v, %v", r.Event.Doc, r.Event.Key,
						err, wrong))
				}
			}
		}
		if w.oracle.docs[shard.DocID(w.cfg.DefaultCollection+"#other")] != nil {
			fail("a resync reads one file only")
		}
	}
	runs := 1 + j.dice.IntN(3)
	j.over = func(job.State) bool { return j.done >= runs }
	j.begin(w, at+j.dice.upTo(20*time.Second))
	return w, j
}

// Programs are killed and stopped, two run at a time, and some have another file. Each event of the
// export is sent in the run, and counts once. Every document ends at its newest version.
func TestAnExportIsResyncedByAJobWhateverFails(t *testing.T) {
	t.Parallel()
	var last *Jobbing
	sum, others, orphans := &Jobbing{}, 0, 0
	for w := range runs(t, 500, Swarm, func(seed uint64) (w *World) {
		w, last = resynced(t, seed, jobEdits{}, nil)
		return w
	}) {
		sum.add(last)
		others += last.others
		for doc, l := range w.oracle.docs {
			if strings.HasPrefix(doc.ID(), "orphan-") && l.inSinkOp == shard.Delete {
				orphans++
			}
		}
	}
	sum.report(t)
	if t.Logf("%d programs with another file, %d orphans deleted", others, orphans); min(others, orphans) == 0 {
		t.Error("the worlds do not get there")
	}
}

// resyncStep is the step of a resync.
type resyncStep = func(context.Context, operate.ResyncCursor, *job.Step[operate.Refusal]) (
	operate.ResyncCursor, bool, error,
)

// resyncMutants are rules of a resync that a change might leave out. Each is caught within 100
// seeds.
var resyncMutants = []struct {
	name, change string
	edits        jobEdits
	made         func(j *Jobbing, own export, made *resyncJob)
}{
	{
		"another run", "a program that continues a resync has a run of its own",
		jobEdits{},
		stepping(func(_ *Jobbing, _ export, first operate.ResyncCursor, step resyncStep) resyncStep {
			return func(ctx context.Context, at operate.ResyncCursor, s *job.Step[operate.Refusal],
			) (operate.ResyncCursor, bool, error) {
				at.Run = first.Run
				return step(ctx, at, s)
			}
		}),
	},
	{
		"another file", "a resync does not compare the beginning of the file",
		jobEdits{},
		stepping(func(_ *Jobbing, own export, _ operate.ResyncCursor, step resyncStep) resyncStep {
			return func(ctx context.Context, at operate.ResyncCursor, s *job.Step[operate.Refusal],
			) (operate.ResyncCursor, bool, error) {
				e, err := own.open()
				if err == nil && at.Messages > 0 {
					_, err = e.Batch(at.Messages)
					at.Spot = e.Spot()
				}
				if err != nil {
					return at, false, err
				}
				return step(ctx, at, s)
			}
		}),
	},
	{
		"failed steps passed over", "a step of a resync that fails counts as done",
		jobEdits{},
		stepping(func(j *Jobbing, own export, _ operate.ResyncCursor, step resyncStep) resyncStep {
			return func(ctx context.Context, at operate.ResyncCursor, s *job.Step[operate.Refusal],
			) (operate.ResyncCursor, bool, error) {
				next, done, err := step(ctx, at, s)
				if err != nil && ctx.Err() == nil && next.Messages > at.Messages {
					j.stepped(at, next, next.Messages-at.Messages, nil)
					return next, next.Messages == len(own.lines), nil
				}
				return next, done, err
			}
		}),
	},
	{
		"no run", "a resync sends events as they are", jobEdits{publish: func(p *operate.Publication) { p.Run = "" }}, nil,
	},
	{
		"resync without the owner", "SAVE RUN of a resync does not ask for the owner",
		editingRuns(shard.SAVERUN, func(w *shard.Write) { without(w, shard.AttrOwner) }), nil,
	},
	{
		"resync started twice", "START RUN of a resync does not ask when the last lease began",
		editingRuns(shard.STARTRUN, func(w *shard.Write) { without(w, shard.AttrRanAt) }), nil,
	},
}

// stepping is a mutant of a resync's step.
func stepping(of func(j *Jobbing, own export, first operate.ResyncCursor, step resyncStep) resyncStep,
) func(*Jobbing, export, *resyncJob) {
	return func(j *Jobbing, own export, made *resyncJob) { made.Step = of(j, own, made.First, made.Step) }
}
