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
	"github.com/lullhq/lull/internal/operator/replay"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/shard"
)

func (a jobAPI) Archived(ctx context.Context, o operate.ReplayOrder) (size archive.Size, err error) {
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		size, err = op.API().Archived(ctx, o)
		return err
	})
	if err == nil {
		a.j.stepped(replaying(o, false), replaying(o, true), 0, nil)
	}
	return size, err
}

func (a jobAPI) Replay(ctx context.Context, o operate.ReplayOrder) (step operate.ReplayStep, err error) {
	o.Limit = a.j.limit
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		step, err = op.API().Replay(ctx, o)
		return err
	})
	if err == nil {
		next := replaying(o, true)
		next.At = step.Next
		counts := map[string]int{"messages sent": step.Sent}
		for outcome, n := range step.Events {
			counts[string(outcome)] = n
		}
		a.j.stepped(replaying(o, true), next, step.Messages, counts)
	}
	return step, err
}

// replaying returns the cursor of a step.
func replaying(o operate.ReplayOrder, measured bool) operate.ReplayCursor {
	return operate.ReplayCursor{ArchiveRange: o.ArchiveRange, Run: o.Run, Measured: measured, At: o.Cursor}
}

// replayJob is the job that a program of a simulated run executes.
type replayJob = job.Job[operate.ReplayCursor, operate.ReplayLine]

// replayed returns the simulated run of a seed in which a job replays the archive.
func replayed(t testing.TB, seed uint64, edits jobEdits, change func(*replayJob)) (*World, *Jobbing) {
	t.Helper()
	j := jobbed(seed, "replay", edits)
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) {
		vary(seed, cfg)
		cfg.TableOutage = config.TableOutageClosed
		cfg.Archive.Keep = 14 * 24 * time.Hour
	})
	w := begin(t, Options{
		Config: cfg, Seed: seed, Faults: Swarm, Upstream: Write(seed, sourcesOf(t, cfg)), Watch: j.see,
	})
	at := w.options.Upstream.Calm/4 + j.dice.upTo(w.options.Upstream.Calm/4)
	j.run = func(ctx context.Context, r job.Runner, api operate.API) error {
		// Each program starts at another time, so "ago" means another time. Each program also
		// starts with another run id.
		o := operate.ReplayOrder{By: "the simulator", Run: string(w.newID(epoch.Add(w.now)))}
		o.From, o.To = epoch.Add(-time.Minute), epoch.Add(w.now)
		made := operate.ReplayJob(api, o, "the beginning", "0s", 0)
		hooked(change, &made)
		_, err := job.Run(ctx, r, made, func(operate.ReplayLine) {})
		return err
	}
	j.over = func(s job.State) bool {
		var at operate.ReplayCursor
		err := json.Unmarshal(s.At, &at)
		has, failed := archive.Measure(background, w.archive, at.From, at.To)
		if err != nil || failed != nil || s.Did < s.Total || s.Did > has.Messages {
			w.oracle.always("a replay reads each message of its time once", fmt.Sprintf("%d of %d, later %d, %v, %v", s.Did,
				s.Total, has.Messages, err, failed))
		}
		return true
	}
	j.begin(w, at+j.dice.upTo(20*time.Second))
	return w, j
}

// TestAnArchiveIsReplayedByAJobWhateverFails: programs are killed and stopped, and two run at a
// time. No message of the archive may be left out or counted twice, and every promise must hold.
func TestAnArchiveIsReplayedByAJobWhateverFails(t *testing.T) {
	t.Parallel()
	var last *Jobbing
	sum, sent := &Jobbing{}, 0
	for range runs(t, 300, Swarm, func(seed uint64) (w *World) {
		w, last = replayed(t, seed, jobEdits{}, nil)
		return w
	}) {
		sum.add(last)
		sent += last.state().Counts[string(replay.Sent)]
	}
	if sum.report(t); sent == 0 {
		t.Error("nothing was sent again")
	}
}

// TestEveryMutantOfAReplayIsNoticed breaks rules that a change of the replay might leave out.
func TestEveryMutantOfAReplayIsNoticed(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled {
		t.Skip("hundreds of worlds")
	}
	// own changes the cursor with which each step of a program starts.
	own := func(change func(at *operate.ReplayCursor, first operate.ReplayCursor)) func(*replayJob) {
		return func(j *replayJob) {
			step, first := j.Step, j.First
			j.Step = func(ctx context.Context, at operate.ReplayCursor, s *job.Step[operate.ReplayLine],
			) (operate.ReplayCursor, bool, error) {
				change(&at, first)
				return step(ctx, at, s)
			}
		}
	}
	for name, m := range map[string]struct {
		edits  jobEdits
		change func(*replayJob)
	}{
		"a program that continues has a run of its own": {jobEdits{}, own(func(at *operate.ReplayCursor,
			first operate.ReplayCursor,
		) {
			at.Run = first.Run
		})},
		"a program that continues takes another time": {jobEdits{}, own(func(at *operate.ReplayCursor,
			first operate.ReplayCursor,
		) {
			at.ArchiveRange = first.ArchiveRange
		})},
		"it passes over a step that fails": {jobEdits{}, func(j *replayJob) {
			step := j.Step
			j.Step = func(ctx context.Context, at operate.ReplayCursor, s *job.Step[operate.ReplayLine],
			) (operate.ReplayCursor, bool, error) {
				next, done, err := step(ctx, at, s)
				return next, done || err != nil && at.At != "", nil
			}
		}},
		"SAVE RUN does not ask for the owner": {
			editingRuns(shard.SAVERUN, func(w *shard.Write) { without(w, shard.AttrOwner) }), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := caught(t, 100, func(seed uint64) *World {
				w, _ := replayed(t, seed, m.edits, m.change)
				return w
			})
			t.Log(r.Violations[0].Rule)
		})
	}
}
