// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
)

// ledgerOf returns a ledger that stores its jobs in s.
func ledgerOf(s shard.Store) job.Ledger {
	return job.Ledger{Shards: s, Clock: clock.System{}, NewToken: rows.NewToken}
}

func claim(id string) job.Claim {
	return job.Claim{ID: id, Args: json.RawMessage(`{"to":7}`), First: json.RawMessage(`{"next":1}`), By: "ann"}
}

// before is a table that calls do before each write.
type before struct {
	shard.Store
	do func(w shard.Write)
}

func (b before) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	b.do(w)
	return b.Store.Write(ctx, w)
}

// behind is a clock that is a minute slow.
type behind struct{ clock.Clock }

func (b behind) Now() time.Time { return b.Clock.Now().Add(-time.Minute) }

// The clock of the program that ran the job last is ahead of the clock of the next program.
func TestAClockThatIsBehindContinuesAndDropsAJob(t *testing.T) {
	t.Parallel()
	shards := memory.NewShards()
	late := ledgerOf(shards)
	late.Clock = behind{clock.System{}}
	for _, step := range []string{"continued", "dropped"} {
		lease, err := ledgerOf(shards).TakeJob(t.Context(), claim("count-a"))
		if err != nil {
			t.Fatal(err)
		}
		lease.State.Phase = job.Stopped
		if err = ledgerOf(shards).EndJob(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		if step == "continued" {
			if lease, err = late.TakeJob(t.Context(), claim("count-a")); err == nil {
				err = late.EndJob(t.Context(), lease)
			}
		} else {
			err = late.DropJob(t.Context(), "count-a")
		}
		if err != nil {
			t.Errorf("the job was not %s: %v", step, err)
		}
	}
	if all, err := late.Jobs(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the list has %+v, %v, want no job after the drop", all, err)
	}
}

// The first try of START RUN gets no answer, and takes effect only after the job was stopped.
func TestAStartThatArrivesLateDoesNotContinueAStoppedJob(t *testing.T) {
	t.Parallel()
	shards := memory.NewShards()
	var first shard.Write
	lease, err := ledgerOf(before{shards, func(w shard.Write) {
		if w.Transition == shard.STARTRUN {
			first = w
		}
	}}).TakeJob(t.Context(), claim("count-a"))
	if err != nil {
		t.Fatal(err)
	}
	if first.Doc != shard.RunRow("job-count-a") {
		t.Fatalf("the last START RUN is for row %s, want job-count-a", first.Doc)
	}
	if err := ledgerOf(shards).StopJob(t.Context(), "count-a", "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := shards.Write(t.Context(), first); err == nil {
		t.Error("the start was applied twice")
	}
	if err := ledgerOf(shards).SaveJob(t.Context(), lease); !errors.Is(err, job.ErrLost) {
		t.Errorf("saved after it was stopped: %v", err)
	}
}

// Four tries of a step take longer than a lease lasts.
func TestAStepThatIsRepeatedKeepsItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ledger()
		ended := make(chan bool)
		go func() {
			defer close(ended)
			time.Sleep(job.HoldFor + 30*time.Second)
			if _, err := b.TakeJob(t.Context(), claim("count-a@b")); !errors.Is(err, job.ErrBusy) {
				t.Errorf("another program got %v, want ErrBusy", err)
			}
		}()
		var did []int
		j := counting(&did)
		step, tries := j.Step, 0
		j.Step = func(ctx context.Context, from place, s *job.Step[string]) (place, bool, error) {
			if tries++; tries < 4 {
				time.Sleep(job.StepTime - time.Second)
				return from, false, errors.New("the queue does not answer")
			}
			return step(ctx, from, s)
		}
		if s, err := job.Run(t.Context(), runner(b), j, func(string) {}); err != nil || s.Did != units {
			t.Errorf("got %+v, %v", s, err)
		}
		<-ended
	})
}

// A program that lost its lease does not repeat its step.
func TestAStoppedJobDoesNotRepeatItsStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ledger()
		tries := 0
		j := counting(new([]int))
		j.Step = func(ctx context.Context, from place, _ *job.Step[string]) (place, bool, error) {
			tries++
			return from, false, errors.Join(b.StopJob(ctx, j.ID, "bob"), errors.New("the queue is away"))
		}
		if _, err := job.Run(t.Context(), runner(b), j, func(string) {}); !errors.Is(err, job.ErrLost) || tries != 1 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}

func TestLongLinesDoNotStopAJob(t *testing.T) {
	t.Parallel()
	b := ledger()
	j := counting(new([]int))
	step := j.Step
	j.Step = func(ctx context.Context, from place, s *job.Step[string]) (place, bool, error) {
		s.Say(strings.Repeat("x", 70<<10))
		return step(ctx, from, s)
	}
	said := 0
	s, err := job.Run(t.Context(), runner(b), j, func(string) { said++ })
	if err != nil || s.Did != units || said != 2*units || len(s.Lines) == 0 {
		t.Errorf("got %d done, %d lines of %d, %v", s.Did, len(s.Lines), said, err)
	}
}

