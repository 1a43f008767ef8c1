// SPDX-License-Identifier: Apache-2.0

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
		Use: "backfill COLLECTION", Short: "Fill a sink with the documents of another sink of the collection",
		Long: "Use it for a sink that was added to a collection, while events go to both sinks. It reads the rows and " +
			"documents of the first sink, or of --from, and also documents whose rows have expired. It writes each document, " +
			"and each tombstone, to --sink, under a lease of its row there and with its version. So it never replaces a newer " +
			"version.\n\n" +
			"It sends nothing to any queue, and asks neither the source nor an enricher. It is a job (`lull jobs`): after " +
			"an interruption, the same command continues on any machine. If documents were in motion, run it again: it " +
			"leaves out the documents that the sink already has. If the source can be exported, `lull resync --sink` can " +
			"also fill the sink.",
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
		exitOK:      "the sink has the documents of the other sink; documents in motion come with their own events",
		exitFailed:  "something stopped it: run it again",
		exitUsage:   "usage or settings, or a sink that cannot be read or written from here",
		exitRefused: "some documents were not copied: the answer names them",
	},
		flag("sink", &o.Sink, "`NAME` of the sink that is filled", needed("name the sink to fill")),
		flag("from", &o.From, "`NAME` of the sink that has the documents; without it the first sink of the collection"),
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
		return &exitError{exitRefused, fmt.Errorf("%d documents were not copied: see their lines, and run it again", bad)}
	}
	return err
}
