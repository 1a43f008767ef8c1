package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/operate"
)

func (a *app) rescueCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "rescue FLIGHT", Short: "Start a flight from the manifest of a stuck one", Args: cobra.ExactArgs(1),
		Long: "What is left of a flight that nobody works on any more (alarm Stuck) is admitted again and written, " +
			"with no message behind it. What is\n" +
			"committed already, or newer, is left alone. Rescuing a flight twice does no harm.",
	}
	a.verb(c, func(c *cobra.Command, api operate.API, args []string) error {
		id, err := api.Rescue(c.Context(), flight.ID(args[0]))
		if err != nil {
			return err
		}
		return a.print(map[string]string{"flight": string(id)},
			func(w io.Writer) { fmt.Fprintf(w, "started flight %s\n", id) })
	})
	return exits(c, map[int]string{
		exitOK: "a new flight was started", exitFailed: "it could not be started",
		exitUsage:   "usage or settings, or another stack's flight",
		exitMissing: "there is no such flight, or nothing left in it",
	})
}
