// SPDX-License-Identifier: Apache-2.0

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
		Long: "Deletes a document from the sink, its dead letters and its scheduled events. It waits until no flight " +
			"holds the document. A tombstone without content stays under the document's key. As long as rows are kept, " +
			"it refuses every version, so that no message in a queue brings the document back. After that, or after " +
			"`lull reset`, the document is accepted again: so also remove it at its source.\n\n" +
			"Without --yes it only lists what it finds, and in a terminal it asks. It is a job (`lull jobs`), one at a " +
			"time in a stack: after an interruption, the same command continues it, on any machine. The row of the job " +
			"has only a hash of the key. Audited, without content. docs/forget.md says what this command cannot reach. " +
			"KEY is <collection>#<id>. With --group it forgets every document of a message group that has a row.",
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
		exitOK:      "only the tombstone remains; or, without --yes, the list was printed",
		exitFailed:  "something stopped it, or you did not agree: run it again",
		exitUsage:   "usage or settings, or a KEY that is not valid",
		exitMissing: "nothing is known about it",
		exitWrong:   "something remains: the answer names it",
	},
		may.flag(),
		flag("group", &f.Group, "forget every document of the message group `NAME`, a tenant, instead of one"),
		flag("patience", &f.Patience, "how long `D` to wait for what ends by itself, such as a flight"),
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

// mayForget lists what it finds, and asks if there is a terminal. For a group it lists only the
// documents.
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

// forget runs the job, and prints what remains.
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
		terminal.Printf(std.err, "documents that did not change for lifecycle.rowRetention have no row, so they are not found: "+
			"delete them in the sink\n")
		done.Remaining += len(left.Letters) + left.Unread.Found
	}
	if err == nil && done.Remaining > 0 {
		err = &exitError{exitWrong, fmt.Errorf("something of %s remains: the lines above say where", what)}
	}
	return err
}

// runForget runs the job. It prints the progress to standard error.
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
		terminal.Printf(w, "dead letter %s belongs to the group, but to no document: `lull dead show %s`, then "+
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
			terminal.Printf(w, "every version of %s is refused until %s\n", cmp.Or(string(f.Key), "each document"),
				f.Until.UTC().Format(time.RFC3339))
		}
		if f.DryRun {
			terminal.Printf(w, "nothing was changed: --yes removes it\n")
		}
	})
}
