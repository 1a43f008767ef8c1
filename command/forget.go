package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/terminal"
)

func (a *app) forgetCommand() *cobra.Command {
	var may consent
	patience := 2 * time.Minute
	return define(&cobra.Command{
		Use: "forget KEY", Short: "Remove a document wherever lull keeps it, for a person's right to be forgotten",
		Long: "Deletes a document from the sink, its dead letters and its scheduled events. It " +
			"waits until no flight holds it. A tombstone without content stays, under its key. It refuses every " +
			"version of the document for as long as rows are kept, so that nothing in a queue brings it back. After " +
			"that, or after `lull reset`, the document is accepted again: remove it at its source, too.\n\n" +
			"Without --yes it only lists what there is, and asks where there is a terminal. It can be run again at any time, " +
			"and goes on where it stopped. Audited, without content. docs/forget.md says what it cannot reach. " +
			"KEY is <collection>#<id>.",
		Args: cobra.ExactArgs(1),
		RunE: a.verb(func(c *cobra.Command, api operate.API, args []string) error {
			key, err := keyArg(args[0])
			if err != nil {
				return err
			}
			return a.forget(c.Context(), api, operate.ForgetOrder{Key: key, By: whoami()}, &may, patience)
		}),
	}, map[int]string{
		exitOK:      "nothing of it remains but the tombstone; or what there is was listed, without --yes",
		exitFailed:  "something stopped it, or it was not agreed to: run it again",
		exitUsage:   "usage or settings, or a key that is not clear",
		exitMissing: "nothing is known of it",
		exitWrong:   "something remains: the answer names it",
	},
		may.flag(),
		flag("patience", &patience, "how long `D` to ask again for what goes by itself"),
	)
}

func (a *app) forget(ctx context.Context, api operate.API, o operate.ForgetOrder, may *consent, patience time.Duration,
) error {
	look := o
	look.DryRun = true
	if !may.yes {
		there, err := api.Forget(ctx, look)
		if err != nil {
			return err
		}
		if err := a.forgotten(there); err != nil {
			return err
		}
		if _, can := tty(a.in); !can {
			return nil
		}
		if err := may.ask(ctx, a, fmt.Sprintf("Remove all of %s for good?", o.Key)); err != nil {
			return err
		}
	}
	done, err := api.Forget(ctx, o)
	began, before := time.Now(), tally(nil, done)
	wait := time.Second
	for ; err == nil && done.Waits > 0 && time.Since(began) < patience; wait = min(2*wait, 15*time.Second) {
		terminal.Printf(a.err, "still in %d of its places, which give it up by themselves\n", done.Waits)
		if err = sleep(ctx, min(wait, patience-time.Since(began))); err == nil {
			done, err = api.Forget(ctx, o)
			before = tally(before, done)
		}
	}
	if err != nil {
		return err
	}
	for i, s := range done.Steps { // what an earlier try removed counts, too
		more := max(before[s.Place]-s.Removed, 0)
		done.Steps[i].Found, done.Steps[i].Removed = s.Found+more, s.Removed+more
	}
	if err := a.forgotten(done); err != nil {
		return err
	}
	if done.Remaining > 0 {
		return &exitError{exitWrong, fmt.Errorf("something of %s remains", o.Key)}
	}
	return nil
}

// tally adds what was removed, by place. A tombstone is written once.
func tally(before map[string]int, f operate.Forgotten) map[string]int {
	if before == nil {
		before = map[string]int{}
	}
	for _, s := range f.Steps {
		if s.Place == operate.Tombstone {
			before[s.Place] = max(before[s.Place], s.Removed)
		} else {
			before[s.Place] += s.Removed
		}
	}
	return before
}

func (a *app) forgotten(f operate.Forgotten) error {
	return a.print(f, func(w io.Writer) {
		header(w, "PLACE", "FOUND", "REMOVED")
		for _, s := range f.Steps {
			terminal.Printf(w, "%s\t%d\t%d\n", s.Place, s.Found, s.Removed)
		}
		for _, s := range f.Steps {
			for _, r := range s.Remains {
				terminal.Printf(w, "%s: %s\n", s.Place, r)
			}
		}
		if !f.Until.IsZero() {
			terminal.Printf(w, "every version of %s is refused until %s\n", f.Key, f.Until.UTC().Format(time.RFC3339))
		}
		if f.DryRun {
			terminal.Printf(w, "nothing was changed: --yes removes it\n")
		}
	})
}
