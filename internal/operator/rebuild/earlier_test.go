// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// earlier has rows of rebuilds as a build without jobs wrote them, byte by byte. The key is the
// phase in which its program was killed.
var earlier = map[string]string{
	"creating": `{"collection":"content","phase":"creating","name":"content","old":"content",` +
		`"new":"content.r20000101000000","alias":true,"begun":"2000-01-01T00:00:00Z","by":"ann","keep":1,"total":6,` +
		`"done":0,"repaired":0,"missed":0,"left":0}`,
	"filling": `{"collection":"content","phase":"filling","name":"content","old":"content",` +
		`"new":"content.r20000101000000","alias":true,"begun":"2000-01-01T00:00:00Z","by":"ann","keep":1,"total":6,` +
		`"done":0,"repaired":0,"missed":0,"left":0,"at":946684800008000}`,
	"comparing": `{"collection":"content","phase":"comparing","name":"content","old":"content",` +
		`"new":"content.r20000101000000","alias":true,"begun":"2000-01-01T00:00:00Z","by":"ann","keep":1,"total":6,` +
		`"done":0,"repaired":0,"missed":0,"left":0,"at":946684800008000}`,
	"switching": `{"collection":"content","phase":"switching","name":"content","old":"content",` +
		`"new":"content.r20000101000000","alias":true,"begun":"2000-01-01T00:00:00Z","by":"ann","keep":1,"total":6,` +
		`"done":0,"passes":1,"repaired":0,"missed":0,"left":0,"at":946684800008000}`,
	"tidying": `{"collection":"content","phase":"tidying","name":"content","old":"content",` +
		`"new":"content.r20000101000000","alias":true,"begun":"2000-01-01T00:00:00Z","by":"ann","keep":1,"total":6,` +
		`"done":0,"passes":1,"repaired":0,"missed":0,"left":0,"at":946684800008000}`,
}

// began brings the table and the sink into the state in which the build without jobs left them. Its
// program still has the lease for some time.
func (g *ground) began(phase string) {
	g.Helper()
	const into, at = "content.r20000101000000", shard.Micros(946684800008000)
	g.seed()
	now := usecasetest.Now()
	g.Write(shard.StartRun("rebuild-search", "old", now, now.Add(30*time.Second), 0))
	g.Write(shard.SaveRun("rebuild-search", "old", now.Add(30*time.Second), earlier[phase]))
	err := g.sink.Create(g.Context(), sink.NewIndex{Collection: "content", Name: into, Like: "content"})
	if err != nil {
		g.Fatal(err)
	}
	switch phase {
	case "creating":
	case "tidying":
		usecasetest.Must(g.sink.Fill(g.Context(), sink.Fill{From: "content", Into: into}))(g)
		usecasetest.OK(g, g.sink.Switch(g.Context(), "content", "content", into))
	default:
		g.Write(shard.Rebuild("search", "content", into, at))
	}
	if phase == "switching" {
		usecasetest.Must(g.sink.Fill(g.Context(), sink.Fill{From: "content", Into: into}))(g)
		g.Write(shard.Seal("search", at, 0, now))
	}
}

func TestARebuildOfAnEarlierBuildContinues(t *testing.T) {
	t.Parallel()
	for phase := range earlier {
		t.Run(phase, func(t *testing.T) {
			play(t, func(g *ground) {
				g.began(phase)
				if p, err := g.service().Status(g.Context()); err != nil || string(p.Phase) != phase || p.By != "ann" {
					g.Errorf("status %+v, %v", p, err)
				}
				if _, err := g.resume(g.service(), "bob", nil); !errors.Is(err, rebuild.ErrBusy) {
					g.Errorf("while the earlier build drives the rebuild: got %v, want %v", err, rebuild.ErrBusy)
				}
				if _, err := g.startWith(g.service(), g.order()); !errors.Is(err, rebuild.ErrBusy) {
					g.Errorf("a second rebuild: got %v, want %v", err, rebuild.ErrBusy)
				}
				time.Sleep(31 * time.Second)
				p, err := g.resume(g.service(), "bob", nil)
				if phase == "creating" {
					if err == nil || !strings.Contains(err.Error(), "abort it, and start again") {
						g.Errorf("got %+v, %v; want an error that says what to do", p, err)
					}
					_, err = g.abort(g.service(), "bob")
				} else if p.Phase != rebuild.Done {
					g.Errorf("%+v, want it done", p)
				}
				if row := g.Row(shard.RunRow("rebuild-search")); err != nil || row.Cursor != "" || row.Owner != "" {
					g.Errorf("%v; the earlier build's row is left: %+v", err, row)
				}
				g.settled("at the end")
				g.clean("at the end", 0)
			})
		})
	}
}

