// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// stoppedAt stops the job at a call of its program, which makes no further call. The next program
// takes over the job at once. late gets the cursor of the job.
func (g *ground) stoppedAt(call string, late func(c rebuild.Cursor)) {
	g.Helper()
	before := g.hook
	g.hook = func(at string) error {
		if at != call {
			if before != nil {
				return before(at)
			}
			return nil
		}
		g.dead = true
		s, err := g.ledger().Job(g.Context(), "rebuild-search")
		if err != nil {
			g.Fatal(err)
		}
		c, err := job.CursorOf[rebuild.Cursor](s)
		if err != nil {
			g.Fatal(err)
		}
		late(c)
		return errKilled
	}
	_, _ = g.startWith(g.service(), g.order())
	if g.hook = nil; !g.dead {
		g.Fatalf("the program made no call %q", call)
	}
	g.dead = false
	g.stop()
}

// A program has read a document when its job is stopped. It still sends the copy within its step,
// and the copy takes effect half a minute later. By then the document is deleted from both indices.
func TestIndicesAreNotComparedWhileAStoppedProgramMayStillCopy(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		g.hook = func(call string) error {
			if call == "stop fill" {
				g.unaware("z", shard.Put) // the comparison copies it
			}
			return nil
		}
		arrived := make(chan struct{})
		g.stoppedAt("transfer", func(c rebuild.Cursor) {
			op := sink.Op{
				Doc: "content#z", Kind: shard.Put, Fence: shard.Fence(g.fence), At: time.Now(), Document: []byte(`{}`),
			}
			time.AfterFunc(job.StepTime+25*time.Second, func() {
				g.sink.Into("content", c.New).Write(context.WithoutCancel(g.Context()), []sink.Op{op})
				close(arrived)
			})
			g.sink.Beside(c.New).Script("content#z", memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown}})
			g.write("z", shard.Delete)
		})
		if p, err := g.resume(g.service(), "bob", nil); err != nil || p.Phase != rebuild.Done {
			g.Errorf("%+v, %v", p, err)
		}
		<-arrived
		g.settled("when everything has arrived")
	})
}

// The last call of a stopped program takes effect within the time of its step.
func TestAnAbortLeavesNothingOfAStoppedProgram(t *testing.T) {
	t.Parallel()
	for call, do := range map[string]func(g *ground, c rebuild.Cursor){
		"create": func(g *ground, c rebuild.Cursor) {
			_ = g.sink.Create(g.Context(), sink.NewIndex{Collection: "content", Name: c.New, Like: c.Old})
		},
		"REBUILD": func(g *ground, c rebuild.Cursor) {
			if _, err := g.Shards.Write(g.Context(), shard.Rebuild("search", "content", c.New, c.At)); err != nil {
				g.Error(err)
			}
		},
	} {
		t.Run(call, func(t *testing.T) {
			play(t, func(g *ground) {
				g.seed()
				arrived := make(chan struct{})
				g.stoppedAt(call, func(c rebuild.Cursor) {
					time.AfterFunc(job.StepTime-time.Second, func() {
						do(g, c)
						close(arrived)
					})
				})
				if p, err := g.abort(g.service(), "bob"); err != nil || p.Phase != rebuild.Aborted {
					g.Errorf("%+v, %v", p, err)
				}
				<-arrived
				g.clean("when everything has arrived", 0)
				g.settled("at the end")
			})
		})
	}
}

// A program reads the progress of a rebuild. Before it takes the job, another program aborts the
// rebuild, or finishes another rebuild.
func TestAJobThatHasChangedSinceItWasReadIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(g *ground) error{
		"aborted": func(g *ground) error {
			_, err := g.abort(g.service(), "bob")
			return err
		},
		"continued": func(g *ground) error {
			_, err := g.resume(g.service(), "bob", nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(g *ground) {
				g.seed()
				g.stoppedAt("REBUILD", func(rebuild.Cursor) {})
				s := g.service()
				c, err := s.Continue(g.Context(), rebuild.Resume)
				if err != nil {
					g.Fatal(err)
				}
				if err := between(g); err != nil {
					g.Fatal(err)
				}
				at, _ := g.sink.Standing(g.Context(), "content")
				o := rebuild.StepOrder{Action: rebuild.Resume, From: c, By: "ann"}
				if p, err := driven(g.Context(), s, o, s.Step, nil); !errors.Is(err, job.ErrLost) {
					g.Errorf("%+v, %v; want %v", p, err, job.ErrLost)
				}
				g.clean("at the end", 0)
				if now, _ := g.sink.Standing(g.Context(), "content"); now.Index != at.Index {
					g.Errorf("the name points to %s, want %s", now.Index, at.Index)
				}
			})
		})
	}
	t.Run("another rebuild", func(t *testing.T) {
		play(t, func(g *ground) {
			g.seed()
			s := g.service()
			c, err := s.Plan(g.Context(), g.order())
			if err != nil {
				g.Fatal(err)
			}
			time.Sleep(time.Second)
			if _, err := g.startWith(g.service(), g.order()); err != nil {
				g.Fatal(err)
			}
			o := rebuild.StepOrder{Action: rebuild.Start, From: c, By: "ann"}
			if p, err := driven(g.Context(), s, o, s.Step, nil); !errors.Is(err, job.ErrLost) {
				g.Errorf("%+v, %v; want %v", p, err, job.ErrLost)
			}
			g.clean("at the end", 0)
			g.settled("at the end")
		})
	})
}

// A step is refused if the job's row does not have its cursor, because only that row says what the
// rebuild has made.
func TestAStepThatTheRowDoesNotKnowIsRefused(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		g.stoppedAt("stop fill", func(c rebuild.Cursor) {
			foreign := c
			foreign.New, foreign.Old = c.Old, c.New
			earlier := c
			earlier.Phase = rebuild.Announced
			steps := g.service()
			steps.Shards, steps.Sink = g.Shards, g.sink // the table and the sink without wrappers
			for what, from := range map[string]rebuild.Cursor{"other indices": foreign, "an earlier place": earlier} {
				for _, a := range []rebuild.Action{rebuild.Resume, rebuild.Abort} {
					o := rebuild.StepOrder{Action: a, From: from, By: "eve"}
					if _, _, err := steps.Step(g.Context(), o); !errors.Is(err, job.ErrLost) {
						g.Errorf("%s, %s: %v, want %v", what, a, err, job.ErrLost)
					}
				}
			}
			g.stop()
			o := rebuild.StepOrder{Action: rebuild.Abort, From: c, By: "ann"}
			if _, _, err := steps.Step(g.Context(), o); !errors.Is(err, job.ErrLost) {
				g.Errorf("the next step of a stopped program: %v, want %v", err, job.ErrLost)
			}
		})
		if p, err := g.resume(g.service(), "bob", nil); err != nil || p.Phase != rebuild.Done {
			g.Errorf("%+v, %v", p, err)
		}
		g.settled("at the end")
	})
}
