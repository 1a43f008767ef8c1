package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/terminal"
)

func forgetCommand(std *streams, t *target) *cobra.Command {
	var may consent
	f := operate.Forgetting{Clock: clock.System{}, Patience: 2 * time.Minute}
	return define(&cobra.Command{
		Use: "forget [KEY]", Short: "Remove a document wherever lull keeps it, for a person's right to be forgotten",
		Long: "Deletes a document from the sink, its dead letters and its scheduled events. It " +
			"waits until no flight holds it. A tombstone without content stays, under its key. It refuses every " +
			"version of the document for as long as rows are kept, so that nothing in a queue brings it back. After " +
			"that, or after `lull reset`, the document is accepted again: remove it at its source, too.\n\n" +
			"Without --yes it only lists what there is, and asks where there is a terminal. It is a job (`lull jobs`), " +
			"one at a time in a stack: after anything that stopped it, the same command continues it, on any machine. " +
			"The job's row has a hash of the key only. Audited, without content. docs/forget.md says what it cannot reach. " +
			"KEY is <collection>#<id>. With --group it is every document of a message group that has a row.",
		Args: keyOrGroup(&f.Group),
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) (err error) {
			f := f
			f.By = whoami()
			var all operate.GroupPage
			if f.Group == "" {
				f.Key, err = keyArg(args[0])
			} else if all, err = operate.Group(c.Context(), api, f.Group); err == nil && all.Empty() {
				err = fmt.Errorf("group %s: %w", f.Group, operate.ErrNotFound)
			}
			if f.Keys = all.Keys; err == nil && !may.yes {
				err = mayForget(c.Context(), std, api, f, all, &may)
			}
			if err != nil || !may.yes {
				return err
			}
			return forget(c.Context(), std, api, f)
		}),
	}, ends{
		exitOK:      "nothing of it remains but the tombstone; or what there is was listed, without --yes",
		exitFailed:  "something stopped it, or it was not agreed to: run it again",
		exitUsage:   "usage or settings, or a key that is not clear",
		exitMissing: "nothing is known of it",
		exitWrong:   "something remains: the answer names it",
	},
		may.flag(),
		flag("group", &f.Group, "forget every document of the message group `NAME`, a tenant, instead of one"),
		flag("patience", &f.Patience, "how long `D` to ask again for what goes by itself"),
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

// mayForget lists what there is, and asks where there is a terminal. Of a group it lists the
// documents only.
func mayForget(ctx context.Context, std *streams, api operate.API, f operate.Forgetting, all operate.GroupPage,
	may *consent,
) error {
	what := "all of " + string(f.Key)
	var err error
	if f.Group == "" {
		f.DryRun = true
		var there operate.Forgotten
		if there, err = runForget(ctx, std, api, f); err == nil {
			err = forgotten(std, there)
		}
	} else {
		what = fmt.Sprintf("all %d documents of group %s", len(all.Keys), f.Group)
		err = std.print(all, func(w io.Writer) {
			for _, key := range all.Keys {
				terminal.Printf(w, "%s\n", key)
			}
			unforgotten(w, all)
		})
	}
	if _, can := tty(std.in); err != nil || !can {
		return err
	}
	err = may.ask(ctx, std, fmt.Sprintf("Remove %s for good?", what))
	may.yes = err == nil
	return err
}

// forget forgets, and says what remains.
func forget(ctx context.Context, std *streams, api operate.API, f operate.Forgetting) error {
	done, err := runForget(ctx, std, api, f)
	if err == nil {
		err = forgotten(std, done)
	}
	what := string(f.Key)
	if err == nil && f.Group != "" {
		what = "group " + f.Group
		left, err := api.InGroup(ctx, operate.GroupQuery{Group: f.Group})
		if err != nil {
			return fmt.Errorf("ask for what remains of group %s: %w", f.Group, err)
		}
		unforgotten(std.err, left)
		terminal.Printf(std.err, "documents that did not change for lifecycle.rowRetention have no row, and are not found: "+
			"delete them in the sink\n")
		done.Remaining += len(left.Letters) + left.Unread.Found
	}
	if err == nil && done.Remaining > 0 {
		err = &exitError{exitWrong, fmt.Errorf("something of %s remains", what)}
	}
	return err
}

// runForget runs the job, with its progress on standard error.
func runForget(ctx context.Context, std *streams, api operate.API, f operate.Forgetting) (operate.Forgotten, error) {
	var lines []operate.ForgetNote
	state, err := runJob(ctx, std, api, f.Job(api), job.Runner{Dry: f.DryRun}, func(l operate.ForgetNote) {
		lines = append(lines, l)
	})
	if err != nil {
		return operate.Forgotten{}, err
	}
	return f.Result(state, lines)
}

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

func forgotten(std *streams, f operate.Forgotten) error {
	return std.print(f, func(w io.Writer) {
		for _, key := range f.Keys {
			terminal.Printf(w, "%s\n", key)
		}
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
			terminal.Printf(w, "every version of %s is refused until %s\n", cmp.Or(string(f.Key), "each"),
				f.Until.UTC().Format(time.RFC3339))
		}
		if f.DryRun {
			terminal.Printf(w, "nothing was changed: --yes removes it\n")
		}
	})
}
