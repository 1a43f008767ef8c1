// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/terminal"
)

// runJob begins or continues a job of the stack, and runs it to its end. r needs only Rate and Dry.
// say prints a line of the answer.
func runJob[C, L any](ctx context.Context, std *streams, api operate.API, j job.Job[C, L], r job.Runner, say func(L),
) (job.State, error) {
	shown := watchJob(std.err)
	r.Store, r.Clock, r.By, r.Report = api.JobStore(), clock.System{}, whoami(), shown.show
	state, err := job.Run(ctx, r, j, func(l L) {
		shown.clear()
		say(l)
	})
	shown.clear()
	if err != nil && state.Steps > 0 && !r.Dry {
		err = fmt.Errorf("%w; %s continues (lull jobs)", err, cmp.Or(j.Resume, "the same command"))
	}
	return state, err
}

// sayEvery is how often a job prints its progress, if standard error is not a terminal.
const sayEvery = 10 * time.Second

// jobLine is the line on standard error that shows the progress of a job.
type jobLine struct {
	to       io.Writer
	terminal bool
	began    time.Time
	said     time.Time
	before   int  // number of units that an earlier program did
	drawn    bool // the terminal shows the line
}

func watchJob(to io.Writer) *jobLine {
	f, isFile := terminal.File(to)
	l := &jobLine{to: to, said: time.Now()}
	if isFile && term.IsTerminal(int(f.Fd())) {
		l.to, l.terminal = f, true
	}
	return l
}

// show redraws the line in a terminal, at most five times a second. Elsewhere it prints a line
// every ten seconds.
func (l *jobLine) show(s job.State) {
	now := time.Now()
	if l.began.IsZero() {
		l.began, l.before = now, s.Did
		if s.Steps > 0 && s.Phase == job.Running {
			terminal.Printf(l.to, "%s continues after %d\n", s.ID, s.Did) // not fmt: another stack may send control codes
		}
	}
	every := sayEvery
	if l.terminal {
		every = 200 * time.Millisecond
	}
	if s.Phase != job.Running || now.Sub(l.said) < every {
		return
	}
	l.said = now
	text := progressOf(s, now.Sub(l.began), s.Did-l.before, now)
	if !l.terminal {
		terminal.Printf(l.to, "%s\n", text)
		return
	}
	fmt.Fprintf(l.to, "\r\x1b[K%s", terminal.Line(text)) // another stack may send control codes
	l.drawn = true
}

// clear removes the line, so that something else can be printed.
func (l *jobLine) clear() {
	if l.drawn {
		fmt.Fprint(l.to, "\r\x1b[K")
		l.drawn = false
	}
}

// progressOf returns the progress of a job as a text. This program did did units in the time ran.
func progressOf(s job.State, ran time.Duration, did int, now time.Time) string {
	text := fmt.Sprintf("%s: %d", s.ID, s.Did)
	if s.Total > 0 {
		text += fmt.Sprintf(" of %d", s.Total)
	}
	if rate := float64(did) / max(ran.Seconds(), 0.001); did > 0 {
		text += fmt.Sprintf(", %.3g a second", rate)
	}
	if left := s.Left(now.Add(-ran), did, now); left > 0 {
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}

func jobsCommand(std *streams, t *target) *cobra.Command {
	list := func(api operate.API, ctx context.Context, _ []string) ([]job.State, error) { return api.Jobs(ctx) }
	c := define(&cobra.Command{
		Use: "jobs", Short: "List long-running jobs, and stop them", Args: cobra.NoArgs,
		Long: "Lists the jobs that run, and the last jobs that ran, with their progress. A job is work that takes " +
			"long, such as a backfill. It stores its progress in the stack's table: after an interruption, the same " +
			"command continues there, on any machine that has its input. Only one program at a time runs a job.",
		RunE: question(std, t, list, func(w io.Writer, all []job.State) {
			header(w, "JOB", "STATE", "DONE", "OF", "BEGUN", "SAVED", "BY", "~OUTCOMES")
			for _, s := range all {
				terminal.Printf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", s.ID, s.PhaseAt(time.Now()), s.Did, totalOf(s),
					s.Begun.Format(time.RFC3339), s.Saved.Format(time.RFC3339), s.By, outcomesOf(s))
			}
		}),
	}, ends{
		exitOK:     "they were listed, even if there are none",
		exitFailed: "the stack did not answer",
		exitUsage:  "usage or settings",
	})
	c.AddCommand(
		orderCommand(
			t,
			func(api operate.API) jobOrder { return api.StopJob },
			"stop JOB",
			"Stop a job, so that it can continue later",
			"The program that runs the job stops when it stores its next step, within about a minute. The command of "+
				"the job continues it.",
			"the job stops, or it did not run",
		),
		orderCommand(
			t,
			func(api operate.API) jobOrder { return api.DropJob },
			"drop JOB",
			"Delete the progress of a job, so that its command begins again",
			"It does not undo the work of the job. A job that runs is refused: stop it first.",
			"the progress is deleted",
		),
	)
	return c
}

// jobOrder stops or drops a job.
type jobOrder = operate.Order[operate.JobOrder]

// orderCommand is a command that gives an order about one job.
func orderCommand(t *target, order func(operate.API) jobOrder, use, short, long, ok string,
) *cobra.Command {
	return define(&cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ExactArgs(1),
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) error {
			return order(api)(c.Context(), operate.JobOrder{ID: args[0], By: whoami()})
		}),
	}, ends{
		exitOK: ok, exitFailed: "the stack did not answer, or the job runs", exitUsage: "usage or settings",
		exitMissing: "there is no such job",
	})
}

func totalOf(s job.State) string {
	if s.Total == 0 {
		return ""
	}
	return fmt.Sprint(s.Total)
}

// outcomesOf lists the outcomes of a job, or the error that stopped it.
func outcomesOf(s job.State) string {
	if s.Error != "" {
		return s.Error
	}
	var all []string
	for _, outcome := range slices.Sorted(maps.Keys(s.Counts)) {
		all = append(all, fmt.Sprintf("%d %s", s.Counts[outcome], outcome))
	}
	return strings.Join(all, ", ")
}
