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
	"github.com/lullhq/lull/internal/operator/replay"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
	"github.com/lullhq/lull/internal/terminal"
)

// maxReplayFaults is how many faults a replay names. All are counted.
const maxReplayFaults = 1000

// replayFlags are the flags of `lull replay`.
type replayFlags struct {
	from, to, collection, source, checkpoint string
	rate                                     float64
	dryRun                                   bool
}

func (a *app) replayCommand() *cobra.Command {
	f := replayFlags{rate: 200}
	return define(&cobra.Command{
		Use: "replay --from TIME --to TIME", Short: "Send again what lull received during a time",
		Long: "Reads the archive (archive.keep) and sends the events of a time again, through the bulk lane, as those " +
			"of one resync run. Each document ends up with its newest version: an event is passed over where its row " +
			"knows something newer, where its dead letter is parked, and where it is too old to judge. Live traffic goes " +
			"first. It says first how much there is and what that costs at most.\n\n" +
			"TIME is when lull received a message: 2026-11-22T10:00:00Z, or how long ago, such as 2h. " +
			"What was received at --to or later stays out.\n\n" +
			"A checkpoint keeps how far it has come. After Ctrl-C or a failure the same command goes on from there with " +
			"the same run. An object that cannot be read is named, and the rest goes on.",
		Args: cobra.NoArgs,
		RunE: a.verb(func(c *cobra.Command, api operate.API, _ []string) error {
			return a.replay(c.Context(), api, f)
		}),
	}, ends{
		exitOK:      "everything that there was to send was sent",
		exitFailed:  "something stopped it: run it again to go on",
		exitUsage:   "usage, settings without an archive, or a checkpoint that does not fit: nothing was sent",
		exitRefused: "something was refused or unreadable, and the rest was sent",
		exitMissing: "the archive has nothing of this time, or nothing of this collection, source or sink",
	},
		flag("from", &f.from, "begin with what was received at this `TIME`",
			needed("say from when on, such as 2026-11-22T10:00:00Z, or 2h for that long ago")),
		flag("to", &f.to, "end before this `TIME`; without it now"),
		flag("collection", &f.collection, "only events of the collection `NAME`", someCollection),
		flag("source", &f.source, "only messages that the source `NAME` decodes"),
		flag("rate", &f.rate, "`N` messages a second", sends(&f.rate)),
		flag("dry-run", &f.dryRun, "say what would be sent, send nothing"),
		flag("checkpoint", &f.checkpoint, "`FILE` that keeps how far the replay has come; without it "+
			"replay.checkpoint in this folder"),
	)
}