func TestARebuildOfAnEarlierBuildIsAborted(t *testing.T) {
	t.Parallel()
	for phase := range earlier {
		t.Run(phase, func(t *testing.T) {
			play(t, func(g *ground) {
				g.began(phase)
				time.Sleep(31 * time.Second)
				p, err := g.abort(g.service(), "bob")
				if phase == "tidying" {
					if !errors.Is(err, rebuild.ErrSwitched) {
						g.Errorf("%v, want %v", err, rebuild.ErrSwitched)
					}
					p, err = g.resume(g.service(), "bob", nil)
				} else if p.Phase != rebuild.Aborted {
					g.Errorf("%+v, want it aborted", p)
				}
				if err != nil {
					g.Errorf("%+v, %v", p, err)
				}
				g.settled("at the end")
				g.clean("at the end", 0)
			})
		})
	}
}

// A job is stopped while the seal of its program is set. The program still ends its step: it
// switches the name, so that turns can write again.
func TestAJobThatIsStoppedUnderItsSealSwitches(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		g.hook = func(call string) error {
			if call == "switch" {
				g.stop()
			}
			return nil
		}
		if p, err := g.startWith(g.service(), g.order()); !errors.Is(err, job.ErrLost) {
			g.Errorf("%+v, %v; want %v", p, err, job.ErrLost)
		}
		if row := g.Row(shard.HealthRow("search")); row.RebuildSeal != 0 || row.RebuildAt != 0 {
			g.Errorf("the health row still has the rebuild, so turns wait: %+v", row)
		}
		if s, err := g.ledger().Job(g.Context(), "rebuild-search"); err != nil || s.Phase != job.Stopped {
			g.Errorf("%+v, %v; want it stopped", s, err)
		}
		g.hook = nil
		g.write("a", shard.Put)
		if p, err := g.resume(g.service(), "bob", nil); err != nil || p.Phase != rebuild.Done {
			g.Errorf("%+v, %v", p, err)
		}
		g.settled("at the end")
		g.clean("at the end", 0)
	})
}

// drowsy is a table that calls sleep after each read, so that its program can be suspended.
type drowsy struct {
	shard.Store
	sleep func()
}

func (d drowsy) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	rows, err := d.Store.Read(ctx, docs, c)
	d.sleep()
	return rows, err
}

// A program takes over a stopped job, and copies and deletes for a long time. The stopped program
// must not switch the name in the meantime.
func TestASealIsRefusedAfterAnotherProgramTookOver(t *testing.T) {
	t.Parallel()
	for _, action := range []rebuild.Action{rebuild.Resume, rebuild.Abort} {
		t.Run(string(action), func(t *testing.T) {
			play(t, func(g *ground) {
				g.seed()
				first := g.service()
				wakes := map[rebuild.Action]string{rebuild.Resume: "versions", rebuild.Abort: "REBUILT"}[action]
				waited := false
				seals := false
				// The machine sleeps before the seal is set. While it sleeps, no timer runs.
				step := func(ctx context.Context, o rebuild.StepOrder) (rebuild.Cursor, bool, error) {
					seals = o.From.Phase == rebuild.Switching
					return first.Step(context.WithoutCancel(ctx), o)
				}
				first.Shards = drowsy{first.Shards, func() {
					if !seals || waited {
						return
					}
					waited = true
					g.stop()
					killed := false
					g.hook = func(call string) error {
						if killed = killed || call == wakes; killed {
							return errKilled
						}
						return nil
					}
					if _, err := continued(g.Context(), g.service(), action, "bob", nil); !errors.Is(err, errKilled) {
						g.Fatalf("bob's: %v, want it killed", err)
					}
					g.hook = func(call string) error {
						if call == "switch" {
							g.Error("the first program switches the name")
						}
						return nil
					}
				}}
				c, err := first.Plan(g.Context(), g.order())
				if err != nil {
					g.Fatal(err)
				}
				o := rebuild.StepOrder{Action: rebuild.Start, From: c, By: "ann"}
				if p, err := driven(g.Context(), first, o, step, nil); err == nil || !waited {
					g.Errorf("the first program ends with %+v, want an error", p)
				}
				g.hook = nil
				g.readable("when both have ended")
				time.Sleep(job.HoldFor + time.Second)
				if _, err := continued(g.Context(), g.service(), action, "eve", nil); err != nil {
					g.Error(err)
				}
				g.settled("at the end")
				g.clean("at the end", 0)
			})
		})
	}
}
