// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/terminal"
)

func pauseCommand(std *streams, t *target) *cobra.Command {
	order := operate.PauseOrder{}
	show := func(w io.Writer, s operate.PauseChange) {
		if !s.Changed {
			terminal.Printf(w, "%s: already %s\n", s.Sink, pausedText(s.Pause))
			return
		}
		terminal.Printf(
			w,
			"%s: paused. Messages that are sent from now on wait, and become dead letters from %s on; messages that "+
				"waited before become dead letters earlier. `lull resume %s` ends the pause.\n",
			s.Sink,
			clockText(s.Pause.DeadFrom),
			s.Sink,
		)
	}
	return halting(std, t, &cobra.Command{
		Use: "pause SINK|--all", Short: "Write nothing to a sink until it is resumed",
		Long: "From the next invocation on, the sink gets no document, no delete and no ping. Invocations that already " +
			"run end first, within index.timeout. Messages wait in their queue, as while the sink is away. Nothing is " +
			"lost: a message that waits longer than retry.deadDeadline becomes a dead letter, which you may redrive. The " +
			"answer says from when on. The circuit breaker does not end a pause. `lull status` and `lull explain` say who " +
			"paused the sink, when and why. With the setting tableOutage: open, lull writes during an outage of the " +
			"table without reading whether the sink is paused. Audited.",
	}, &order, func(api operate.API) halt { return api.Pause }, show, ends{
		exitOK: "every sink that was named is paused", exitFailed: "it may be paused or not: ask `lull status`",
		exitUsage: "usage or settings",
	}, flag("why", &order.Why, "the reason, a `TEXT` for other operators; 200 bytes are kept"))
}

func resumeCommand(std *streams, t *target) *cobra.Command {
	show := func(w io.Writer, s operate.PauseChange) {
		if !s.Changed {
			terminal.Printf(w, "%s: was not paused\n", s.Sink)
			return
		}
		terminal.Printf(w, "%s: resumed. It was %s\n", s.Sink, pausedText(s.Pause))
	}
	return halting(std, t, &cobra.Command{
		Use: "resume SINK|--all", Short: "Write to a paused sink again",
		Long: "Waiting messages are written at a rate that soon grows, live before bulk. They return to their flights " +
			"within a third of the pause's length (bulk: half of it), at most four minutes. After a pause of more than " +
			"about five hours they return within a quarter of an hour. If the sink is unhealthy, it is probed first. " +
			"Audited.",
	}, &operate.PauseOrder{}, func(api operate.API) halt { return api.Resume }, show, ends{
		exitOK: "no sink that was named is paused", exitFailed: "it may be paused or not: ask `lull status`",
		exitUsage: "usage or settings",
	})
}

// halt pauses or resumes sinks.
type halt = operate.Operation[operate.PauseOrder, operate.PauseResult]

// halting makes c a command that pauses or resumes one sink or all sinks.
func halting(std *streams, t *target, c *cobra.Command, order *operate.PauseOrder, halts func(operate.API) halt,
	show func(io.Writer, operate.PauseChange), codes ends, more ...option,
) *cobra.Command {
	c.Args = cobra.MaximumNArgs(1)
	ask := func(api operate.API, ctx context.Context, args []string) (operate.PauseResult, error) {
		if len(args) > 0 {
			order.Sink = args[0]
		}
		if order.All == (order.Sink != "") {
			return operate.PauseResult{}, usagef("%s: name one sink, or --all: `lull status` lists them", c.Name())
		}
		order.By = whoami()
		return halts(api)(ctx, *order)
	}
	c.RunE = question(std, t, ask, func(w io.Writer, r operate.PauseResult) {
		for _, s := range r.Sinks {
			show(w, s)
		}
	})
	return define(c, codes, append(more, flag("all", &order.All, "every sink of the stack"))...)
}

// pausedText says who paused a sink, since when and why.
func pausedText(p *operate.Pause) string {
	text := "paused by " + p.By + " since " + clockText(p.Since)
	if p.Why != "" {
		text += ": " + p.Why
	}
	return text
}

func clockText(t time.Time) string { return t.Format(time.RFC3339) }
