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
		Use: "reset KEY --to VERSION", Short: "Accept versions again that an absurd one left behind",
		Long: "For a document whose committed version is far above all that will follow: its later versions are " +
			"stale, and `lull explain` says so. After a reset, VERSION and all above it are new again. The sink " +
			"keeps what it has until the upstream sends one of them, so publish the newest one again, a few seconds " +
			"later. The version that was committed stays taken back: no message, redrive, rescue or replay brings it " +
			"again. If you want it after all, give it as VERSION and publish it again. Set maxVersion of the source " +
			"first, or another absurd version may come. " +
			"Nothing is changed while the document is being written or waits for it. KEY is <collection>#<id>. " +
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
				terminal.Printf(w, "  the row has no room to remember that version %s was taken back: it is stale, until a reset "+
					"to it or below it\n", strings.Join(r.Forgotten, ", "))
			}
		}),
	}, ends{
		exitOK: "it is reset", exitFailed: "nothing was changed: it is being written or waits for it, or no answer came",
		exitUsage:   "usage or settings, or a version that is not below the committed one",
		exitMissing: "nothing is committed",
	},
		may.flag(),
		flag("to", &to, "the upstream's `VERSION` that is accepted again, and all above it",
			needed("say from which version on events are accepted again")),
		flag("epoch", &epoch, "epoch `N` of that version, where it is not that of the committed one",
			between(&epoch, 0, math.MaxUint32, fmt.Sprintf("0 to %d", uint32(math.MaxUint32)))),
	)
	return c
}
