// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/replay"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
	"github.com/lullhq/lull/internal/terminal"
)

// replayFlags are the flags of `lull replay`.
type replayFlags struct {
	from, to, collection, source string
	rate                         float64
	dryRun                       bool
}

func replayCommand(std *streams, t *target) *cobra.Command {
	f := replayFlags{rate: 200}
	return define(&cobra.Command{
		Use: "replay --from TIME --to TIME", Short: "Send again the messages that lull received in a time range",
		Long: "Reads the archive (archive.keep) and sends the events of a time range again, through the bulk lane, in one " +
			"resync run. Each document ends up with its newest version. An event is passed over if its row has something " +
			"newer, or if its dead letter is parked. It is also passed over if a reset withdrew its version, or if it is " +
			"too old to be judged. Live traffic goes first. Before it sends, it says how many messages there are and what they cost at most.\n\n" +
			"TIME is when lull received a message: 2026-11-22T10:00:00Z, or how long ago, such as 2h. " +
			"Messages that were received at --to or later are left out.\n\n" +
			"It is a job (`lull jobs`): after an interruption, the same command continues with the same run and the same " +
			"time range, on any machine. If an object cannot be read, it is named, and the replay continues. With -o json " +
			"each fault is one line, and the last line has the counts.",
		Args: cobra.NoArgs,
		RunE: t.verb(func(c *cobra.Command, api operate.API, _ []string) error {
			return runReplay(c.Context(), std, api, f)
		}),
	}, ends{
		exitOK:      "everything that had to be sent was sent",
		exitFailed:  "something stopped it: run it again to continue",
		exitUsage:   "usage, settings without an archive, or a job with other arguments: nothing was sent",
		exitRefused: "something was refused or unreadable, and the rest was sent",
		exitMissing: "the archive has nothing in this time range, or nothing of this collection, source or sink",
	},
		flag("from", &f.from, "begin with messages received at or after this `TIME`",
			needed("give the time to begin with, such as 2026-11-22T10:00:00Z, or 2h for that long ago")),
		flag("to", &f.to, "end before this `TIME`; without it before the present time"),
		flag("collection", &f.collection, "only events of the collection `NAME`", someCollection),
		flag("source", &f.source, "only messages that the source `NAME` decodes"),
		flag("rate", &f.rate, "`N` messages a second", sends(&f.rate)),
		flag("dry-run", &f.dryRun, "say what would be sent, send nothing"),
	)
}

func runReplay(ctx context.Context, std *streams, api operate.API, f replayFlags) error {
	o, err := f.order()
	if err != nil {
		return usage(err)
	}
	r := job.Runner{Rate: f.rate, Dry: f.dryRun}
	if f.dryRun {
		r.Rate = 0
	}
	state, err := runJob(ctx, std, api, operate.ReplayJob(api, o, f.from, f.to, r.Rate), r,
		func(l operate.ReplayLine) { replayLine(std, l) })
	if err != nil {
		return err
	}
	res, err := operate.ReplayedBy(state)
	if err != nil {
		return err
	}
	if state.Total == 0 {
		return &exitError{exitMissing, fmt.Errorf("the archive has nothing from %s to %s", res.From.Format(time.RFC3339),
			res.To.Format(time.RFC3339))}
	}
	if err := std.last(res, func(w io.Writer) { printReplayed(w, res, f.dryRun) }); err != nil {
		return err
	}
	looked := sum(res.Events)
	switch refused := res.Events[string(replay.Refused)]; {
	case looked > 0 && looked == res.Events[string(replay.Other)]:
		return &exitError{exitMissing, fmt.Errorf("all %d events of that time are %s", looked, replayWords[replay.Other])}
	case refused+res.Broken > 0:
		return &exitError{exitRefused, fmt.Errorf("%d events were refused, and %d objects could not be read", refused,
			res.Broken)}
	}
	return nil
}

// order reads the times, and makes a new run. A job that continues keeps the times and the run with
// which it began.
func (f replayFlags) order() (operate.ReplayOrder, error) {
	o := operate.ReplayOrder{
		Collection: shard.Collection(f.collection), Source: f.source, Run: newRun(), DryRun: f.dryRun, By: whoami(),
	}
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"from", f.from, &o.From}, {"to", cmp.Or(f.to, "0s"), &o.To}} {
		if err := parseWhen(t.text, t.at); err != nil {
			return o, fmt.Errorf("--%s %q: %w", t.flag, t.text, err)
		}
		*t.at = t.at.Truncate(time.Millisecond).UTC()
	}
	if !o.From.Before(o.To) {
		return o, fmt.Errorf("--from %s, --to %s: want a time and a later one", f.from, cmp.Or(f.to, "now"))
	}
	return o, nil
}

// replayLine prints the size of the archive, or a fault.
func replayLine(std *streams, l operate.ReplayLine) {
	if l.Archive != nil {
		if l.Archive.Messages > 0 {
			terminal.Printf(std.err, "%s\n", replayPlan(*l.Archive))
		}
		return
	}
	what := "object " + string(l.Object)
	if l.Message != "" {
		what = fmt.Sprintf("message %s of %s", l.Message, what)
	}
	std.line(l, string(l.Outcome), what, l.Why)
}

// replayWords describes the outcomes in words.
var replayWords = map[replay.Outcome]string{
	replay.Newer:     "passed over: the row has something newer",
	replay.Dead:      "passed over: the dead letter is parked (lull dead redrive)",
	replay.TakenBack: "passed over: a reset withdrew the version (lull reset)",
	replay.TooOld:    "passed over: too old to be judged",
	replay.Other:     "of another collection, source or sink",
	replay.Skipped:   "skipped by its source",
	replay.Invalid:   "not decoded by the settings",
	replay.Refused:   "refused",
}

func printReplayed(w io.Writer, r operate.Replayed, dry bool) {
	verb := "sent"
	if dry {
		verb = "would be sent"
	}
	terminal.Printf(w, "%d of %d messages with %d events %s in resync run %s\n", r.Sent, r.Messages,
		r.Events[string(replay.Sent)], verb, r.Run)
	printParts(w, r.Parts)
	for _, outcome := range slices.Sorted(maps.Keys(r.Events)) {
		if says := replayWords[replay.Outcome(outcome)]; says != "" {
			terminal.Printf(w, "%d events %s\n", r.Events[outcome], says)
		}
	}
	if r.Broken > 0 {
		terminal.Printf(w, "%d objects could not be read\n", r.Broken)
	}
}

// replayPlan says how many messages the archive has, and what it costs to send all of them. Each
// message needs a consistent read and three writes of a row. Ten messages need four requests to
// SQS.
func replayPlan(size archive.Size) string {
	n := float64(size.Messages)
	most := price.USEast1.Dollars(price.Usage{
		ReadUnits: 2 * n, WriteUnits: 3 * n, QueueRequests: n * 4 / 10,
		ObjectReads: float64(size.Objects) + n/replay.MaxStep, ObjectWrites: float64(size.Objects)/1000 + 1,
	})
	return fmt.Sprintf("the archive has %d messages in %d objects (%d KB), received %s to %s; to send all of them costs "+
		"about $%.2f in requests on AWS", size.Messages, size.Objects, (size.Bytes+1023)>>10,
		size.First.Format(time.RFC3339), size.Last.Format(time.RFC3339), most)
}
