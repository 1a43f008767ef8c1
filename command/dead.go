// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

func deadCommand(std *streams, t *target) *cobra.Command {
	return parent(&cobra.Command{
		Use: "dead", Short: "List, show, redrive and drop dead letters",
		Long: "A dead letter is a message that lull does not try again by itself. It is parked byte for byte " +
			"with the reason.",
	}, deadListCommand(std, t), deadShowCommand(std, t), deadRedriveCommand(std, t), deadDropCommand(std, t))
}

// filterFlags are the filters of the dead verbs.
func filterFlags(l *operate.LetterFilter) []option {
	key := func(text string) (err error) {
		l.Key, err = shard.ParseDocID(text)
		return err
	}
	after := func(text string) error { return parseWhen(text, &l.After) }
	before := func(text string) error { return parseWhen(text, &l.Before) }
	return []option{
		flag("reason", (*string)(&l.Reason), "only dead letters with this `REASON`: "+deadletter.Reasons()),
		flag("collection", (*string)(&l.Collection), "only dead letters of this collection `NAME`"),
		flag("key", key, "only dead letters of the document `KEY`, <collection>#<id>"),
		flag("state", (*string)(&l.State), "only dead letters in this `STATE`: parked or redriven"),
		flag("after", after, "only messages that died after `TIME`: RFC 3339, or a duration such as 2h for that "+
			"long ago"),
		flag("before", before, "only messages that died before `TIME`"),
	}
}

func parseWhen(text string, to *time.Time) (err error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		*to = time.Now().Add(-d)
		return nil
	}
	if *to, err = time.Parse(time.RFC3339, text); err != nil {
		return fmt.Errorf("want 2026-11-20T16:00:00Z, or a duration such as 2h for that long ago")
	}
	return nil
}

func deadListCommand(std *streams, t *target) *cobra.Command {
	var f operate.LetterFilter
	list := func(api operate.API, ctx context.Context, _ []string) ([]operate.Letter, error) {
		return api.Letters(ctx, f)
	}
	return define(&cobra.Command{
		Use: "list", Short: "List dead letters, oldest first", Args: cobra.NoArgs,
		RunE: question(std, t, list, func(w io.Writer, all []operate.Letter) {
			header(w, "ID", "~DIED", "STATE", "REASON", "KEY", "~VERSION", "~DETAIL")
			for _, d := range all {
				terminal.Printf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.Died.Format(time.RFC3339), d.State, d.Reason,
					d.Key, d.Version, d.Detail)
			}
		}),
	}, ends{
		exitOK:     "they were listed, even if there are none",
		exitFailed: "the stack did not answer", exitUsage: "usage or settings, or an unknown reason or state",
	}, filterFlags(&f)...)
}

func deadShowCommand(std *streams, t *target) *cobra.Command {
	show := func(api operate.API, ctx context.Context, args []string) (operate.Letter, error) {
		return api.Letter(ctx, args[0])
	}
	return define(&cobra.Command{
		Use: "show ID", Short: "Show one dead letter and its body; -o json has it byte for byte",
		Args: cobra.ExactArgs(1),
		RunE: question(std, t, show, func(w io.Writer, d operate.Letter) {
			advice := d.Reason.Advice()
			terminal.Printf(w,
				"id\t%s\nkey\t%s\nversion\t%s\norder key\t%s\nreason\t%s\ndetail\t%s\nwhy\t%s\nwhat to do\t%s\n"+
					"state\t%s\nsource\t%s\nsink, lane\t%s, %s\nmessage\t%s\nsent\t%s\ndied\t%s\n"+
					"refusals\t%d\nfirst error\t%s\nlast error\t%s\nredrives\t%d (%d by itself)\n",
				d.ID, d.Key, d.Version, d.OrderKey, d.Reason, d.Detail, advice.Why, advice.Fix, d.State, d.Source,
				d.Sink, d.Lane, d.MessageID,
				d.Sent.Format(time.RFC3339Nano), d.Died.Format(time.RFC3339Nano), d.Refusals, d.FirstError,
				d.LastError, d.Redrives, d.Auto)
			if d.Became != "" {
				terminal.Printf(w, "became\t%s: %s\n", d.Became, d.BecameWhy)
			}
			for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
				terminal.Printf(w, "attribute %s\t%s\n", name, d.Attributes[name].String)
			}
			below(w, d.Body)
		}),
	}, ends{
		exitOK: "it was shown", exitFailed: "the stack did not answer",
		exitUsage: "usage or settings", exitMissing: "the dead letter was not found",
	})
}

