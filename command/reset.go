// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func resetCommand(std *streams, t *target) *cobra.Command {
	var to string
	var may consent
	var epoch int64
	var c *cobra.Command
	reset := func(api operate.API, ctx context.Context, key shard.DocID) (operate.Resetted, error) {
		order := operate.ResetOrder{Key: key, To: to, By: whoami()}
		if c.Flags().Changed("epoch") {
			of := uint32(epoch)
			order.Epoch = &of
		}
		err := may.check(std, "a reset")
		if err == nil {
			err = may.ask(ctx, std, fmt.Sprintf("Accept versions of %s from %s on again, although a newer one is committed?", key, to))
		}
		if err != nil {
			return operate.Resetted{}, err
		}
		return api.Reset(ctx, order)
	}
	c = define(&cobra.Command{
		Use: "reset KEY --to VERSION", Short: "Withdraw an absurd version, and accept lower versions again",
		Long: "For a document whose committed version is far above all versions that will follow. These are then stale, " +
			"and `lull explain` says so. A reset withdraws the committed version, and accepts VERSION and all other " +
			"versions above it again. The sink keeps its document until the upstream sends one of these versions, so " +
			"publish the newest one again, a few seconds later. No message, redrive, rescue or replay brings the " +
			"withdrawn version back. If you need it after all, give it as VERSION and publish it again. First set " +
			"maxVersion of the source, so that no other absurd version arrives. Nothing is changed while the document " +
			"is being written or waits to be written. KEY is <collection>#<id>. " +
			"Audited. It asks first: without a terminal it needs --yes.",
		Args: cobra.ExactArgs(1),
		RunE: question(std, t, ofKey(reset), func(w io.Writer, r operate.Resetted) {
			if r.GivenBack {
				terminal.Printf(w, "%s: version %s is accepted again: publish it again\n", r.Key, r.To)
				return
			}
			terminal.Printf(w, "%s: version %s was committed; versions from %s on are accepted again\n", r.Key,
				r.Version, r.To)
			if len(r.Forgotten) > 0 {
				terminal.Printf(w, "  the row has no room to remember that version %s was withdrawn: it is stale, until a reset "+
					"to it or below it\n", strings.Join(r.Forgotten, ", "))
			}
		}),
	}, ends{
		exitOK:      "it is reset",
		exitFailed:  "nothing was changed: it is being written or waits to be written, or the stack did not answer",
		exitUsage:   "usage or settings, or a version that is not below the committed one",
		exitMissing: "nothing is committed",
	},
		may.flag(),
		flag("to", &to, "the lowest `VERSION` of the upstream that is accepted again",
			needed("give the lowest version that is accepted again")),
		flag("epoch", &epoch, "epoch `N` of that version, if the committed version has another epoch",
			between(&epoch, 0, math.MaxUint32, fmt.Sprintf("0 to %d", uint32(math.MaxUint32)))),
	)
	return c
}
