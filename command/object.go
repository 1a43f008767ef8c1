// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/terminal"
)

func objectCommand(std *streams, t *target) *cobra.Command {
	order := operate.ObjectOrder{}
	return define(&cobra.Command{
		Use: "object s3://BUCKET/KEY", Short: "Show, abort or reset the reading of an object of many documents",
		Long: "An object whose lines are documents (setting s3.lines) is read in slices. This shows for each sink how " +
			"many lines became messages, and which could not. --abort ends the reading: the messages that were sent stay, " +
			"and a newer object at the same place is read again. --reset withdraws the sequencer that was read last, for " +
			"example a forged one: objects with smaller sequencers are read again, and no object with the withdrawn one. " +
			"Audited.",
		Args: cobra.ExactArgs(1),
		RunE: question(std, t, func(api operate.API, ctx context.Context, args []string) (operate.ObjectResult, error) {
			order.Object = args[0]
			if order.Abort || order.Reset {
				order.By = whoami()
			} else if order.Why != "" {
				return operate.ObjectResult{}, usagef("--why: give it only with --abort or --reset")
			}
			r, err := api.Object(ctx, order)
			if err == nil && len(r.Sinks) == 0 {
				err = fmt.Errorf("lull has read no object at this place; `lull dead list` shows whether its notification is "+
					"a dead letter: %w", operate.ErrNotFound)
			}
			return r, err
		}, func(w io.Writer, r operate.ObjectResult) {
			for _, p := range r.Sinks {
				showObject(w, p)
			}
		}),
	}, ends{
		exitOK: "it is shown, aborted or reset", exitMissing: "nothing was read of it",
		exitFailed: "the stack did not answer",
		exitUsage:  "usage or settings",
	},
		flag("abort", &order.Abort, "do not read the object to its end"),
		flag("reset", &order.Reset, "withdraw its sequencer, so that objects with smaller sequencers are read"),
		flag("why", &order.Why, "with --abort or --reset: the reason, a `TEXT` for other operators"),
	)
}

func showObject(w io.Writer, p operate.ObjectProgress) {
	if n := len(p.TakenBack); p.Version == "" && n > 0 {
		terminal.Printf(w, "%s: nothing was read since sequencer %s was withdrawn at %s\n", p.Sink, p.TakenBack[n-1],
			clockText(p.Moved))
		if n > 1 {
			terminal.Printf(w, "  withdrawn before: %s\n", strings.Join(p.TakenBack[:n-1], ", "))
		}
		return
	}
	state := "is being read"
	switch {
	case p.Aborted != "":
		state = "was aborted by " + p.Aborted
	case p.Done:
		state = "was read to its end"
	}
	terminal.Printf(w, "%s: object %s, of %s, %s; last change %s\n", p.Sink, p.Version, clockText(p.Written.Time()), state,
		clockText(p.Moved))
	terminal.Printf(w, "  %d lines so far: %d became messages, %d are blank, %d cannot be messages\n", p.Lines, p.Sent,
		p.Blank, p.Faults)
	if !p.Done {
		terminal.Printf(w, "  at byte %d of %d\n", p.At.From, p.Bytes)
	}
	for _, f := range p.First {
		terminal.Printf(w, "  %s\n", f)
	}
}
