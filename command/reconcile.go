package command

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func (a *app) reconcileCommand() *cobra.Command {
	var o operate.ReconcileOrder
	return define(&cobra.Command{
		Use: "reconcile COLLECTION", Short: "Compare a collection in the sink with its rows, and repair what differs",
		Long: "Compares every document of a collection with its row: after a restore of the table or of the sink, " +
			"or after the alarm drift. A row that is behind the sink is raised to the version that the sink " +
			"holds. A delete that the sink has undone is written again. What the sink has lost, only the " +
			"source can send again: those documents are named with the outcome resync.\n\n" +
			"It may run beside live traffic, and as often as you like. It reads the whole table and the whole " +
			"collection, a page at a time. With -o json each document that differs is one line, and the last " +
			"line counts. Each change is audited.",
		Args: cobra.ExactArgs(1),
		RunE: a.verb(func(c *cobra.Command, api operate.API, args []string) error {
			order := o
			order.Collection, order.By = shard.Collection(args[0]), whoami()
			if err := checkCollection("COLLECTION", args[0]); err != nil {
				return err
			}
			order.Found = func(l operate.ReconcileLine) {
				a.line(l, fmt.Sprintf("%-10s", l.Outcome), fmt.Sprintf("%-11s", l.Difference),
					fmt.Sprintf("%s v%s", l.Key, l.Version), l.Error)
			}
			res, err := api.Reconcile(c.Context(), order)
			return cmp.Or(err, a.reconcileEnd(res))
		}),
	}, map[int]string{
		exitOK:      "nothing differs, or nothing does any more",
		exitFailed:  "documents still differ, or something stopped it",
		exitUsage:   "usage or settings, or a sink that cannot be read from here: nothing was changed",
		exitMissing: "no setting, row or document is of this collection",
		exitWrong:   "nothing differs, but some are being written, were a moment ago, or wait to be: run it again",
	},
		flag("dry-run", &o.DryRun, "say what differs and what would happen, change nothing"),
		flag("sink", &o.Sink, "`NAME` of the sink, where the collection has several"),
		flag("rate", &o.Rate, "at most `N` documents a second, 0 for no limit", perSecond(&o.Rate, "documents")),
	)
}

func (a *app) reconcileEnd(res operate.ReconcileResult) error {
	err := a.last(res, func(w io.Writer) {
		terminal.Printf(w, "%d documents in the sink, %d rows; %d being written, written a moment ago, or waiting\n",
			res.Documents, res.Rows, res.Waiting)
		outcomes(w, res.Outcomes, res.DryRun)
	})
	if err == nil && res.Remaining > 0 {
		err = &exitError{exitFailed, fmt.Errorf("%d documents of %s differ from their rows", res.Remaining,
			res.Collection)}
	}
	if err == nil && res.Waiting > 0 {
		err = &exitError{exitWrong, fmt.Errorf("nothing differs as far as it can be told: %d documents of %s are being "+
			"written, were a moment ago, or wait to be; run it again", res.Waiting, res.Collection)}
	}
	return err
}
