// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
)

// mortal is the table of a program that may be killed.
type mortal struct {
	shard.Store
	dead *bool
}

func (m mortal) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	if *m.dead {
		return nil, errKilled
	}
	return m.Store.Read(ctx, docs, c)
}

func (m mortal) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if *m.dead {
		return shard.Row{}, errKilled
	}
	return m.Store.Write(ctx, w)
}

// Programs are killed in each phase, after the engine has done the step and before the row has the
// result. Between two programs, a document is written.
func TestARealRebuildIsKilledInEachPhaseAndResumed(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	const documents = 700 // more than a page
	e.seed(documents)
	o := rebuild.StepOrder{Action: rebuild.Start, By: "ann"}
	killed := map[rebuild.Phase]bool{}
	var p rebuild.Progress
	for programs := 0; p.Phase != rebuild.Done; programs++ {
		if programs == 20 {
			t.Fatalf("after %d programs the rebuild is not done: %+v", programs, p)
		}
		s, dead := e.service(), false
		s.Shards = mortal{e.shards, &dead}
		var err error
		if o.Action == rebuild.Start {
			o.From, err = s.Plan(t.Context(), rebuild.Order{
				Collection: "content", Mapping: []byte(mapping), Drop: true, Keep: 1, By: "ann",
			})
			o.Mapping = []byte(mapping)
		} else {
			o.From, err = s.Continue(t.Context(), rebuild.Resume)
		}
		usecasetest.OK(t, err)
		p, err = driven(t.Context(), s, o, func(ctx context.Context, o rebuild.StepOrder) (
			rebuild.Cursor, bool, error,
		) {
			c, done, err := s.Step(ctx, o)
			if phase := o.From.Phase; err == nil && phase != rebuild.Creating && !killed[phase] && c.Phase != phase {
				killed[phase], dead = true, true
			}
			return c, done, err
		}, nil)
		if (err == nil) == dead {
			t.Fatalf("%+v, %v; killed: %t", p, err, dead)
		}
		if o.Action = rebuild.Resume; dead {
			p.Phase = "" // the killed program's view; the row has the true phase
			ledger := job.Ledger{Shards: e.shards, Clock: s.Clock}
			usecasetest.OK(t, ledger.StopJob(t.Context(), rebuild.JobID("search"), "eve"))
		}
		usecasetest.OK(t, errors.Join(
			e.write(fmt.Sprint("d", programs), `{"n":"again"}`), e.write(fmt.Sprint("d", documents-1-programs), ""),
		))
	}
	if len(killed) != 5 {
		t.Errorf("killed in %v, want five phases", killed)
	}
	gone := len(killed) + 1
	e.ask("POST", "/"+e.name+"/_refresh", "")
	got := e.ask("GET", "/"+e.name+"/_count", "")["count"]
	again := e.ask("POST", "/"+e.name+"/_count", `{"query":{"term":{"n":"again"}}}`)["count"]
	if got != float64(documents-gone) || again != float64(gone) {
		t.Errorf("readers find %v documents, %v written again; want %d and %d", got, again, documents-gone, gone)
	}
	if at, err := e.Standing(t.Context(), "content"); err != nil || at.Index != p.New {
		t.Errorf("%+v, %v; want %s", at, err, p.New)
	}
}
