// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/simulation/cost"
)

func costCommand() *cobra.Command {
	var settings string
	var asJSON bool
	load := cost.Load{Burst: 3, Spread: 2 * time.Second, Hours: 24, Bytes: 700}
	return define(&cobra.Command{
		Use: "cost", Short: "Estimate the whole monthly bill of your settings on AWS",
		Long: "Runs the real functions in virtual time with your settings and a load, and counts what AWS bills: " +
			"requests, time, logs, metrics, alarms, polls, storage, keys and secrets, each with its price. AWS decides " +
			"how many pollers receive from a queue and how full their requests are. So there are two columns: a floor and " +
			"a ceiling. The ceiling has the pollers with which AWS begins: under load AWS may use more. Without --load it " +
			"is the bill of a stack in which nothing happens. docs/cost.md explains the lines.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, _, err := devConfig(c, devFlags{config: settings})
			if err != nil {
				return usage(err)
			}
			if err := load.Validate(); err != nil {
				return usage(err)
			}
			e, err := cost.Of(c.Context(), cfg, load)
			if err != nil {
				return &exitError{exitFailed, err}
			}
			if !asJSON {
				fmt.Fprint(c.OutOrStdout(), e)
				return nil
			}
			out := json.NewEncoder(c.OutOrStdout())
			out.SetIndent("", "  ")
			return out.Encode(e)
		},
	}, ends{
		exitOK: "the bill is estimated", exitFailed: "the simulation failed", exitUsage: "usage or settings",
	},
		flag("config", &settings, "settings, a `FILE` like lull.yaml; without it the defaults"),
		flag("load", &load.Rate, fmt.Sprintf("`N` events a second, up to %d", cost.MaxRate)),
		flag("burst", &load.Burst, fmt.Sprintf("`N` events of each burst, up to %d", cost.MaxBurst)),
		flag("spread", &load.Spread, "duration `D` within which the events of a burst are sent"),
		flag("hours", &load.Hours, "for how many `HOURS` of a day the load lasts"),
		flag("documents", &load.Documents, "`N` documents in the table: those that change within "+
			"lifecycle.rowRetention"),
		flag("bytes", &load.Bytes, "`N` bytes of a message"),
		flag("used", &load.Used, fmt.Sprintf("`PERCENT` of a provisioned table's capacity that is used on average, 1 to "+
			"100; without it %d", cost.UsualUse)),
		flag("questions", &load.Questions, "`N` questions a month at the URL of searchableCalls, each waits for two seconds"),
		flag("key", &load.Key, "your own KMS key encrypts the table, the queues and the bucket"),
		flag("json", &asJSON, "print one JSON object"),
	)
}
