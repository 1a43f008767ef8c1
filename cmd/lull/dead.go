package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

func (a *app) deadCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "dead", Short: "List, show, redrive and drop dead letters",
		Long: "A dead letter is a message that will not be tried again by itself, stored byte for byte with the reason.",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.deadListCommand(), a.deadShowCommand(), a.deadRedriveCommand(), a.deadDropCommand())
	return c
}

// letterFlags are the filters of the dead verbs.
type letterFlags struct {
	reason, collection, key, state, after, before string
}

func (l *letterFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&l.reason, "reason", "", "only letters of this `REASON`: "+deadletter.Reasons())
	f.StringVar(&l.collection, "collection", "", "only letters of this collection `NAME`")
	f.StringVar(&l.key, "key", "", "only letters of the document `KEY`, <collection>#<id>")
	f.StringVar(&l.state, "state", "", "only letters in this `STATE`: parked or redriven")
	f.StringVar(&l.after, "after", "",
		"only letters that died after `TIME`: RFC 3339, or a duration such as 2h for that long ago")
	f.StringVar(&l.before, "before", "", "only letters that died before `TIME`")
}

func (l *letterFlags) filter(args []string) (operate.LetterFilter, error) {
	f := operate.LetterFilter{
		Reason: deadletter.Reason(l.reason), Collection: shard.Collection(l.collection),
		State: deadletter.State(l.state),
	}
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
			return f, usagef("%s: %w", at.flag, err)
		}
		*at.to = when
	}
	return f, nil
}

func parseWhen(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%q: want 2026-11-20T16:00:00Z, or a duration such as 2h for that long ago", text)
	}
	return t, nil
}

func (a *app) deadListCommand() *cobra.Command {
	var l letterFlags
	c := &cobra.Command{Use: "list", Short: "List dead letters, oldest first", Args: cobra.NoArgs}
	a.verb(c, func(c *cobra.Command, api operate.API, args []string) error {
		f, err := l.filter(args)
		if err != nil {
			return err
		}
		list, err := api.Letters(c.Context(), f)
		if err != nil {
			return err
		}
		return a.print(list, func(w io.Writer) {
			fmt.Fprintln(w, "ID\tDIED\tSTATE\tREASON\tKEY\tVERSION\tDETAIL")
			for _, d := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.Died.Format(time.RFC3339), d.State, d.Reason,
					d.Key, d.Version, d.Detail)
			}
		})
	})
	l.add(c)
	return exits(c, map[int]string{
		exitOK:     "they were listed, even if there are none",
		exitFailed: "the stack did not answer", exitUsage: "usage or settings, or a filter that selects nothing",
	})
}

func (a *app) deadShowCommand() *cobra.Command {
	c := &cobra.Command{Use: "show ID", Short: "Show one dead letter, its body byte for byte", Args: cobra.ExactArgs(1)}
	a.verb(c, func(c *cobra.Command, api operate.API, args []string) error {
		d, err := api.Letter(c.Context(), args[0])
		if err != nil {
			return err
		}
		err = a.print(d, func(w io.Writer) {
			fmt.Fprintf(w,
				"id\t%s\nkey\t%s\nversion\t%s\norder key\t%s\nreason\t%s\ndetail\t%s\nstate\t%s\nsink, lane\t%s, "+
					"%s\nmessage\t%s\nsent\t%s\ndied\t%s\n"+
					"refusals\t%d\nfirst error\t%s\nlast error\t%s\nredrives\t%d (%d by itself)\n", d.ID, d.Key,
				d.Version,
				d.OrderKey, d.Reason, d.Detail,
				d.State, d.Sink, d.Lane, d.MessageID, d.Sent.Format(time.RFC3339Nano), d.Died.Format(time.RFC3339Nano),
				d.Refusals, d.FirstError,
				d.LastError, d.Redrives, d.Auto)
			for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
				fmt.Fprintf(w, "attribute %s\t%s\n", name, d.Attributes[name].String)
			}
		})
		return a.below(err, d.Body)
	})
	return exits(c, map[int]string{
		exitOK: "it was shown", exitFailed: "the stack did not answer",
		exitUsage: "usage or settings", exitMissing: "there is no such letter",
	})
}

func (a *app) deadRedriveCommand() *cobra.Command {
	c, o := a.campaignCommand(&cobra.Command{
		Use: "redrive [ID]", Short: "Send dead letters again, to be judged by their version",
		Long: "Sends one letter, those of a filter, or --all to their queues again, oldest first: the parked ones, " +
			"unless --state says otherwise. Each is\n" +
			"judged by its version when it is received, so a document never goes backwards. A letter stays until its " +
			"version, or a newer one, is\n" +
			"committed. One that somebody still works on is left for later (busy). Each is named as it is done, and " +
			"audited.",
	}, operate.API.Redrive)
	c.Flags().BoolVar(&o.Force, "force", false, "even letters too old to be judged by their rows")
	return c
}

