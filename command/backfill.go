package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func backfillCommand(std *streams, t *target) *cobra.Command {
	var o operate.BackfillOrder
	var most float64
	return define(&cobra.Command{
		Use: "backfill COLLECTION", Short: "Fill a sink with what another sink of the collection holds",
		Long: "For a sink that was added to a collection, while events go to both. It reads the rows and documents of the " +
			"first sink, or of --from, and its documents whose rows are gone. It writes each document, and each tombstone, to " +
			"--sink, under a lease of its row there and under the version that it has. So a version that is newer is never taken back.\n\n" +
			"It sends nothing to any queue, and asks neither the source nor an enricher. It is a job (`lull jobs`): after " +
			"anything that stopped it, the same command continues on any machine. Run it again where documents were in " +
			"motion: what is there already is left out. A source that can be exported can fill the sink with " +
			"`lull resync --sink`, too.",
		Args: cobra.ExactArgs(1),
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) error {
			order := o
			order.Collection, order.By = shard.Collection(args[0]), whoami()
			if err := checkCollection("COLLECTION", args[0]); err != nil {
				return err
			}
			return runBackfill(c.Context(), std, api, order, most)
		}),
	}, ends{
		exitOK:      "the sink has what the other one has; what is in motion comes with its own events",
		exitFailed:  "something stopped it: run it again",
		exitUsage:   "usage or settings, or a sink that cannot be read or written from here",
		exitRefused: "documents were not copied, and are named",
	},
		flag("sink", &o.Sink, "`NAME` of the sink that is filled", needed("name the sink that shall be filled")),
		flag("from", &o.From, "`NAME` of the sink that holds the documents; without it the collection's first"),
		flag("dry-run", &o.DryRun, "say what would be copied, change nothing"),
		flag("rate", &most, "at most `N` documents a second, 0 for no limit", perSecond(&most, "documents")),
	)
}

func runBackfill(ctx context.Context, std *streams, api operate.API, o operate.BackfillOrder, most float64) error {
	state, err := runJob(ctx, std, api, operate.BackfillJob(api, o, most), job.Runner{Rate: most, Dry: o.DryRun},
		func(l operate.BackfillLine) { std.line(l, l.Outcome, string(l.Key), l.Error) })
	if err != nil {
		return fmt.Errorf("after %d documents: %w", state.Counts[operate.Copied], err)
	}
	err = std.last(state.Counts, func(w io.Writer) {
		verb := "copied"
		if o.DryRun {
			verb = "would be copied"
		}
		n := state.Counts
		terminal.Printf(w, "%d %s, %d there already, %d in motion, %d differ, %d failed\n", n[operate.Copied], verb,
			n[operate.There], n[operate.InMotion], n[operate.Differs], n[operate.Failed])
	})
	if bad := state.Counts[operate.Differs] + state.Counts[operate.Failed]; err == nil && bad > 0 {
		return &exitError{exitRefused, fmt.Errorf("%d documents were not copied", bad)}
	}
	return err
}
