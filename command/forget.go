package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func (a *app) forgetCommand() *cobra.Command {
	var may consent
	var group string
	patience := 2 * time.Minute
	return define(&cobra.Command{
		Use: "forget [KEY]", Short: "Remove a document wherever lull keeps it, for a person's right to be forgotten",
		Long: "Deletes a document from the sink, its dead letters and its scheduled events. It " +
			"waits until no flight holds it. A tombstone without content stays, under its key. It refuses every " +
			"version of the document for as long as rows are kept, so that nothing in a queue brings it back. After " +
			"that, or after `lull reset`, the document is accepted again: remove it at its source, too.\n\n" +
			"Without --yes it only lists what there is, and asks where there is a terminal. It can be run again at any time, " +
			"and goes on where it stopped. Audited, without content. docs/forget.md says what it cannot reach. " +
			"KEY is <collection>#<id>. With --group it is every document of a message group that has a row.",
		Args: keyOrGroup(&group),
		RunE: a.verb(func(c *cobra.Command, api operate.API, args []string) error {
			if group != "" {
				return a.forgetGroup(c.Context(), api, group, &may, patience)
			}
			key, err := keyArg(args[0])
			if err != nil {
				return err
			}
			return a.forget(c.Context(), api, operate.ForgetOrder{Key: key, By: whoami()}, &may, patience)
		}),
	}, ends{
		exitOK:      "nothing of it remains but the tombstone; or what there is was listed, without --yes",
		exitFailed:  "something stopped it, or it was not agreed to: run it again",
		exitUsage:   "usage or settings, or a key that is not clear",
		exitMissing: "nothing is known of it",
		exitWrong:   "something remains: the answer names it",
	},
		may.flag(),
		flag("group", &group, "forget every document of the message group `NAME`, a tenant, instead of one"),
		flag("patience", &patience, "how long `D` to ask again for what goes by itself"),
	)
}

// keyOrGroup accepts either one key or a message group.
func keyOrGroup(group *string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if (len(args) == 1) == (*group != "") || len(args) > 1 {
			return errors.New("want one KEY, or --group NAME, and not both")
		}
		return nil
	}
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
	done, err := operate.ForgetAndWait(ctx, api, o, a.asking(patience))
	if err != nil {
		return err
	}
	if err := a.forgotten(done); err != nil {
		return err
	}
	if done.Remaining > 0 {
		return &exitError{exitWrong, fmt.Errorf("something of %s remains", o.Key)}
	}
	return nil
}

func (a *app) asking(most time.Duration) operate.Patience {
	return operate.Patience{Clock: clock.System{}, Most: most, Waiting: func(things int) {
		terminal.Printf(a.err, "still in %d of its places, which give it up by themselves\n", things)
	}}
}

// forgetGroup forgets the documents of a message group.
func (a *app) forgetGroup(ctx context.Context, api operate.API, group string, may *consent, patience time.Duration,
) error {
	if !may.yes {
		all, err := operate.Group(ctx, api, group)
		if err == nil && all.Empty() {
			err = noGroup(group)
		}
		if err != nil {
			return err
		}
		if err := a.print(all, func(w io.Writer) {
			for _, key := range all.Keys {
				terminal.Printf(w, "%s\n", key)
			}
			unforgotten(w, all)
		}); err != nil {
			return err
		}
		if _, can := tty(a.in); !can {
			return nil
		}
		if err := may.ask(ctx, a, fmt.Sprintf("Remove all %d documents of group %s for good?", len(all.Keys),
			group)); err != nil {
			return err
		}
	}
	found := 0
	remain, left, err := operate.ForgetGroup(ctx, api, group, operate.ForgetOrder{By: whoami()}, a.asking(patience),
		func(key shard.DocID, done operate.Forgotten, err error) error {
			if found++; err == nil {
				return a.forgotten(done)
			}
			terminal.Printf(a.err, "%s: %v\n", key, err)
			return nil
		})
	switch {
	case err != nil:
		return err
	case found == 0 && left.Empty():
		return noGroup(group)
	}
	unforgotten(a.err, left)
	terminal.Printf(a.err, "documents that did not change for lifecycle.rowRetention have no row, and are not found: "+
		"delete them in the sink\n")
	if remain > 0 {
		return &exitError{exitWrong, fmt.Errorf("something of group %s remains", group)}
	}
	return nil
}

func noGroup(group string) error { return fmt.Errorf("group %s: %w", group, operate.ErrNotFound) }

// unforgotten prints the messages that belong, or may belong, to a group and to no document.
func unforgotten(w io.Writer, left operate.GroupPage) {
	for _, id := range left.Letters {
		terminal.Printf(w, "dead letter %s is of the group, and of no document: `lull dead show %s`, then "+
			"`lull dead drop %s`\n", id, id, id)
	}
	for _, unread := range left.Unread.Remains {
		terminal.Printf(w, "%s\n", unread)
	}
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