// If the cursor is too large to store, the job fails, and its stored state is that before the step.
func TestAJobThatIsTooLargeSaysSo(t *testing.T) {
	t.Parallel()
	b := ledger()
	j := job.Job[string, string]{
		ID: "grow-a", Verb: "grow", Args: 1,
		Step: func(_ context.Context, from string, s *job.Step[string]) (string, bool, error) {
			s.Did(1)
			return from + strings.Repeat("x", 200<<10), false, nil
		},
	}
	if _, err := job.Run(t.Context(), runner(b), j, func(string) {}); !errors.Is(err, job.ErrLarge) {
		t.Errorf("got %v", err)
	}
	all, err := b.Jobs(t.Context())
	if err != nil || len(all) != 1 || all[0].Phase != job.Failed || all[0].Did != 1 || !all[0].Lease.IsZero() {
		t.Errorf("listed %d, %v", len(all), err)
	}
	c := claim("grow-b")
	c.Args = json.RawMessage(`"` + strings.Repeat("x", 400<<10) + `"`)
	for range 2 { // the first refused claim must release the lease
		if _, err := b.TakeJob(t.Context(), c); !errors.Is(err, job.ErrLarge) {
			t.Errorf("got %.100v", err)
		}
	}
}

// A row that this build cannot read does not hide the other jobs, and can be dropped.
func TestARowThatCannotBeReadIsListedAndDropped(t *testing.T) {
	t.Parallel()
	shards := memory.NewShards()
	b := ledgerOf(shards)
	for _, id := range []string{"count-a", "count-b"} {
		lease, err := b.TakeJob(t.Context(), claim(id))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.EndJob(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	now := shard.MicrosOf(time.Now())
	for _, w := range []shard.Write{
		shard.StartRun("job-count-a", "x", now, now, 0), shard.EndRun("job-count-a", "x", `{"id":["newer"]}`),
	} {
		if _, err := shards.Write(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	all, err := b.Jobs(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != "count-a" || all[0].Error == "" || all[1].ID != "count-b" {
		t.Errorf("listed %+v, %v", all, err)
	}
	if err := b.DropJob(t.Context(), "count-a"); err != nil {
		t.Error(err)
	}
	if all, err = b.Jobs(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("listed %+v, %v", all, err)
	}
}

// Another program begins the oldest job again while that job is removed from the list.
func TestAJobThatRunsStaysInTheList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shards := memory.NewShards()
		for i := range 50 {
			j := counting(new([]int))
			j.ID = fmt.Sprint("count-", i)
			if _, err := job.Run(t.Context(), runner(ledgerOf(shards)), j, func(string) {}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		b := ledgerOf(before{shards, func(w shard.Write) {
			oldest := w.Doc == shard.RunRow("job-count-0")
			if now := shard.MicrosOf(time.Now()); oldest && w.Transition == shard.STARTRUN {
				_, err := shards.Write(t.Context(), shard.StartRun("job-count-0", "x", now, now.Add(job.HoldFor), 0))
				if err != nil {
					t.Error(err)
				}
			}
		}})
		if _, err := b.TakeJob(t.Context(), claim("count-new")); err != nil {
			t.Fatal(err)
		}
		all, err := b.Jobs(t.Context())
		if err != nil || len(all) != 50 || all[0].ID != "count-0" || all[1].ID != "count-2" || all[49].ID != "count-new" {
			t.Errorf("listed %d, %v", len(all), err)
		}
	})
}

// Another program continues the job while an operator stops it.
func TestAStopReachesTheProgramThatContinued(t *testing.T) {
	t.Parallel()
	shards := memory.NewShards()
	first, err := ledgerOf(shards).TakeJob(t.Context(), claim("count-a"))
	if err != nil {
		t.Fatal(err)
	}
	var second job.Lease
	b := ledgerOf(before{shards, func(w shard.Write) {
		if w.Transition == shard.ENDRUN && second.Token == "" {
			first.State.Phase = job.Failed
			if err = ledgerOf(shards).EndJob(t.Context(), first); err == nil {
				second, err = ledgerOf(shards).TakeJob(t.Context(), claim("count-a"))
			}
			if err != nil {
				t.Error(err)
			}
		}
	}})
	if err := b.StopJob(t.Context(), "count-a", "bob"); err != nil {
		t.Fatal(err)
	}
	if err := b.SaveJob(t.Context(), second); !errors.Is(err, job.ErrLost) {
		t.Errorf("saved after it was stopped: %v", err)
	}
}

// A program begins a job again that is done. It has the lease, but has not stored the new state
// yet.
func TestAStopLeavesAJobThatIsDone(t *testing.T) {
	t.Parallel()
	shards := memory.NewShards()
	b := ledgerOf(shards)
	if _, err := job.Run(t.Context(), runner(b), counting(new([]int)), func(string) {}); err != nil {
		t.Fatal(err)
	}
	now := shard.MicrosOf(time.Now())
	w := shard.StartRun("job-count-a@b", "x", now.Add(time.Second), now.Add(job.HoldFor), 0)
	if _, err := shards.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := b.StopJob(t.Context(), "count-a@b", "bob"); err != nil {
		t.Fatal(err)
	}
	all, err := b.Jobs(t.Context())
	if err != nil || len(all) != 1 || all[0].Phase != job.Done || !all[0].Lease.IsZero() {
		t.Errorf("listed %+v, %v", all, err)
	}
}
