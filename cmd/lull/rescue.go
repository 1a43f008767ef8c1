package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/operate"
)

func rescueCommand(t *target) *cobra.Command {
	return t.verb(&cobra.Command{
		Use: "rescue FLIGHT", Short: "Start a flight from the manifest of a stuck one (alarm Stuck)", Args: cobra.ExactArgs(1),
	}, func(c *cobra.Command, api operate.API, args []string) error {
		id, err := api.Rescue(c.Context(), flight.ID(args[0]))
		if err != nil {
			return err
		}
		return t.print(c, map[string]string{"flight": string(id)}, func(w io.Writer) { fmt.Fprintf(w, "started flight %s\n", id) })
	})
}
