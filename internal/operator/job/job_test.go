// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// ledger returns a ledger whose table is in memory.
func ledger() job.Ledger {
	return job.Ledger{Shards: memory.NewShards(), Clock: clock.System{}, NewToken: rows.NewToken}
}

// place is a cursor that is a struct, not a plain number.
type place struct {
	Next int `json:"next"`
}

const units = 7

// odd has the counts of the test's job at its end.
var odd = map[string]int{"odd": 4}

// counting returns a job that counts to units, one number in each step. It appends each number to
// did.
func counting(did *[]int) job.Job[place, string] {
	return job.Job[place, string]{
		ID: "count-a@b", Verb: "count", Args: map[string]int{"to": units}, First: place{1},
		Step: func(_ context.Context, from place, s *job.Step[string]) (place, bool, error) {
			*did = append(*did, from.Next)
			s.Expect(units)
			s.Did(1)
			s.Count("odd", from.Next%2)
			s.Say(fmt.Sprint("line ", from.Next))
			return place{from.Next + 1}, from.Next == units, nil
		},
	}
}

func runner(b job.Store) job.Runner { return job.Runner{Store: b, Clock: clock.System{}, By: "ann"} }

func TestAJobCountsEachStepOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var did []int
		var lines []string
		b := ledger()
		s, err := job.Run(t.Context(), runner(b), counting(&did), func(l string) { lines = append(lines, l) })
		if err != nil || s.Phase != job.Done || s.Did != units || s.Total != units || s.Counts["odd"] != 4 ||
			s.Steps != units || len(lines) != units || lines[0] != "line 1" {
			t.Errorf("got %+v, %v, lines %q", s, err, lines)
		}
		all, err := b.Jobs(t.Context())
		if err != nil || len(all) != 1 || all[0].Phase != job.Done || all[0].Did != units || !all[0].Lease.IsZero() ||
			len(all[0].Lines) != units || all[0].By != "ann" {
			t.Errorf("listed %+v, %v", all, err)
		}
	})
}

// After a typing error in its arguments, the operator need not drop the job.
func TestAJobThatHasDoneNothingMayGetOtherArguments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var did []int
		b, j := ledger(), counting(&did)
		typo := j
		typo.Args, typo.First = map[string]int{"to": -7}, place{-6}
		typo.Final = func(error) bool { return true }
		typo.Step = func(context.Context, place, *job.Step[string]) (place, bool, error) {
			return place{}, false, errors.New("to: want a number above 0")
		}
		if _, err := job.Run(t.Context(), runner(b), typo, func(string) {}); err == nil {
			t.Fatal("the step did not fail")
		}
		if s, err := job.Run(t.Context(), runner(b), j, func(string) {}); err != nil || s.Did != units || did[0] != 1 ||
			string(s.Args) != `{"to":7}` {
			t.Errorf("got %+v, %v", s, err)
		}
	})
}

// A step that costs three units takes three times as long as its rate allows for one.
func TestThePaceOfAJobCountsWhatItsStepsCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var did []int
		j, r, began := counting(&did), runner(ledger()), time.Now()
		step := j.Step
		j.Step = func(ctx context.Context, from place, s *job.Step[string]) (place, bool, error) {
			s.Costs(3)
			return step(ctx, from, s)
		}
		r.Rate = 1
		if s, err := job.Run(t.Context(), r, j, func(string) {}); err != nil || s.Did != units ||
			time.Since(began) != 3*(units-1)*time.Second {
			t.Errorf("got %+v, %v, in %s", s, err, time.Since(began))
		}
	})
}

var errKilled = errors.New("killed")

// dying is a table that kills its program at one call, before or after the call takes effect. Later
// calls of the program do not reach the table.
type dying struct {
	shard.Store
	left  int  // calls until the kill
	after bool // the last call takes effect
	dead  bool
	kill  context.CancelFunc
}

func (d *dying) call(f func() error) error {
	if d.dead {
		return errKilled
	}
	d.left--
	if d.left == 0 {
		d.dead = true
		defer d.kill()
		if !d.after {
			return errKilled
		}
		_ = f() // the call takes effect, but its answer is lost
		return errKilled
	}
	return f()
}

func (d *dying) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) (out []shard.Row, err error) {
	err = d.call(func() (err error) {
		out, err = d.Store.Read(ctx, docs, c)
		return err
	})
	return out, err
}

func (d *dying) Write(ctx context.Context, w shard.Write) (out shard.Row, err error) {
	err = d.call(func() (err error) {
		out, err = d.Store.Write(ctx, w)
		return err
	})
	return out, err
}

