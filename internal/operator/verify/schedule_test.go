// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// scheduled returns the scheduled verifications of the stack, as one program sees them.
func (c *cms) scheduled() verify.Scheduled {
	return verify.Scheduled{
		Stack: c.stack(), Config: &c.Config, Clock: clock.System{}, NewRun: func() string { return early },
	}
}

func (c *cms) portion(most time.Duration) error {
	c.Helper()
	return c.scheduled().Portion(c.Context(), most)
}

// job returns the state of the scheduled verification.
func (c *cms) job() job.State {
	c.Helper()
	jobs, err := c.stack().Jobs(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	for _, j := range jobs {
		if j.ID == verify.ScheduledID("content", "") {
			return j
		}
	}
	return job.State{}
}

// due checks whether a verification is due.
func (c *cms) due(want bool) {
	c.Helper()
	if got, err := c.scheduled().Due(c.Context()); err != nil || got != want {
		c.Errorf("due: %t, %v, want %t", got, err, want)
	}
}

func TestALossIsHealedWithinOnePeriod(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		c.due(true)
		if err := c.portion(10 * time.Minute); err != nil {
			t.Fatal(err)
		}
		first := c.job()
		if c.due(false); first.Phase != job.Done || c.sent > 0 || first.By != verify.ScheduledBy {
			t.Errorf("got %+v", first)
		}
		c.losses(allLosses)
		asked := len(c.asked)
		if err := c.portion(10 * time.Minute); err != nil || len(c.asked) > asked {
			t.Errorf("%v, %d requests before the next verification is due", err, len(c.asked)-asked)
		}
		time.Sleep(24*time.Hour - time.Since(first.Begun))
		c.due(true)
		if err := c.portion(10 * time.Minute); err != nil {
			t.Fatal(err)
		}
		for id, l := range allLosses {
			c.shows(id, l.source)
		}
		if s := c.job(); s.Phase != job.Done || !s.Begun.After(first.Begun) {
			t.Errorf("got %+v", s)
		}
	})
}

// A portion ends at its time, and the next program continues. The verification asks the source ten
// times a second, so 600 documents need a minute.
func TestAPortionIsBoundedAndTheNextContinues(t *testing.T) {
	pull(t, true, func(c *cms) {
		for i := range 600 {
			id := fmt.Sprintf("d%03d", i)
			c.documents[id] = 5
			c.write(id, 5, 5)
		}
		portions := 0
		for ; portions == 0 || c.job().Phase != job.Done; portions++ {
			began := time.Now()
			if err := c.portion(15 * time.Second); err != nil || portions > 10 {
				t.Fatal(portions, err)
			}
			if took := time.Since(began); took > 15*time.Second+job.StepTime {
				t.Errorf("a portion took %s", took)
			}
			c.due(c.job().Phase != job.Done)
		}
		if portions < 2 || len(c.asked) != 600 {
			t.Errorf("%d portions, %d requests, want 600 in several portions", portions, len(c.asked))
		}
	})
}

func TestTwoProgramsShareAVerification(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				if err := c.portion(10 * time.Minute); err != nil {
					t.Error(err)
				}
			})
		}
		if wait.Wait(); len(c.asked) != 40 || c.job().Phase != job.Done {
			t.Errorf("%d requests, want 40; %+v", len(c.asked), c.job())
		}
	})
}

// The program of a portion is killed, and its lease ends.
func TestAVerificationContinuesAfterItsProgramWasKilled(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(allLosses)
		for n := 0; c.job().Phase != job.Done; n++ {
			if n > 100 {
				t.Fatal("it never ends")
			}
			c.calls = 9
			_ = c.portion(10 * time.Minute)
			c.calls = 1 << 30
			time.Sleep(job.HoldFor + time.Second)
		}
		for id, l := range allLosses {
			c.shows(id, l.source)
		}
	})
}

func TestASourceThatIsAwayIsAskedOnceAPortion(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(map[string]loss{"emptied": {5, 5, 0, shard.Put, "", ""}})
		down := true
		c.answer = func(string) error {
			if down {
				return &source.Unavailable{Problem: "the source answered 503"}
			}
			return nil
		}
		err := c.portion(10 * time.Minute)
		if s := c.job(); err == nil || s.Phase != job.Failed || !strings.Contains(s.Error, "503") {
			t.Fatalf("got %v, %+v", err, s)
		}
		asked := len(c.asked)
		for range 3 {
			c.due(true)
			time.Sleep(5 * time.Minute)
			if err := c.portion(5 * time.Minute); err == nil {
				t.Error("want the error of the source")
			}
		}
		if len(c.asked) != asked+3 {
			t.Errorf("%d requests in three portions, want one in each", len(c.asked)-asked)
		}
		down = false
		if err := c.portion(10 * time.Minute); err != nil || c.job().Phase != job.Done {
			t.Errorf("got %v, %+v", err, c.job())
		}
		c.shows("emptied", 5)
	})
}

