package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func (a *app) reconcileCommand() *cobra.Command {
	var o operate.ReconcileOrder
	c := &cobra.Command{
		Use: "reconcile COLLECTION", Short: "Compare a collection in the sink with its rows, and repair what differs",
		Long: "Compares every document of a collection with its row: after a restore of the table or of the sink, " +
			"or after the alarm drift. A row that is behind the sink is raised to the version that the sink " +
			"holds. A delete that the sink has undone is written again. What the sink has lost, only the " +
			"source can send again: those documents are named with the outcome resync.\n\n" +
			"It may run beside live traffic, and as often as you like. It reads the whole table and the whole " +
			"collection, a page at a time. With -o json each document that differs is one line, and the last " +
			"line counts. Each change is audited.",
		Args: cobra.ExactArgs(1),
	}
	a.verb(c, func(c *cobra.Command, api operate.API, args []string) error {
		order := o
		order.Collection, order.By = shard.Collection(args[0]), whoami()
		if err := order.Collection.Validate(); err != nil {
			return usagef("COLLECTION: %w", err)
		}
		if !(o.Rate >= 0) || math.IsInf(o.Rate, 0) {
			return usagef("--rate %g: want documents a second, or 0 for no limit", o.Rate)
		}
		order.Found = func(l operate.ReconcileLine) { a.reconcileLine(l) }
		res, err := api.Reconcile(c.Context(), order)
		return cmp.Or(err, a.reconcileEnd(res))
	})
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what differs and what would happen, change nothing")
	c.Flags().StringVar(&o.Sink, "sink", "", "`NAME` of the sink, where the collection has several")
	c.Flags().Float64Var(&o.Rate, "rate", 0, "at most `N` documents a second, 0 for no limit")
	return exits(c, map[int]string{
		exitOK:      "nothing differs, or nothing does any more",
		exitFailed:  "documents still differ, or something stopped it",
		exitUsage:   "usage or settings, or a sink that cannot be read from here: nothing was changed",
		exitMissing: "no setting, row or document is of this collection",
		exitWrong:   "nothing differs, but some are being written, were a moment ago, or wait to be: run it again",
	})
}

func (a *app) reconcileLine(l operate.ReconcileLine) {
	if a.target.output == "json" {
		_ = json.NewEncoder(a.out).Encode(l) // what cannot be printed shows in the counts
		return
	}
	text := fmt.Sprintf("%-10s  %-11s  %s v%s", l.Outcome, l.Difference, l.Key, l.Version)
	if l.Error != "" {
		text += "  " + l.Error
	}
	terminal.Printf(a.out, "%s\n", text)
}

func (a *app) reconcileEnd(res operate.ReconcileResult) error {
	var err error
	if a.target.output == "json" {
		err = json.NewEncoder(a.out).Encode(res)
	} else {
		err = a.print(res, func(w io.Writer) {
			terminal.Printf(w, "%d documents in the sink, %d rows; %d being written, written a moment ago, or waiting\n", res.Documents, res.Rows,
				res.Waiting)
			for _, outcome := range slices.Sorted(maps.Keys(res.Outcomes)) {
				terminal.Printf(w, "%s: %d\n", outcome, res.Outcomes[outcome])
			}
			if res.DryRun {
				fmt.Fprintln(w, "dry run: nothing was changed")
			}
		})
	}
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