func (a *app) deadDropCommand() *cobra.Command {
	c, _ := a.campaignCommand(&cobra.Command{
		Use: "drop [ID]", Short: "Delete dead letters for good",
		Long: "Deletes one letter, those of a filter, or --all: their messages are lost for good. Each is named as " +
			"it is done, and audited.",
	}, operate.API.Drop)
	return c
}

// campaignCommand is redrive or drop.
func (a *app) campaignCommand(c *cobra.Command,
	do func(operate.API, context.Context, operate.LetterOrder) (operate.LetterResult, error)) (*cobra.Command,
	*operate.LetterOrder,
) {
	var l letterFlags
	o := &operate.LetterOrder{}
	c.Args = cobra.MaximumNArgs(1)
	a.verb(c, func(c *cobra.Command, api operate.API, args []string) error {
		f, err := l.filter(args)
		if err != nil {
			return err
		}
		switch {
		case f == (operate.LetterFilter{}) && !o.All:
			return usagef("nothing is selected: give an ID, a filter, or --all")
		case f != (operate.LetterFilter{}) && o.All:
			return usagef("--all: it excludes an ID and filters")
		case f.ID != "" && f != (operate.LetterFilter{ID: f.ID}):
			return usagef("an ID and a filter exclude each other")
		case !(o.Rate >= 0) || math.IsInf(o.Rate, 0):
			return usagef("--rate %g: want letters a second, or 0 for no limit", o.Rate)
		}
		order := *o
		order.LetterFilter, order.By = f, whoami()
		if a.target.output != "json" {
			order.Progress = func(line operate.LetterLine) { fmt.Fprintln(a.out, campaignLine(line)) }
		}
		res, err := do(api, c.Context(), order)
		if printed := a.print(res, func(w io.Writer) { campaignEnd(w, res, order.DryRun) }); err == nil {
			err = printed
		}
		if err == nil && f.Key != "" && len(res.Lines) == 0 {
			return &exitError{exitMissing, fmt.Errorf("no dead letter of %s is selected: nothing was changed", f.Key)}
		}
		return err
	})
	l.add(c)
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what would happen, change nothing")
	c.Flags().BoolVar(&o.All, "all", false, "all letters")
	c.Flags().Float64Var(&o.Rate, "rate", 0, "at most `N` letters a second, 0 for no limit")
	return exits(c, map[int]string{
		exitOK: "every selected letter has its outcome", exitFailed: "some failed, or something stopped it",
		exitUsage:   "usage or settings: nothing was changed",
		exitMissing: "there is no such letter",
	}), o
}

func campaignLine(l operate.LetterLine) string {
	what := string(l.Letter.Key)
	if what == "" {
		what = "message " + l.Letter.MessageID
	}
	if l.Letter.Version != "" {
		what += " v" + l.Letter.Version
	}
	text := fmt.Sprintf("%s  %-10s  %s", l.Letter.ID, l.Outcome, what)
	if l.Error != "" {
		text += "  " + l.Error
	}
	return text
}

func campaignEnd(w io.Writer, res operate.LetterResult, dry bool) {
	if len(res.Outcomes) == 0 {
		fmt.Fprintln(w, "no letter is selected")
	}
	for _, outcome := range slices.Sorted(maps.Keys(res.Outcomes)) {
		fmt.Fprintf(w, "%s: %d\n", outcome, res.Outcomes[outcome])
	}
	if dry {
		fmt.Fprintln(w, "dry run: nothing was changed")
	}
}

func (a *app) cancelCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "cancel KEY", Short: "Make the pending version of a document a dead letter", Args: cobra.ExactArgs(1),
		Long: "The version that waits for the lull is not written; its message becomes a dead letter with the reason " +
			"cancelled, which may be redriven.\n" +
			"What is held besides it, if anything, is the newest then and is written. KEY is <collection>#<id>. " +
			"Audited.",
	}
	a.verb(c, func(c *cobra.Command, api operate.API, args []string) error {
		key, err := keyArg(args[0])
		if err != nil {
			return err
		}
		l, err := api.Cancel(c.Context(), key, whoami())
		if err != nil {
			return err
		}
		return a.print(l, func(w io.Writer) {
			fmt.Fprintf(w, "version %s of %s is a dead letter now: %s\n", l.Version, l.Key, l.ID)
		})
	})
	return exits(c, map[int]string{
		exitOK:      "it is a dead letter",
		exitFailed:  "it could not be cancelled: it is being written, or no flight holds it at the moment",
		exitUsage:   "usage or settings",
		exitMissing: "nothing is pending",
	})
}