// An operator stops the verification. It continues when the next one would begin.
func TestAStoppedVerificationStaysStoppedForOnePeriod(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		id, stack := verify.ScheduledID("content", ""), c.stack()
		time.AfterFunc(2*time.Second, func() {
			if err := stack.StopJob(c.Context(), operate.JobOrder{ID: id, By: "ann"}); err != nil {
				t.Error(err)
			}
		})
		if err := c.portion(10 * time.Minute); err != nil {
			t.Error(err)
		}
		begun := c.job().Begun
		if s := c.job(); s.Phase != job.Stopped {
			t.Fatalf("got %+v", s)
		}
		c.due(false)
		time.Sleep(24*time.Hour - time.Since(begun))
		c.due(true)
		if err := c.portion(10 * time.Minute); err != nil || c.job().Phase != job.Done {
			t.Errorf("got %v, %+v", err, c.job())
		}
	})
}

func TestAPortionEndsWithItsContext(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		ctx, cancel := context.WithTimeout(c.Context(), time.Second)
		defer cancel()
		if err := c.scheduled().Portion(ctx, 10*time.Minute); err == nil {
			t.Error("want the error of the context")
		}
		if c.due(true); c.job().Phase != job.Stopped {
			t.Errorf("got %+v", c.job())
		}
	})
}

func TestACollectionWithoutTheSettingIsNeverDue(t *testing.T) {
	pull(t, true, func(c *cms) {
		of := c.Config.Collections["content"]
		of.Verify = nil
		c.Config.Collections["content"] = of
		c.due(false)
	})
}

// An operator pauses the sink for as long as a release takes. The verification does not fail
// because of that.
func TestAVerificationWaitsForAPausedSink(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(map[string]loss{"emptied": {5, 5, 0, shard.Put, "", ""}})
		pause := func(at shard.Micros) {
			c.Change(shard.HealthRow("search"), func(r *shard.Row) { r.PausedAt = at })
		}
		pause(shard.MicrosOf(time.Now()))
		for range 3 {
			if err := c.portion(3 * time.Minute); err != nil || c.job().Phase != job.Stopped {
				t.Errorf("got %v, %+v", err, c.job())
			}
			c.due(true)
		}
		pause(0)
		if err := c.portion(10 * time.Minute); err != nil || c.job().Phase != job.Done {
			t.Errorf("got %v, %+v", err, c.job())
		}
		c.shows("emptied", 5)
	})
}

// The sink is unhealthy for longer than the alarm job-idle waits. A run that fails because of that
// would raise the alarm, although the function works as designed.
func TestAVerificationWaitsForAnUnhealthySink(t *testing.T) {
	for name, halfway := range map[string]bool{"before it begins": false, "while the source is asked": true} {
		t.Run(name, func(t *testing.T) {
			pull(t, true, func(c *cms) {
				c.losses(map[string]loss{"emptied": {5, 5, 0, shard.Put, "", ""}})
				set := func(open shard.Micros, err error) {
					c.unread = err
					c.sink.SetDown(err)
					c.Change(shard.HealthRow("search"), func(r *shard.Row) { r.OpenUntil = open })
				}
				if halfway {
					c.answer = func(string) error {
						c.unread = errAway
						return nil
					}
				} else {
					set(0, errAway)
				}
				// No circuit breaker says that the sink is away: only this job notices.
				if err := c.portion(3 * time.Minute); !errors.Is(err, errAway) || c.job().Phase != job.Failed {
					t.Errorf("got %v, %+v", err, c.job())
				}
				set(shard.MicrosOf(time.Now()), errAway)
				for range 3 {
					if err := c.portion(3 * time.Minute); err != nil || c.job().Phase != job.Stopped {
						t.Errorf("got %v, %+v", err, c.job())
					}
					c.due(true)
				}
				c.answer = nil
				set(0, nil)
				if err := c.portion(10 * time.Minute); err != nil || c.job().Phase != job.Done {
					t.Errorf("got %v, %+v", err, c.job())
				}
				c.shows("emptied", 5)
			})
		})
	}
}

// The table's list of jobs is bounded. Operators start many jobs after a verification has ended.
// The next verification begins at its time all the same, and then the list may drop the job.
func TestOtherJobsDoNotMakeAVerificationBeginAgain(t *testing.T) {
	pull(t, true, func(c *cms) {
		if err := c.portion(10 * time.Minute); err != nil || c.job().Phase != job.Done {
			t.Fatal(err, c.job())
		}
		begun := c.job().Begun
		others := func() {
			stack := c.stack()
			r := job.Runner{Store: stack.JobStore(), Clock: clock.System{}, By: "ann"}
			for i := range 60 {
				_, err := job.Run(c.Context(), r, job.Job[int, string]{
					ID: fmt.Sprintf("replay-%d-%d", time.Now().Unix(), i), Verb: "replay", Args: struct{}{},
					Step: func(context.Context, int, *job.Step[string]) (int, bool, error) { return 0, true, nil },
				}, func(string) {})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		others()
		if c.due(false); !c.job().Begun.Equal(begun) {
			t.Errorf("got %+v", c.job())
		}
		time.Sleep(24*time.Hour - time.Since(begun))
		if others(); c.job().ID != "" {
			t.Errorf("the list keeps a job that the schedule no longer needs: %+v", c.job())
		}
		c.due(true)
	})
}
