package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/letter"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

func deadCommand(t *target) *cobra.Command {
	c := &cobra.Command{Use: "dead", Short: "List, show, redrive and drop dead letters"}
	c.AddCommand(deadListCommand(t), deadShowCommand(t), deadOrderCommand(t, "redrive"), deadOrderCommand(t, "drop"))
	return c
}

// letterFlags are the filters of the dead verbs.
type letterFlags struct {
	reason, collection, key, state, after, before string
}

func (l *letterFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&l.reason, "reason", "", "only letters of this reason")
	f.StringVar(&l.collection, "collection", "", "only letters of this collection")
	f.StringVar(&l.key, "key", "", "only letters of this document, <collection>#<id>")
	f.StringVar(&l.state, "state", "", "parked or redriven")
	f.StringVar(&l.after, "after", "", "only letters that died after this time (RFC 3339, or a duration such as 2h for that long ago)")
	f.StringVar(&l.before, "before", "", "only letters that died before this time")
}

func (l *letterFlags) filter(args []string) (operate.LetterFilter, error) {
	f := operate.LetterFilter{Reason: letter.Reason(l.reason), Collection: shard.Collection(l.collection), State: letter.State(l.state)}
	if len(args) > 0 {
		f.ID = args[0]
	}
	if l.key != "" {
		k, err := keyArg(l.key)
		if err != nil {
			return f, err
		}
		f.Key = k
	}
	for _, at := range []struct {
		flag, text string
		to         *time.Time
	}{{"--after", l.after, &f.After}, {"--before", l.before, &f.Before}} {
		if at.text == "" {
			continue
		}
		when, err := parseWhen(at.text, time.Now())
		if err != nil {
			return f, usage(fmt.Errorf("%s: %w", at.flag, err))
		}
		*at.to = when
	}
	return f, nil
}

func parseWhen(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%q: want 2026-11-20T16:00:00Z, or a duration such as 2h for that long ago", text)
	}
	return t, nil
}

func deadListCommand(t *target) *cobra.Command {
	var l letterFlags
	c := t.verb(&cobra.Command{Use: "list", Short: "List dead letters, oldest first", Args: cobra.NoArgs},
		func(c *cobra.Command, api operate.API, args []string) error {
			f, err := l.filter(args)
			if err != nil {
				return err
			}
			list, err := api.Letters(c.Context(), f)
			if err != nil {
				return err
			}
			return t.print(c, list, func(w io.Writer) {
				fmt.Fprintln(w, "ID\tDIED\tSTATE\tREASON\tKEY\tVERSION\tDETAIL")
				for _, d := range list {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.Died.Format(time.RFC3339), d.State, d.Reason, d.Key, d.Version, d.Detail)
				}
			})
		})
	l.add(c)
	return c
}

func deadShowCommand(t *target) *cobra.Command {
	return t.verb(&cobra.Command{Use: "show ID", Short: "Show one dead letter, its body byte for byte", Args: cobra.ExactArgs(1)},
		func(c *cobra.Command, api operate.API, args []string) error {
			d, err := api.Letter(c.Context(), args[0])
			if err != nil {
				return err
			}
			return t.print(c, d, func(w io.Writer) {
				fmt.Fprintf(w, "id\t%s\nkey\t%s\nversion\t%s\norder key\t%s\nreason\t%s\ndetail\t%s\nstate\t%s\nsink, lane\t%s, %s\nmessage\t%s\nsent\t%s\ndied\t%s\n"+
					"refusals\t%d\nfirst error\t%s\nlast error\t%s\nredrives\t%d (%d by itself)\n", d.ID, d.Key, d.Version, d.OrderKey, d.Reason, d.Detail,
					d.State, d.Sink, d.Lane, d.MessageID, d.Sent.Format(time.RFC3339Nano), d.Died.Format(time.RFC3339Nano), d.Refusals, d.FirstError,
					d.LastError, d.Redrives, d.Auto)
				for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
					fmt.Fprintf(w, "attribute %s\t%s\n", name, d.Attributes[name].String)
				}
				fmt.Fprintf(w, "\n%s\n", d.Body)
			})
		})
}

func deadOrderCommand(t *target, what string) *cobra.Command {
	var l letterFlags
	var o operate.LetterOrder
	short := "Send dead letters again, to be judged by their version; they stay parked until that is committed"
	if what == "drop" {
		short = "Delete dead letters for good (audited)"
	}
	c := t.verb(&cobra.Command{Use: what + " [ID]", Short: short, Args: cobra.MaximumNArgs(1)},
		func(c *cobra.Command, api operate.API, args []string) error {
			f, err := l.filter(args)
			if err != nil {
				return err
			}
			if f == (operate.LetterFilter{}) && !o.All {
				return usage(fmt.Errorf("nothing is selected: give an ID, a filter, or --all"))
			}
			o.LetterFilter, o.By = f, whoami()
			do := api.Redrive
			if what == "drop" {
				do = api.Drop
			}
			res, err := do(c.Context(), o)
			if err != nil {
				return err
			}
			return t.print(c, res, func(w io.Writer) {
				for _, line := range res.Lines {
					fmt.Fprintf(w, "%s\t%s\tv%s\t%s\t%s\n", line.Letter.ID, line.Letter.Key, line.Letter.Version, line.Outcome, line.Error)
				}
				for _, outcome := range slices.Sorted(maps.Keys(res.Outcomes)) {
					fmt.Fprintf(w, "%s: %d\n", outcome, res.Outcomes[outcome])
				}
				if o.DryRun {
					fmt.Fprintln(w, "dry run: nothing was changed")
				}
			})
		})
	l.add(c)
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what would happen")
	c.Flags().BoolVar(&o.All, "all", false, "an empty selection means all letters")
	c.Flags().Float64Var(&o.Rate, "rate", 0, "letters a second, 0 for no limit")
	if what == "redrive" {
		c.Flags().BoolVar(&o.Force, "force", false, "even letters too old to judge by their rows")
	}
	return c
}

func cancelCommand(t *target) *cobra.Command {
	return t.verb(&cobra.Command{Use: "cancel KEY", Short: "Make the pending version of a document a dead letter (audited)", Args: cobra.ExactArgs(1)},
		func(c *cobra.Command, api operate.API, args []string) error {
			key, err := keyArg(args[0])
			if err != nil {
				return err
			}
			l, err := api.Cancel(c.Context(), key, whoami())
			if err != nil {
				return err
			}
			return t.print(c, l, func(w io.Writer) {
				fmt.Fprintf(w, "version %s of %s is a dead letter now: %s\n", l.Version, l.Key, l.ID)
			})
		})
}