// A job is killed at each of its calls in turn, and another program continues it. Each unit is
// done, and is counted once.
func TestAJobContinuesAfterAKillAtAnyCall(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for call := 1; ; call++ {
			over := false
			synctest.Test(t, func(t *testing.T) {
				shards := memory.NewShards()
				var did []int
				ctx, cancel := context.WithCancel(t.Context())
				d := &dying{Store: shards, left: call, after: after, kill: cancel}
				first := job.Ledger{Shards: d, Clock: clock.System{}, NewToken: rows.NewToken}
				_, err := job.Run(ctx, runner(first), counting(&did), func(string) {})
				over = !d.dead
				if over {
					return
				}
				if err == nil {
					t.Fatalf("killed at call %d (after it: %t): got no error", call, after)
				}
				time.Sleep(job.HoldFor + time.Second)
				other := job.Ledger{Shards: shards, Clock: clock.System{}, NewToken: rows.NewToken}
				s, err := job.Run(t.Context(), runner(other), counting(&did), func(string) {})
				slices.Sort(did)
				twice := len(did) - units
				// If the program was killed after the end was stored, the job is done. Then the same command
				// begins another job.
				if s.Begun.After(time.Now().Add(-time.Minute)) && twice == units {
					twice = 0
				}
				if err != nil || s.Phase != job.Done || s.Did != units || !maps.Equal(s.Counts, odd) || twice > 1 ||
					s.Steps != units || len(slices.Compact(did)) != units {
					t.Errorf("killed at call %d (after it: %t): got %+v, %v; the steps did %v", call, after, s, err, did)
				}
				all, err := other.Jobs(t.Context())
				if err != nil || len(all) != 1 || all[0].Phase != job.Done {
					t.Errorf("killed at call %d (after it: %t): the list has %+v, %v", call, after, all, err)
				}
			})
			if over {
				if call < units+3 {
					t.Errorf("the job made %d calls, want at least %d", call, units+3)
				}
				break
			}
		}
	}
}

func TestAJobRunsOnceAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ledger()
		lease, err := b.TakeJob(t.Context(), job.Claim{ID: "count-a@b", Args: json.RawMessage(`{"to":7}`), By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		var did []int
		_, err = job.Run(t.Context(), runner(b), counting(&did), func(string) {})
		if !errors.Is(err, job.ErrBusy) || len(did) != 0 || !strings.Contains(err.Error(), "lull jobs stop count-a@b") {
			t.Errorf("got %v, did %v", err, did)
		}
		if err := b.DropJob(t.Context(), "count-a@b"); !errors.Is(err, job.ErrBusy) {
			t.Errorf("got %v when the job was dropped while it runs, want ErrBusy", err)
		}
		if err := b.StopJob(t.Context(), "count-a@b", "bob"); err != nil {
			t.Fatal(err)
		}
		err = b.SaveJob(t.Context(), lease)
		if !errors.Is(err, job.ErrLost) || !strings.Contains(err.Error(), "by bob") {
			t.Errorf("got %v when the job was saved after it was stopped, want ErrLost by bob", err)
		}
		all, err := b.Jobs(t.Context())
		if err != nil || len(all) != 1 || all[0].Phase != job.Stopped || all[0].By != "bob" {
			t.Errorf("listed %+v, %v", all, err)
		}
	})
}

// The first program is slow: its lease ends in the middle of a step, and another program continues
// the job.
func TestAProgramThatLostItsLeaseStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ledger()
		var did, other []int
		slow := counting(&did)
		step := slow.Step
		slow.Step = func(ctx context.Context, from place, s *job.Step[string]) (place, bool, error) {
			if from.Next == 3 {
				time.Sleep(job.HoldFor + time.Second)
				s, err := job.Run(ctx, runner(b), counting(&other), func(string) {})
				if !errors.Is(err, context.DeadlineExceeded) &&
					(err != nil || s.Did != units) {
					t.Errorf("the other program: got %+v, %v", s, err)
				}
				s, err = job.Run(t.Context(), runner(b), counting(&other), func(string) {})
				if err != nil || s.Did != units {
					t.Errorf("the other program: got %+v, %v", s, err)
				}
			}
			return step(ctx, from, s)
		}
		_, err := job.Run(t.Context(), runner(b), slow, func(string) {})
		if !errors.Is(err, job.ErrLost) || !slices.Equal(did, []int{1, 2, 3}) {
			t.Errorf("got %v, did %v", err, did)
		}
	})
}

func TestAJobContinuesWithItsArgumentsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ledger()
		var did []int
		j := counting(&did)
		step := j.Step
		fails := true
		j.Step = func(ctx context.Context, from place, s *job.Step[string]) (place, bool, error) {
			if from.Next == 3 && fails {
				return from, false, errors.New("the sink is away")
			}
			return step(ctx, from, s)
		}
		s, err := job.Run(t.Context(), runner(b), j, func(string) {})
		if err == nil || s.Phase != job.Failed || s.Error != "the sink is away" || s.Did != 2 {
			t.Fatalf("got %+v, %v", s, err)
		}
		fails = false
		j.Args = map[string]int{"to": 8}
		if _, err = job.Run(t.Context(), runner(b), j, func(string) {}); !errors.Is(err, job.ErrOther) ||
			!strings.Contains(err.Error(), `{"to":7}`) {
			t.Errorf("got %v", err)
		}
		if all, err := b.Jobs(t.Context()); err != nil || all[0].Phase != job.Failed || all[0].Did != 2 {
			t.Errorf("listed %+v, %v", all, err)
		}
		did, j.Anew = nil, true
		if s, err = job.Run(t.Context(), runner(b), j, func(string) {}); err != nil || s.Did != units || did[0] != 1 ||
			string(s.Args) != `{"to":8}` {
			t.Errorf("a job that may begin again with other arguments: got %+v, %v, did %v", s, err, did)
		}
		if err := b.DropJob(t.Context(), "count-a@b"); err != nil {
			t.Fatal(err)
		}
		did, j.Anew = nil, false
		if s, err = job.Run(t.Context(), runner(b), j, func(string) {}); err != nil || s.Did != units || did[0] != 1 {
			t.Errorf("the job after it was dropped: got %+v, %v, did %v", s, err, did)
		}
	})
}

func TestAStepIsRepeatedAfterAnErrorThatMayPass(t *testing.T) {
	t.Parallel()
	for _, final := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var did []int
			j := counting(&did)
			step, tries := j.Step, 0
			j.Final = func(error) bool { return final }
			j.Step = func(ctx context.Context, from place, s *job.Step[string]) (place, bool, error) {
				if tries++; from.Next == 3 && tries < 6 {
					s.Count("odd", 100)
					return from, false, errors.New("the queue is away")
				}
				return step(ctx, from, s)
			}
			s, err := job.Run(t.Context(), runner(ledger()), j, func(string) {})
			if (err != nil) != final || !final && s.Counts["odd"] != 4 || final && tries != 3 {
				t.Errorf("final %t: %+v, %v after %d tries", final, s, err, tries)
			}
		})
	}
}

// A program keeps its lease during a pause that is longer than the lease.
func TestTheRateHoldsTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ledger()
		r := runner(b)
		r.Rate = 1.0 / 300 // a step in five minutes
		began := time.Now()
		stop := make(chan bool)
		go func() {
			time.Sleep(job.HoldFor + time.Minute)
			if _, err := b.TakeJob(t.Context(), job.Claim{ID: "count-a@b", Args: json.RawMessage(`{"to":7}`)}); !errors.Is(err,
				job.ErrBusy) {
				t.Errorf("another program got %v, want ErrBusy", err)
			}
			close(stop)
		}()
		var did []int
		s, err := job.Run(t.Context(), r, counting(&did), func(string) {})
		if took := time.Since(began); err != nil || s.Did != units || took < 29*time.Minute || took > 31*time.Minute {
			t.Errorf("got %+v, %v after %s", s, err, took)
		}
		<-stop
	})
}

func TestADryRunStoresNothing(t *testing.T) {
	t.Parallel()
	b := ledger()
	r := runner(b)
	r.Dry, r.Store = true, nil
	var did []int
	s, err := job.Run(t.Context(), r, counting(&did), func(string) {})
	if err != nil || s.Did != units || s.Counts["odd"] != 4 {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestTheListIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := ledger()
		var did []int
		for i := range 60 {
			j := counting(&did)
			j.ID = fmt.Sprint("count-", i)
			if i == 0 {
				j.Step = func(context.Context, place, *job.Step[string]) (place, bool, error) {
					return place{}, false, errors.New("the step fails")
				}
			}
			if _, err := job.Run(t.Context(), runner(b), j, func(string) {}); (err != nil) != (i == 0) {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		all, err := b.Jobs(t.Context())
		if err != nil || len(all) != 50 || all[0].ID != "count-0" || all[1].ID != "count-11" || all[49].ID != "count-59" {
			t.Errorf("%d jobs, %v", len(all), err)
		}
	})
}

func TestWhatCannotNameAJob(t *testing.T) {
	t.Parallel()
	b := ledger()
	for _, id := range []string{"", "a#b", "UP", "a-" + strings.Repeat("x", 201), "a-\n"} {
		if _, err := b.TakeJob(t.Context(), job.Claim{ID: id}); !errors.Is(err, job.ErrID) {
			t.Errorf("%q: %v", id, err)
		}
		if err := b.StopJob(t.Context(), id, "ann"); !errors.Is(err, job.ErrID) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if err := b.DropJob(t.Context(), "replay"); !errors.Is(err, job.ErrNone) {
		t.Error(err)
	}
}