func deadRedriveCommand(std *streams, t *target) *cobra.Command {
	var o operate.LetterOrder
	return lettersCommand(std, t, &cobra.Command{
		Use: "redrive [ID]", Short: "Send dead letters again, to be judged by their version",
		Long: "Sends dead letters to their queues again, oldest first: one by its ID, those that match a filter, or " +
			"--all. Without --state it selects parked dead letters. The function receive judges each by its version, " +
			"so a document never goes backwards. A dead letter stays parked until its version, or a newer one, is " +
			"committed. If lull is working on its document, it is left for later (busy). `lull dead show ID` says what " +
			"became of one that was sent. If a message has several " +
			"dead letters, it is sent once for all of them (the others are covered), and --rate counts messages. With " +
			"an ID, the message is sent for that dead letter only. " + lettersAreAJob,
	}, &o, operate.RedriveJob, nil,
		flag("force", &o.Force, "also dead letters that are too old to be judged by their rows"))
}

func deadDropCommand(std *streams, t *target) *cobra.Command {
	var may consent
	return lettersCommand(std, t, &cobra.Command{
		Use: "drop [ID]", Short: "Delete dead letters for good",
		Long: "Deletes dead letters: one by its ID, those that match a filter, or --all. Their events are lost for good. " +
			"A message is deleted with the last of its dead letters. lull may ignore a dropped version that is sent again. " +
			"If the write of a dropped version got no answer, the version may be in the sink. It then stays there, and " +
			"lull writes no older version of the document. To end both, publish a newer version. The command asks before " +
			"it drops several dead letters, and says how many. Without a terminal a filter or --all needs --yes. " +
			lettersAreAJob,
	}, &operate.LetterOrder{}, operate.DropJob, &may, may.flag())
}

const lettersAreAJob = "The answer names each dead letter when it is done, and each is audited. Several dead letters are " +
	"a job (`lull jobs`), and a stack runs one such job at a time. After an interruption, the same command continues " +
	"with the dead letters that it selected before."

// mayDrop asks the user for consent if more than one dead letter is selected.
func mayDrop(ctx context.Context, std *streams, api operate.API, o operate.LetterOrder, may consent) error {
	if err := may.check(std, "dropping what a filter or --all selects"); err != nil || may.yes {
		return err
	}
	o.DryRun = true
	state, err := runJob(ctx, std, api, operate.DropJob(api, o), o.RunnerOf(), func(operate.LetterLine) {})
	if err != nil {
		return err
	}
	n := sum(state.Counts)
	if n < 2 {
		return nil
	}
	return may.ask(ctx, std, fmt.Sprintf("Drop %d dead letters? Their events are lost for good.", n))
}

// lettersCommand makes c the command redrive or drop. may is nil if the command needs no consent.
func lettersCommand(std *streams, t *target, c *cobra.Command, o *operate.LetterOrder,
	of func(operate.API, operate.LetterOrder) operate.LetterJob, may *consent, more ...option,
) *cobra.Command {
	c.Args = cobra.MaximumNArgs(1)
	c.RunE = t.verb(func(c *cobra.Command, api operate.API, args []string) error {
		filtered := o.LetterFilter != operate.LetterFilter{}
		switch {
		case len(args) == 0 && !filtered && !o.All:
			return usagef("nothing is selected: give an ID, a filter, or --all")
		case o.All && (filtered || len(args) > 0):
			return usagef("--all: it excludes an ID and filters")
		case len(args) > 0 && filtered:
			return usagef("an ID and a filter exclude each other")
		}
		order := *o
		order.By = whoami()
		if len(args) > 0 {
			order.ID = args[0]
		}
		if may != nil && order.ID == "" && !order.DryRun {
			if err := mayDrop(c.Context(), std, api, order, *may); err != nil {
				return err
			}
		}
		return letters(c.Context(), std, api, order, of(api, order))
	})
	return define(c, ends{
		exitOK: "every selected dead letter was sent or dropped", exitFailed: "all failed, or something stopped it",
		exitUsage: "usage or settings: nothing was changed", exitMissing: "the dead letter was not found",
		exitRefused: "some failed or were refused, and stay parked",
	}, slices.Concat(more, filterFlags(&o.LetterFilter), []option{
		flag("dry-run", &o.DryRun, "say what would happen, change nothing"),
		flag("all", &o.All, "all dead letters"),
		flag("rate", &o.Rate, "at most `N` dead letters a second, 0 for no limit", perSecond(&o.Rate, "dead letters")),
	})...)
}

// maxLines is how many dead letters the JSON names. The counts count all of them.
const maxLines = 1000

