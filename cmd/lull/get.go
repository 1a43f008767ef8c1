package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

func keyArg(s string) (shard.DocID, error) {
	k, err := shard.ParseDocID(s)
	if err != nil {
		return "", usage(err)
	}
	return k, nil
}

func getCommand(t *target) *cobra.Command {
	return t.verb(&cobra.Command{
		Use: "get KEY", Short: "Print a document as its sink holds it (KEY is <collection>#<id>)", Args: cobra.ExactArgs(1),
	}, func(c *cobra.Command, api operate.API, args []string) error {
		key, err := keyArg(args[0])
		if err != nil {
			return err
		}
		d, err := api.Get(c.Context(), key)
		if err != nil {
			return err
		}
		return t.print(c, d, func(w io.Writer) {
			fmt.Fprintf(w, "key\t%s#%s\nversion\t%s\norder key\t%s\nfence\t%d\nindexed\t%s\n\n%s\n", d.Collection, d.ID, d.Version, d.OrderKey, d.Fence,
				d.Indexed.Format(time.RFC3339Nano), d.Document)
		})
	})
}

func statusCommand(t *target) *cobra.Command {
	return t.verb(&cobra.Command{
		Use: "status", Short: "Show what waits where, how the sinks are, and parked letters", Args: cobra.NoArgs,
	}, func(c *cobra.Command, api operate.API, _ []string) error {
		s, err := api.Status(c.Context())
		if err != nil {
			return err
		}
		return t.print(c, s, func(w io.Writer) {
			fmt.Fprintln(w, "QUEUE\tVISIBLE\tHELD\tDELAYED")
			for _, q := range s.Queues {
				fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", q.Queue, q.Visible, q.InFlight, q.Delayed)
			}
			fmt.Fprintln(w, "\nSINK\tHEALTH")
			for _, k := range s.Sinks {
				health := "well"
				if k.Open {
					health = fmt.Sprintf("unwell: nothing is claimed before %s (level %d)", k.OpenUntil.Format(time.RFC3339), k.Level)
				}
				fmt.Fprintf(w, "%s\t%s\n", k.Sink, health)
			}
			more := ""
			if s.Capped {
				more = " or more"
			}
			fmt.Fprintf(w, "\n%d flights%s, %d dead letters parked%s", s.Flights, more, s.Letters, more)
			if !s.Pruned.IsZero() {
				fmt.Fprintf(w, ", pruned at %s", s.Pruned.Format(time.RFC3339))
			}
			fmt.Fprintln(w)
		})
	})
}

func explainCommand(t *target) *cobra.Command {
	return t.verb(&cobra.Command{
		Use: "explain KEY", Short: "Say why a document is as fresh as it is", Args: cobra.ExactArgs(1),
	}, func(c *cobra.Command, api operate.API, args []string) error {
		key, err := keyArg(args[0])
		if err != nil {
			return err
		}
		x, err := api.Explain(c.Context(), key)
		if err != nil {
			return err
		}
		return t.print(c, x, func(w io.Writer) {
			fmt.Fprintf(w, "%s\n\nROW\n", x.Key)
			for _, a := range shard.Attrs() {
				if v, ok := x.Row[string(a)]; ok {
					fmt.Fprintf(w, "  %s\t%v\n", a, v)
				}
			}
			inSink := x.InSink
			if inSink == "" {
				inSink = "nothing"
			}
			fmt.Fprintf(w, "\nSINK\n  version\t%s\n", inSink)
			if len(x.Letters) > 0 {
				fmt.Fprintln(w, "\nDEAD LETTERS")
				for _, l := range x.Letters {
					fmt.Fprintf(w, "  %s\tv%s\t%s\t%s\t%s\n", l.ID, l.Version, l.Reason, l.State, l.Detail)
				}
			}
			if len(x.Decisions) > 0 {
				fmt.Fprintln(w, "\nDECISIONS")
				for _, d := range x.Decisions {
					fmt.Fprintf(w, "  %s\t%s\t%s\n", d.At.Format("15:04:05.000"), d.Step, d.Text)
				}
			}
			fmt.Fprintf(w, "\n%s\n", x.Sentence)
		})
	})
}
