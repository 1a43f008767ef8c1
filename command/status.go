// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/terminal"
)

func statusCommand(std *streams, t *target) *cobra.Command {
	watch, every := false, 2*time.Second
	return define(&cobra.Command{
		Use: "status", Short: "Show what waits where, which sinks are healthy, and how many dead letters are parked",
		Args: cobra.NoArgs,
		Long: "Says how long the oldest live message waits, how fresh documents were, and how fast events come. " +
			"Counts the messages of every queue (on AWS approximately): visible, held and delayed ones. Counts " +
			"the flights, the scheduled events and the parked dead letters. Says which sinks are unhealthy and why, " +
			"and how many messages are put off. A " +
			"scheduled event is a delayed message in its last quarter of an hour.",
		RunE: t.verb(func(c *cobra.Command, api operate.API, _ []string) error {
			if c.Flags().Changed("every") && !watch {
				return usagef("--every: goes with --watch")
			}
			if watch {
				return watchStatus(c.Context(), std, api, every)
			}
			s, err := api.Status(c.Context())
			if err != nil {
				return err
			}
			return std.print(s, func(w io.Writer) { showStatus(w, s) })
		}),
	}, ends{
		exitOK: "the stack answered, whatever waits; or Ctrl-C ended --watch", exitFailed: "the stack did not answer",
		exitUsage: "usage or settings",
	},
		flag("watch,w", &watch, "show it again and again, until Ctrl-C; in a pipe as one line each time"),
		flag("every", &every, "with --watch: once in a duration `D`"),
	)
}

func showStatus(w io.Writer, s operate.Status) {
	showFlow(w, s.Flow, time.Now())
	header(w, "QUEUE", "VISIBLE", "HELD", "DELAYED")
	for _, q := range s.Queues {
		terminal.Printf(w, "%s\t%d\t%d\t%d\n", q.Queue, q.Visible, q.InFlight, q.Delayed)
	}
	fmt.Fprintln(w)
	header(w, "SINK", "HEALTH")
	for _, k := range s.Sinks {
		health := terminal.Styled{Style: terminal.Green, Text: "healthy"}
		switch {
		case k.Pause != nil:
			health = bad(
				"%s; its messages become dead letters from %s on",
				pausedText(k.Pause),
				clockText(k.Pause.DeadFrom),
			)
		case k.Open:
			health = bad(
				"unhealthy%s: nothing is claimed before %s (opened %d times in a row)%s",
				sinceText(k), k.OpenUntil.Format(time.RFC3339),
				k.Level, causeText(k),
			)
		case k.PutOff > 0 && !k.PutOffUntil.IsZero():
			health = terminal.Styled{Style: terminal.Yellow, Text: "takes documents again" + rateText(k) + causeText(k)}
		case k.Growing:
			health.Text = "healthy again" + rateText(k)
		case k.Rate > 0 && (k.Ceiling == 0 || k.Rate < k.Ceiling):
			health = terminal.Styled{
				Style: terminal.Yellow, Text: fmt.Sprintf("throttles: %.1f documents/s%s", k.Rate, causeText(k)),
			}
		case k.AtCeiling:
			health.Text = fmt.Sprintf("healthy, at its ceiling: %g documents/s", k.Ceiling)
		}
		terminal.Printf(w, "%s\t%s\n", k.Sink, health)
	}
	if len(s.Enrichers) > 0 {
		fmt.Fprintln(w)
		header(w, "ENRICHER OF", "HEALTH")
	}
	for _, e := range s.Enrichers {
		health := terminal.Styled{Style: terminal.Green, Text: "healthy"}
		switch {
		case e.Away:
			health = bad("away: its documents wait, and lull asks it again from %s on", e.AwayUntil.Format(time.RFC3339))
		case e.Rate > 0:
			health = terminal.Styled{
				Style: terminal.Yellow,
				Text:  fmt.Sprintf("asked about %.1f documents/s, which grows", e.Rate),
			}
		}
		terminal.Printf(w, "%s\t%s\n", e.Collection, health)
	}
	for _, r := range s.Rebuilds {
		terminal.Printf(
			w,
			"\nrebuild of %s in sink %s: %s, %d of %d documents (`lull rebuild status`)\n",
			r.Collection,
			r.Sink,
			r.Phase,
			r.Done,
			r.Total,
		)
	}
	for _, wrong := range s.Wrong {
		terminal.Printf(w, "\n%s %s\n", bad("WRONG:"), wrong)
	}
	more := ""
	if s.Capped {
		more = " or more"
	}
	terminal.Printf(
		w,
		"\n%d flights%s, %d events scheduled%s, %d dead letters parked%s",
		s.Flights,
		more,
		s.Scheduled,
		more,
		s.Letters,
		more,
	)
	if !s.Pruned.IsZero() {
		terminal.Printf(w, ", pruned at %s", s.Pruned.Format(time.RFC3339))
	}
	fmt.Fprintln(w)
}

// sinceText says since when a sink is unhealthy; empty if that is not known.
func sinceText(k operate.SinkStatus) string {
	if k.Since.IsZero() {
		return ""
	}
	return " since about " + k.Since.Format(time.RFC3339)
}

// rateText says how fast documents are written to a sink that accepts documents again.
func rateText(k operate.SinkStatus) string {
	if k.Rate == 0 {
		return ""
	}
	return fmt.Sprintf(": %.1f documents/s, which grows", k.Rate)
}

// causeText says why a sink accepted nothing, and how many messages are put off.
func causeText(k operate.SinkStatus) string {
	text := ""
	if k.Cause != "" {
		text = "; last reason: " + k.Cause
	}
	switch {
	case k.PutOff > 0 && k.PutOffUntil.IsZero():
		text += fmt.Sprintf("; at most %d messages are put off, each for a quarter of an hour at most", k.PutOff)
	case k.PutOff > 0:
		text += fmt.Sprintf("; at most %d messages are put off, and come back by %s", k.PutOff,
			k.PutOffUntil.Format(time.RFC3339))
	}
	return text
}