// letters runs the job and prints its answer.
func letters(ctx context.Context, std *streams, api operate.API, o operate.LetterOrder, j operate.LetterJob) error {
	res := operate.LetterResult{Lines: []operate.LetterLine{}}
	state, err := runJob(ctx, std, api, j, o.RunnerOf(), func(l operate.LetterLine) {
		switch {
		case std.output != "json":
			std.line(l, letterLine(l))
		case len(res.Lines) < maxLines:
			res.Lines = append(res.Lines, l)
		}
	})
	if res.Outcomes = state.Counts; err != nil && len(res.Outcomes) == 0 {
		return err // nothing was done
	}
	err = cmp.Or(err, std.print(res, func(w io.Writer) {
		if len(res.Outcomes) == 0 {
			fmt.Fprintln(w, "no dead letter is selected")
		}
		outcomes(w, res.Outcomes, o.DryRun)
	}))
	if state.Counts[string(redrive.Sent)] > 0 {
		follow := "`lull dead list` shows which failed again, and `lull dead show ID` what became of one"
		if o.ID != "" {
			follow = fmt.Sprintf("`lull dead show %s` shows what became of it, until it is not found: then it is done", o.ID)
		}
		terminal.Printf(std.err, "It was sent, and is judged when it is received: %s.\n", follow)
	}
	all, failed := sum(state.Counts), state.Counts[operate.Failed]
	switch refused := failed + operate.Refused(state.Counts); {
	case err != nil:
	case o.Key != "" && all == 0:
		err = &exitError{exitMissing, fmt.Errorf("no dead letter of %s is selected: nothing was changed", o.Key)}
	case failed > 0 && failed == all:
		err = errors.New("all dead letters failed: see their errors")
	case refused > 0:
		err = &exitError{exitRefused, fmt.Errorf("%d of %d dead letters failed or were refused, and stay parked: see their "+
			"errors", refused, all)}
	}
	return err
}

func letterLine(l operate.LetterLine) string {
	what := cmp.Or(string(l.Letter.Key), "message "+l.Letter.MessageID)
	if l.Letter.Version != "" {
		what += " v" + l.Letter.Version
	}
	return spaced(l.Letter.ID, fmt.Sprintf("%-10s", l.Outcome), what, l.Error)
}

// outcomes prints how often each outcome happened, or would have in a dry run.
func outcomes[O ~string](w io.Writer, of map[O]int, dry bool) {
	for _, outcome := range slices.Sorted(maps.Keys(of)) {
		terminal.Printf(w, "%s: %d\n", outcome, of[outcome])
	}
	if dry {
		fmt.Fprintln(w, "dry run: nothing was changed")
	}
}

// sum adds up the counts of all outcomes.
func sum(of map[string]int) (n int) {
	for _, count := range of {
		n += count
	}
	return n
}

func cancelCommand(std *streams, t *target) *cobra.Command {
	var scheduled bool
	var group string

	cancel := func(api operate.API, ctx context.Context, args []string) ([]operate.Letter, error) {
		order := operate.Cancellation{Scheduled: scheduled, By: whoami()}
		if group != "" {
			return operate.CancelGroup(ctx, api, group, order)
		}
		var err error
		if order.Key, err = keyArg(args[0]); err != nil {
			return nil, err
		}
		l, err := api.Cancel(ctx, order)
		return []operate.Letter{l}, err
	}
	show := func(w io.Writer, letters []operate.Letter) {
		for _, l := range letters {
			terminal.Printf(w, "version %s of %s is a dead letter now: %s\n", l.Version, l.Key, l.ID)
		}
	}
	return define(&cobra.Command{
		Use: "cancel [KEY]", Short: "Make the pending version of a document a dead letter", Args: keyOrGroup(&group),
		Long: "The version that waits for the lull is not written. Its message becomes a dead letter with the " +
			"reason cancelled, which you may redrive. If older versions of the document are also held, the newest of " +
			"them is written. With --scheduled it cancels the next scheduled event, which is then not sent. In its last " +
			"quarter of an hour a scheduled event waits in its queue: cancel it after that, when it is pending. KEY is " +
			"<collection>#<id>. With --group it cancels the pending versions of all documents of a message group. Audited.",
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) error {
			letters, err := cancel(api, c.Context(), args)
			if group == "" {
				if err != nil {
					return err
				}
				return std.print(letters[0], func(w io.Writer) { show(w, letters) })
			}
			return errors.Join(std.print(letters, func(w io.Writer) { show(w, letters) }), err)
		}),
	}, ends{
		exitOK:     "the version is a dead letter",
		exitFailed: "the version could not be cancelled: it is being written, outdated, or not held at the moment",
		exitUsage:  "usage or settings", exitMissing: "nothing is pending, or scheduled",
	},
		flag("scheduled", &scheduled, "cancel the next scheduled event, not the pending version"),
		flag("group", &group, "cancel for every document of the message group `NAME`, a tenant, instead of one"),
	)
}
