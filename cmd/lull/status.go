package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/terminal"
)

func (a *app) statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show what waits where, which sinks are healthy, and how many dead letters are parked",
		Args: cobra.NoArgs,
		Long: "Counts the messages of every queue (on AWS approximately): visible, held and delayed ones. Counts " +
			"the flights, the scheduled events and the parked dead letters, and says which sinks are unhealthy. A " +
			"scheduled event is a delayed message in its last quarter of an hour.",
	}
	ask := func(ctx context.Context, api operate.API, _ []string) (operate.Status, error) { return api.Status(ctx) }
	question(a, c, ask, func(w io.Writer, s operate.Status) {
		header(w, "QUEUE", "VISIBLE", "HELD", "DELAYED")
		for _, q := range s.Queues {
			terminal.Printf(w, "%s\t%d\t%d\t%d\n", q.Queue, q.Visible, q.InFlight, q.Delayed)
		}
		fmt.Fprintln(w)
		header(w, "SINK", "HEALTH")
		for _, k := range s.Sinks {
			health := terminal.Styled{Style: terminal.Green, Text: "healthy"}
			if k.Open {
				health = bad("unhealthy: nothing is claimed before %s (level %d)", k.OpenUntil.Format(time.RFC3339), k.Level)
			}
			terminal.Printf(w, "%s\t%s\n", k.Sink, health)
		}
		for _, wrong := range s.Wrong {
			terminal.Printf(w, "\n%s %s\n", bad("WRONG:"), wrong)
		}
		more := ""
		if s.Capped {
			more = " or more"
		}
		terminal.Printf(w, "\n%d flights%s, %d events scheduled%s, %d dead letters parked%s", s.Flights, more, s.Scheduled, more,
			s.Letters, more)
		if !s.Pruned.IsZero() {
			terminal.Printf(w, ", pruned at %s", s.Pruned.Format(time.RFC3339))
		}
		fmt.Fprintln(w)
	})
	return exits(c, map[int]string{
		exitOK: "the stack answered, whatever waits", exitFailed: "the stack did not answer",
		exitUsage: "usage or settings",
	})
}
