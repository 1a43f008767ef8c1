// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

func (a jobAPI) Redrive(ctx context.Context, o operate.LetterOrder) (operate.LetterResult, error) {
	return a.letters(ctx, o, func(api operate.API) letterStep { return api.Redrive })
}

func (a jobAPI) Drop(ctx context.Context, o operate.LetterOrder) (operate.LetterResult, error) {
	return a.letters(ctx, o, func(api operate.API) letterStep { return api.Drop })
}

// letterStep redrives or drops.
type letterStep = operate.Operation[operate.LetterOrder, operate.LetterResult]

func (a jobAPI) letters(ctx context.Context, o operate.LetterOrder,
	step func(operate.API) letterStep,
) (res operate.LetterResult, err error) {
	from := o.From
	o.Limit = a.j.limit
	hooked(a.j.edits.order, &o)
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		if op.Dead = (droppingStore{op.Dead, a.j, from}); a.j.edits.dead != nil {
			op.Dead = a.j.edits.dead(op.Dead)
		}
		res, err = step(op.API())(ctx, o)
		return err
	})
	if hooked(a.j.edits.done, &res); err == nil {
		to := from
		if res.Next != nil {
			to = *res.Next
		}
		a.j.stepped(from, to, res.Outcomes["sent"]+res.Outcomes["dropped"], res.Outcomes)
	}
	return res, err
}

// droppingStore is the store of dead letters for a step of a job. If the job is a drop, the events
// of deleted dead letters are lost. No other program may lose events.
type droppingStore struct {
	deadletter.Store
	j    *Jobbing
	from redrive.Place
}

func (s droppingStore) Drop(ctx context.Context, id string) error {
	o := s.j.w.oracle
	l, there, _ := s.j.w.letters.Get(background, id)
	if s.j.id == "drop" && there {
		if e := o.events[id]; e != nil {
			e.dropping = true
		}
		if !s.from.Until.IsZero() && l.Died.After(s.from.Until) {
			o.always("a drop leaves what died after it began", fmt.Sprintf("%s died at %s", l.Doc, l.Died))
		}
	}
	s.j.dropped[id] = true
	return s.Store.Drop(ctx, id)
}

// letterWorld returns the simulated run of a seed in which a job redrives or drops dead letters
// several times.
func letterWorld(t testing.TB, seed uint64, of func(operate.API, operate.LetterOrder) operate.LetterJob,
	edits jobEdits,
) (*World, *Jobbing) {
	t.Helper()
	j := jobbed(seed, of(operate.API{}, operate.LetterOrder{}).ID, edits)
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) {
		vary(seed, cfg)
		cfg.Retry.DeadDeadline = time.Minute + j.dice.upTo(time.Minute) // for many dead letters
	})
	w := begin(t, Options{
		Config: cfg, Seed: seed, Faults: Swarm, Upstream: Write(seed, sourcesOf(t, cfg)), Watch: j.see,
	})
	order := operate.LetterOrder{All: true, By: "the simulator"}
	if j.id == "drop" {
		// An operator redrives a version that the sink may have and that keeps older versions out.
		// The other dead letters are junk, which no redrive can write.
		order.Collection, order.Reason, order.All = "content", deadletter.Contract, false
		for i := range 20 {
			w.after(j.dice.upTo(w.options.Upstream.Calm), func() {
				w.publish(queue.Outgoing{Body: fmt.Sprintf(`{"type":"doc.changed","subject":"junk-%d"}`, i)})
			})
		}
	}
	j.lettersOf(w, order, of)
	runs := 2 + j.dice.IntN(4)
	j.over = func(job.State) bool { return j.done >= runs }
	j.begin(w, w.options.Upstream.Calm/4+j.dice.upTo(w.options.Upstream.Calm/2))
	return w, j
}