// replayed is the answer of a replay, and the content of its checkpoint.
type replayed struct {
	Run        string    `json:"run"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Stack      string    `json:"stack"`
	Collection string    `json:"collection,omitempty"`
	Source     string    `json:"source,omitempty"`
	DryRun     bool      `json:"dry_run,omitempty"`
	Said       []string  `json:"said,omitempty"` // --from and --to, as they were given

	Messages int            `json:"messages"` // messages read
	Sent     int            `json:"sent"`     // messages sent
	Events   map[string]int `json:"events"`   // by outcome
	Broken   int            `json:"unreadable_objects"`
	Faults   []replay.Fault `json:"faults,omitempty"` // the first thousand
	Cursor   string         `json:"cursor,omitempty"` // where it continues; empty at the end
}

func (a *app) replay(ctx context.Context, api operate.API, f replayFlags) error {
	at := checkpoint(cmp.Or(f.checkpoint, "replay.checkpoint"))
	if f.dryRun {
		at = ""
	}
	r, err := a.openReplay(at, f)
	if err != nil {
		return usage(err)
	}
	span := operate.ArchiveRange{From: r.From, To: r.To}
	size, err := api.Archived(ctx, span)
	if err != nil {
		return err
	}
	if size.Objects == 0 {
		return &exitError{exitMissing, fmt.Errorf("the archive has nothing from %s to %s", r.From.Format(time.RFC3339),
			r.To.Format(time.RFC3339))}
	}
	terminal.Printf(a.err, "%s\n", replayPlan(size))
	if err := at.save(r); err != nil { // before anything is sent, because a second start would be a second run
		return err
	}
	show, shown := a.progress(int64(size.Messages))
	pace := paced(f.rate, replay.MaxStep)
	for first := r.Cursor == ""; first || r.Cursor != ""; first = false {
		limit := int(min(max(f.rate, 1), replay.MaxStep))
		step, err := api.Replay(ctx, operate.ReplayOrder{
			ArchiveRange: span, Collection: shard.Collection(f.collection), Source: f.source, Run: r.Run,
			Cursor: r.Cursor, Limit: limit, DryRun: f.dryRun, By: whoami(),
		})
		if err == nil {
			a.replayFaults(step.Faults[:min(len(step.Faults), maxReplayFaults-len(r.Faults))])
			r.add(step)
			err = at.save(r)
		}
		show(r.Messages, int64(r.Messages))
		if err == nil && !f.dryRun {
			// A message that is not sent still costs a read.
			err = pace.WaitN(ctx, min(max(step.Sent, step.Messages/10), replay.MaxStep))
		}
		if err != nil {
			shown()
			if r.Cursor == "" && errors.Is(err, operate.ErrInput) {
				return errors.Join(err, at.remove()) // nothing was sent
			}
			if f.dryRun {
				return err
			}
			return fmt.Errorf("%w; %d messages were sent, and the same command goes on from %s", err, r.Sent, at)
		}
	}
	shown()
	if err := at.remove(); err != nil {
		return err
	}
	r.Said = nil
	if err := a.print(r, r.show); err != nil {
		return err
	}
	looked := sum(r.Events)
	if looked > 0 && looked == r.Events[string(replay.Other)] {
		return &exitError{exitMissing, fmt.Errorf("all %d events of that time are %s", looked, replayWords[replay.Other])}
	}
	if failed := r.Events[string(replay.Refused)]; failed+r.Broken > 0 {
		return &exitError{exitRefused, fmt.Errorf("%d events were refused, and %d objects could not be read", failed,
			r.Broken)}
	}
	return nil
}

// add counts a step.
func (r *replayed) add(step operate.ReplayStep) {
	r.Cursor = step.Next
	r.Messages += step.Messages
	r.Sent += step.Sent
	for outcome, n := range step.Events {
		r.Events[string(outcome)] += n
	}
	for _, f := range step.Faults {
		if f.Outcome == replay.Unreadable {
			r.Broken++
		}
		if len(r.Faults) < maxReplayFaults {
			r.Faults = append(r.Faults, f)
		}
	}
}

func (a *app) replayFaults(faults []replay.Fault) {
	for _, f := range faults {
		what := "object " + string(f.Object)
		if f.Message != "" {
			what = fmt.Sprintf("message %s of %s", f.Message, what)
		}
		terminal.Printf(a.err, "%s: %s: %s\n", f.Outcome, what, f.Why)
	}
}

// replayWords describes the outcomes in words.
var replayWords = map[replay.Outcome]string{
	replay.Newer:     "passed over: the document is newer",
	replay.Dead:      "passed over: its dead letter is parked (lull dead redrive)",
	replay.TakenBack: "passed over: an operator took it back (lull reset)",
	replay.TooOld:    "passed over: too old to judge",
	replay.Other:     "of another collection, source or sink",
	replay.Skipped:   "skipped by its source",
	replay.Invalid:   "not decoded by the settings",
	replay.Refused:   "refused",
}

func (r *replayed) show(w io.Writer) {
	verb := "sent"
	if r.DryRun {
		verb = "would be sent"
	}
	terminal.Printf(w, "%d of %d messages with %d events %s in resync run %s\n", r.Sent, r.Messages,
		r.Events[string(replay.Sent)], verb, r.Run)
	for _, outcome := range slices.Sorted(maps.Keys(r.Events)) {
		if says := replayWords[replay.Outcome(outcome)]; says != "" {
			terminal.Printf(w, "%d events %s\n", r.Events[outcome], says)
		}
	}
	if r.Broken > 0 {
		terminal.Printf(w, "%d objects could not be read\n", r.Broken)
	}
}

// replayPlan says how many messages there are, and what it costs to send them all. Each message
// needs a consistent read and three writes of a row. Ten messages need four requests to SQS.
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

// openReplay continues from a checkpoint, or starts a new replay. It takes the times of the
// checkpoint, because a flag that says how long ago means another time by now.
func (a *app) openReplay(at checkpoint, f replayFlags) (*replayed, error) {
	want := &replayed{
		Run: newRun(), Stack: a.target.name(), Collection: f.collection, Source: f.source, DryRun: f.dryRun,
		Events: map[string]int{}, Said: []string{f.from, f.to},
	}
	for _, t := range []struct {
		flag, text string
		at         *time.Time
	}{{"from", f.from, &want.From}, {"to", cmp.Or(f.to, "0s"), &want.To}} {
		if err := parseWhen(t.text, t.at); err != nil {
			return nil, fmt.Errorf("--%s %q: %w", t.flag, t.text, err)
		}
		*t.at = t.at.Truncate(time.Millisecond).UTC()
	}
	if !want.From.Before(want.To) {
		return nil, fmt.Errorf("--from %s, --to %s: want a time and a later one", f.from, cmp.Or(f.to, "now"))
	}
	var r replayed
	if found, err := at.read(&r); err != nil || !found {
		return want, err
	}
	if r.Events == nil || r.From.IsZero() || len(r.Said) != 2 {
		return nil, fmt.Errorf("checkpoint %s is not one of a replay: remove it to begin anew", at)
	}
	if _, err := shard.ParseRun(r.Run); err != nil {
		return nil, at.broken(err)
	}
	if r.Stack != want.Stack || r.Collection != want.Collection || r.Source != want.Source ||
		!slices.Equal(r.Said, want.Said) {
		return nil, fmt.Errorf("checkpoint %s is of another replay, --from %s --to %s of %s: give the same flags, or "+
			"remove it to begin anew", at, r.Said[0], cmp.Or(r.Said[1], "now"), operate.Shown(r.Stack))
	}
	terminal.Printf(a.err, "going on from %s: %d messages received %s to %s were sent before\n", at, r.Sent,
		r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	return &r, nil
}
