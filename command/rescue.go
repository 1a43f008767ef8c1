// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/terminal"
)

func rescueCommand(std *streams, t *target) *cobra.Command {
	rescue := func(api operate.API, ctx context.Context, args []string) (map[string]flight.ID, error) {
		r, err := api.Rescue(ctx, flight.ID(args[0]))
		return map[string]flight.ID{"flight": r.ID}, err
	}
	return define(&cobra.Command{
		Use: "rescue FLIGHT", Short: "Start a new flight from the manifest of a stuck flight", Args: cobra.ExactArgs(1),
		Long: "Admits and writes what remains of a stuck flight (alarm stuck) from its manifest, without its " +
			"messages. A document that has committed this version or a newer one does not change. You may " +
			"rescue a flight twice.",
		RunE: question(std, t, rescue, func(w io.Writer, r map[string]flight.ID) {
			terminal.Printf(w, "started flight %s\n", r["flight"])
		}),
	}, ends{
		exitOK: "a new flight was started", exitFailed: "it could not be started",
		exitUsage:   "usage or settings, or another stack's flight",
		exitMissing: "the flight was not found, or nothing remains in it",
	})
}