// lettersOf makes j a job that handles the dead letters of an order. When the job is done,
// lettersOf checks that the job left out none of these dead letters.
func (j *Jobbing) lettersOf(w *World, order operate.LetterOrder,
	of func(operate.API, operate.LetterOrder) operate.LetterJob,
) {
	j.run = func(ctx context.Context, r job.Runner, api operate.API) error {
		_, err := job.Run(ctx, r, of(api, order), func(operate.LetterLine) {})
		return err
	}
	parked := map[time.Time][]deadletter.Facts{}
	j.dropped = map[string]bool{}
	j.begun = func(s job.State) {
		clear(j.dropped)
		for _, f := range w.letters.facts() {
			chosen := order.All || f.Reason == order.Reason && f.Doc != "" && f.Doc.Collection() == order.Collection
			// The job compares the clock of dlq with the clock of the first program.
			before := f.Died.Add(10*time.Second + 2*w.drawn.Skew).Before(s.Begun)
			if chosen && f.State == deadletter.Parked && before {
				parked[s.Begun] = append(parked[s.Begun], f)
			}
		}
	}
	j.whole = func(s job.State, fail func(string)) {
		if s.Counts[operate.Failed]+operate.Refused(s.Counts) > 0 || unsure(s) {
			return
		}
		for _, f := range parked[s.Begun] {
			l, there, _ := w.letters.Get(background, f.ID)
			// SQS may deliver a message twice, and then the second delivery is parked after the
			// drop. Or the event dies again before it is dropped, and its first dead letter is
			// parked again.
			again := w.oracle.events[f.ID].moved >= s.Begun.Sub(epoch)
			if there && !again && !j.dropped[f.ID] && l.Redrives == f.Redrives && l.Died.Equal(f.Died) {
				fail(fmt.Sprintf("a %s that is done left nothing out: %s of %s", s.Verb, f.ID, f.Doc))
			}
		}
	}
}

// unsure reports whether a dead letter that was sent may not have been marked.
func unsure(s job.State) bool {
	for _, text := range s.Lines {
		var l operate.LetterLine
		if json.Unmarshal(text, &l) != nil || l.Error != "" {
			return true
		}
	}
	return len(s.Lines) == job.MaxLines
}

// TestDeadLettersAreRedrivenAndDroppedByAJobWhateverFails: programs are killed and stopped, and two
// run at a time. Each dead letter that was parked at the start of the job must be sent or dropped,
// and every promise must hold.
func TestDeadLettersAreRedrivenAndDroppedByAJobWhateverFails(t *testing.T) {
	t.Parallel()
	for _, of := range []func(operate.API, operate.LetterOrder) operate.LetterJob{operate.RedriveJob, operate.DropJob} {
		var last *Jobbing
		sum, counts := &Jobbing{}, map[string]int{}
		for range runs(t, 2000, Swarm, func(seed uint64) (w *World) {
			w, last = letterWorld(t, seed, of, jobEdits{})
			return w
		}) {
			sum.add(last)
			for outcome, n := range last.state().Counts {
				counts[outcome] += n
			}
		}
		sum.report(t)
		if t.Log(counts); counts["sent"]+counts["dropped"] == 0 {
			t.Errorf("got counts %v, want some sent or dropped dead letters", counts)
		}
	}
}

// TestEveryMutantOfARedriveAndADropIsNoticed breaks rules that a change of the job might leave out.
func TestEveryMutantOfARedriveAndADropIsNoticed(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled {
		t.Skip("hundreds of worlds")
	}
	for name, m := range map[string]struct {
		of    func(operate.API, operate.LetterOrder) operate.LetterJob
		edits jobEdits
	}{
		"a redrive does its first page only": {operate.RedriveJob, jobEdits{done: onePage}},
		"a drop does its first page only":    {operate.DropJob, jobEdits{done: onePage}},
		"a redrive deletes the dead letter": {operate.RedriveJob, jobEdits{dead: func(s deadletter.Store) deadletter.Store {
			return forgetful{s}
		}}},
		"a drop forgets when it began": {operate.DropJob, jobEdits{order: func(o *operate.LetterOrder) {
			o.From.Until = time.Time{}
		}}},
		"SAVE RUN does not ask for the owner": {
			operate.RedriveJob, editingRuns(shard.SAVERUN, func(w *shard.Write) { without(w, shard.AttrOwner) }),
		},
		"START RUN does not ask when the last lease began": {
			operate.DropJob, editingRuns(shard.STARTRUN, func(w *shard.Write) { without(w, shard.AttrRanAt) }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caught(t, 400, func(seed uint64) *World {
				w, _ := letterWorld(t, seed, m.of, m.edits)
				return w
			})
		})
	}
}

func onePage(r *operate.LetterResult) { r.Next = nil }
