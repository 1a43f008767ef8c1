// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
)

// letterJob is [operate.RedriveJob] or [operate.DropJob].
type letterJob func(operate.API, operate.LetterOrder) operate.LetterJob

// runLetters runs a job as the command line does.
func runLetters(ctx context.Context, api operate.API, o operate.LetterOrder,
	of letterJob, say func(operate.LetterLine),
) (job.State, error) {
	r := o.RunnerOf()
	r.Store, r.Clock, r.By = api.JobStore(), clock.System{}, o.By
	return job.Run(ctx, r, of(api, o), say)
}

func silent(operate.LetterLine) {}

// An interrupted job continues where it stopped. Each dead letter is done and counted once.
func TestARedriveAndADropContinueAfterAnInterruption(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		const all = 60
		for i := range all {
			g.die(put(fmt.Sprintf("%02d", i), 1), deadletter.RejectedBySink)
		}
		for _, of := range []letterJob{operate.RedriveJob, operate.DropJob} {
			o := operate.LetterOrder{By: "ann", All: true}
			verb := of(api, o).Verb
			ctx, stop := context.WithCancel(t.Context())
			told := 0
			state, err := runLetters(ctx, api, o, of, func(operate.LetterLine) { told++; stop() })
			if !errors.Is(err, context.Canceled) || state.Phase != job.Stopped || told == 0 || told == all ||
				told != total(state.Counts) {
				t.Fatalf("%s: %+v, %v, %d lines; want it stopped half way", verb, state, err, told)
			}
			listed := usecasetest.Must(api.Jobs(t.Context()))(t)
			if last := listed[len(listed)-1]; last.ID != verb || last.Phase != job.Stopped {
				t.Errorf("%s: listed %+v, want it stopped", verb, last)
			}
			began := state.Begun
			if state, err = runLetters(t.Context(), api, o, of, silent); err != nil || total(state.Counts) != all ||
				state.Did != all || !state.Begun.Equal(began) {
				t.Errorf("%s: %+v, %v; want all %d by one job", verb, state, err, all)
			}
			if verb == "redrive" && g.sent("search live") != all {
				t.Errorf("%d messages sent, want %d", g.sent("search live"), all)
			}
		}
	})
}

// Another selection does not need what a stopped job left: it begins anew.
func TestARedriveBeginsAnewWithAnotherSelection(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		for i := range 30 {
			g.die(put(fmt.Sprintf("%02d", i), 1), deadletter.RejectedBySink)
		}
		o := operate.LetterOrder{By: "ann", All: true}
		ctx, stop := context.WithCancel(t.Context())
		if _, err := runLetters(ctx, api, o, operate.RedriveJob, func(operate.LetterLine) { stop() }); err == nil {
			t.Fatal("it was not interrupted")
		}
		o = operate.LetterOrder{By: "ann", LetterFilter: operate.LetterFilter{Reason: deadletter.RejectedBySink}}
		state, err := runLetters(t.Context(), api, o, operate.RedriveJob, silent)
		if err != nil || !maps.Equal(state.Counts, map[string]int{"sent": 5}) || g.sent("search live") != 30 {
			t.Errorf("%+v, %v, %d sent in all; want the other five", state, err, g.sent("search live"))
		}
		// The next redrive begins anew, because the one before is done.
		g.die(put("99", 1), deadletter.RejectedBySink)
		state, err = runLetters(t.Context(), api, o, operate.RedriveJob, silent)
		if err != nil || !maps.Equal(state.Counts, map[string]int{"sent": 1}) {
			t.Errorf("once more: %+v, %v; want the new one", state, err)
		}
	})
}

// A dry run and a single dead letter are not stored.
func TestADryRunAndASingleDeadLetterStoreNoJob(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		id := g.die(put("a", 1), deadletter.RejectedBySink)
		for _, o := range []operate.LetterOrder{
			{By: "ann", All: true, DryRun: true}, {By: "ann", LetterFilter: operate.LetterFilter{ID: id}},
		} {
			state, err := runLetters(t.Context(), api, o, operate.RedriveJob, silent)
			if err != nil || total(state.Counts) != 1 {
				t.Errorf("%+v: %+v, %v", o, state, err)
			}
		}
		if all, err := api.Jobs(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("jobs %+v, %v; want none", all, err)
		}
	})
}

// The table keeps the lines of a job. An error of the sink may quote a document.
func TestTheRowOfARedriveHasNoErrorsOfTheSink(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.die(put("a", 1), deadletter.RejectedBySink)
		order := operate.LetterOrder{By: "ann", All: true}
		state, err := runLetters(t.Context(), api, order, operate.RedriveJob, silent)
		text := usecasetest.Must(json.Marshal(usecasetest.Must(api.Jobs(t.Context()))(t)))(t)
		if err != nil || len(state.Lines) != 1 || strings.Contains(string(text), "mapper_parsing_exception") {
			t.Errorf("%s, %v; want a line without the detail", text, err)
		}
	})
}

func TestARedriveAndADropKeepTheirRate(t *testing.T) {
	usecasetest.Story(t, func(t *testing.T) {
		for rate, of := range map[float64]letterJob{4: operate.RedriveJob, 2: operate.DropJob} {
			g := setup(t)
			for i := range 20 {
				g.die(put(fmt.Sprintf("%02d", i), 1), deadletter.RejectedBySink)
			}
			o := operate.LetterOrder{By: "ann", Rate: rate, All: true}
			verb := of(g.API(), o).Verb
			began := time.Now()
			var at []time.Duration
			state, err := runLetters(t.Context(), g.API(), o, of, func(operate.LetterLine) {
				at = append(at, time.Since(began))
			})
			if err != nil || state.Did != 20 || len(at) != 20 {
				t.Fatalf("%s: %+v, %v", verb, state, err)
			}
			for i := range at {
				if most := int(o.Rate) * (1 + int(at[i]/time.Second)); i+1 > most {
					t.Errorf("%s: %d after %s, want at most %d", verb, i+1, at[i], most)
				}
			}
			if took := at[len(at)-1]; took > time.Duration(20/o.Rate*float64(time.Second)) {
				t.Errorf("%s: took %s at %g a second", verb, took, o.Rate)
			}
		}
	})
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
