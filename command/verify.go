// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
	"github.com/lullhq/lull/internal/terminal"
)

// verifyFlags are the flags of `lull index check` and `lull index repair`.
type verifyFlags struct {
	verify.Order
	rate     float64
	patience time.Duration
	wholeAt  string
	detach   bool
	may      consent
}

// indexCheckCommand compares and changes nothing.
func indexCheckCommand(std *streams, t *target) *cobra.Command {
	f := &verifyFlags{patience: 2 * time.Minute}
	return define(&cobra.Command{
		Use: "check COLLECTION", Short: "Compare a collection in the sink with its rows and with the source",
		Long: "Compares every document of a collection with its row: after a restore of the table or of the sink, after " +
			"the alarm drift, or as often as you like. With --source it also compares the sink with an " +
			"export of the source, NDJSON in its form. It names each document that is missing, older, changed, " +
			"or back after its delete, and those that lull did not write. It changes nothing: `lull index repair` repairs.\n\n" +
			inMotion,
		Args: cobra.ExactArgs(1),
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) error {
			return compare(c.Context(), std, t.aws, api, *f, args[0])
		}),
	}, ends{
		exitOK:      "nothing differs; what is in motion is counted",
		exitFailed:  "something stopped it: run it again to continue",
		exitUsage:   "usage or settings, a job with other arguments, or a sink that cannot be read from here",
		exitMissing: "the settings, the table and the sink do not have this collection",
		exitWrong:   "drift: documents differ, or events of the export could not be compared",
	}, append(f.options(),
		flag("complete-at", &f.wholeAt, "the export holds every document that the source had at this `TIME` (RFC "+
			"3339): a document that only the sink has, and had before that time, is an orphan"),
	)...)
}

// indexRepairCommand compares and repairs.
func indexRepairCommand(std *streams, t *target) *cobra.Command {
	f := &verifyFlags{patience: 2 * time.Minute, Order: verify.Order{Repair: true}}
	return define(&cobra.Command{
		Use: "repair COLLECTION", Short: "Repair what differs between a collection, its rows and the source",
		Long: "Compares a collection as `lull index check` does, and repairs what differs. If a row is behind the sink, it " +
			"raises the row to the version that the sink has. If the sink has undone a delete, it writes the delete again. " +
			"With --source it sends the documents that differ from the export again, through the bulk lane in one resync " +
			"run. A row refuses older versions, so a repair never makes a document older. Without an export, documents " +
			"that the sink has lost are only named: the source has to send them again. Each change is audited.\n\n" +
			inMotion,
		Args: cobra.ExactArgs(1),
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) error {
			if f.detach {
				return detach(c.Context(), std, api, *f, args[0])
			}
			return compare(c.Context(), std, t.aws, api, *f, args[0])
		}),
	}, ends{
		exitOK:      "nothing differs any more; what is in motion is counted",
		exitFailed:  "something stopped it: run it again to continue",
		exitUsage:   "usage or settings, a job with other arguments, or a sink that cannot be read from here",
		exitMissing: "the settings, the table and the sink do not have this collection",
		exitWrong:   "documents still differ, or events of the export could not be compared",
	}, append(f.options(),
		flag("complete-at", &f.wholeAt, "the export holds every document that the source had at this `TIME` (RFC "+
			"3339): a document that only the sink has, and had before that time, is an orphan and is removed"),
		f.may.flag(),
		groupFlag(&f.Group),
		flag("detach", &f.detach, "do not compare here: the verification that collections.<name>.verify orders begins now"),
	)...)
}

// inMotion is the end of the help of `lull index check` and `lull index repair`.
const inMotion = "A document that is pending, leased or was just written is in motion and not drift: it is compared again. " +
	"Check and repair are one job for a collection (`lull jobs`): after an interruption, the same command " +
	"continues on any machine that has the export. With -o json each document that differs is one line, and the " +
	"last line has the counts."

// options are the flags of both verbs.
func (f *verifyFlags) options() []option {
	return []option{
		flag("source", &f.Export, "also compare with this export of the source, a `FILE` or s3://BUCKET/KEY"),
		flag("from-source", &f.FromSource, "also ask the source itself for each document, by its setting fetch"),
		flag("as", &f.Source, "`NAME` of the source that decodes the export (the attribute lull-source)"),
		flag("versions-only", &f.Versions, "do not compare the content: for an engine whose mapping or pipeline "+
			"changes what it keeps"),
		flag("sample", &f.Sample, "compare `N` rows at random, not the whole collection",
			between(&f.Sample, 0, operate.MaxSample, "a number of rows")),
		flag("sink", &f.Sink, "`NAME` of the sink, if the collection has several; it must be a sink of the collection"),
		flag("rate", &f.rate, "at most `N` documents a second, 0 for no limit; repairs are at most 200. With "+
			"--from-source at most N requests a second to the source, 0 for 10",
			perSecond(&f.rate, "documents")),
		flag("patience", &f.patience, "how long `D` to compare documents again that are in motion or were repaired, if "+
			"none of them comes to rest", between(&f.patience, 0, math.MaxInt64, "a duration")),
	}
}

// compare checks the flags and runs the job.
func compare(ctx context.Context, std *streams, find credentials, api operate.API, f verifyFlags,
	collection string,
) error {
	if err := f.check(collection); err != nil {
		return err
	}
	if f.wholeAt != "" && f.Repair {
		if err := f.may.check(std, "the removal of documents"); err != nil {
			return err
		}
	}
	if err := f.decodes(ctx, api); err != nil {
		return err
	}
	f.Collection, f.Parts = shard.Collection(collection), api.Spread()
	return runVerify(ctx, std, find, api, f)
}

// detach makes the scheduled verification of a collection due now.
func detach(ctx context.Context, std *streams, api operate.API, f verifyFlags, collection string) error {
	if err := f.check(collection); err != nil {
		return err
	}
	a, err := api.AskSource(ctx, operate.SourceOrder{Collection: shard.Collection(collection), Sink: f.Sink})
	switch {
	case err != nil:
		return err
	case a.Every == 0:
		return usagef("--detach: the settings verify the collection on no schedule: write collections.%s.verify", collection)
	}
	id := verify.ScheduledID(shard.Collection(collection), f.Sink)
	all, err := api.Jobs(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(j job.State) bool { return j.ID == id })
	if at < 0 || all[at].Phase == job.Running {
		terminal.Printf(std.out, "%s runs, or begins within minutes: see `lull jobs`\n", id)
		return nil
	}
	if err := api.DropJob(ctx, operate.JobOrder{ID: id, By: whoami()}); err != nil {
		return err
	}
	terminal.Printf(std.out, "%s begins within minutes: see `lull jobs`\n", id)
	return nil
}

// decodes refuses --as if the stack has no such source. Otherwise each line of the export would
// fail.
func (f *verifyFlags) decodes(ctx context.Context, api operate.API) error {
	if f.Source == "" {
		return nil
	}
	known, err := api.Forms(ctx)
	if err != nil || known.Why != "" { // with Why, the answer lacks some sources
		return err
	}
	var names []string
	for _, form := range known.Forms {
		names = append(names, form.Source)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if !slices.Contains(names, f.Source) {
		return usagef("--as %s: no such source: want %s", f.Source, strings.Join(names, ", "))
	}
	return nil
}

func (f *verifyFlags) check(collection string) error {
	if err := checkCollection("COLLECTION", collection); err != nil {
		return err
	}
	switch {
	case f.FromSource && (f.Export != "" || f.Source != ""):
		return usagef("--from-source and --source or --as: give only one: lull asks the source, or reads an export")
	case f.Sample > 0 && f.Export != "":
		return usagef("--sample and --source: give only one: a sample compares rows, and an export is compared as a whole")
	case f.Export == "" && !f.FromSource && (f.Source != "" || f.Group != "" || f.Versions):
		return usagef("--as, --group and --versions-only: only with --source or --from-source")
	case f.wholeAt != "" && f.Export == "":
		return usagef("--complete-at: only with --source")
	}
	if f.wholeAt != "" {
		at, err := time.Parse(time.RFC3339, f.wholeAt)
		if err != nil || at.After(time.Now()) {
			return usagef("--complete-at %s: want a time in the past, such as 2026-11-22T10:00:00Z", f.wholeAt)
		}
		f.CompleteAt = at
	}
	return nil
}

// runVerify runs the job and prints its answer. It asks before it removes documents.
func runVerify(ctx context.Context, std *streams, find credentials, api operate.API, f verifyFlags) error {
	v := &verify.Verification{
		Order: f.Order, Stack: api, Clock: clock.System{}, By: whoami(), Rate: f.rate, Patience: f.patience,
		Confirmed: f.may.yes,
	}
	if f.Export != "" {
		v.Export = path.Base(filepath.ToSlash(f.Export))
		v.Open = func() (*feed.Export, error) { return openEvents(ctx, find, f.Export) }
		in, err := v.Open() // before a job begins
		if err != nil {
			return usage(err)
		}
		if err := in.Close(); err != nil {
			return usage(err)
		}
	}
	if _, err := api.Check(ctx, operate.CheckOrder{Collection: f.Collection, Sink: f.Sink}); err != nil {
		return err // nothing was changed, and no job has begun
	}
	rate := f.rate
	if f.FromSource {
		rate = 0 // the job itself counts its requests
		if _, err := api.AskSource(ctx, operate.SourceOrder{Collection: f.Collection, Sink: f.Sink}); err != nil {
			return err
		}
	}
	sayPrice(ctx, std.err, api, f)
	run := func() (job.State, error) {
		// The next sample has other documents, so a sample does not continue.
		return runJob(ctx, std, api, v.Job(newRun()), job.Runner{Rate: rate, Dry: f.Sample > 0},
			func(l verify.Line) { verifyLine(std, l) })
	}
	state, err := run()
	if ask := (*verify.Unconfirmed)(nil); errors.As(err, &ask) {
		err = f.may.ask(ctx, std, fmt.Sprintf("Remove %d of %d documents from the sink, which the source does not have?",
			ask.Orphans, ask.Documents))
		if err == nil {
			v.Confirmed = true
			state, err = run()
		}
	}
	if err = cmp.Or(err, v.Close()); err != nil {
		return err
	}
	return verified(ctx, std, api, f, state)
}

// verifyLine prints a line of the answer.
func verifyLine(std *streams, l verify.Line) {
	if l.Note != "" {
		terminal.Printf(std.err, "%s\n", l.Note)
		return
	}
	cells := []string{fmt.Sprintf("%-11s", l.Difference), string(l.Key)}
	if l.Version != "" {
		cells[1] += " v" + l.Version
	}
	if l.Outcome != verify.Found {
		cells = append(cells, l.Outcome)
	}
	std.line(l, append(cells, l.Error)...)
}

// verified prints the counts, and says by the exit code whether anything differs.
func verified(ctx context.Context, std *streams, api operate.API, f verifyFlags, state job.State) error {
	res, err := f.ResultOf(state)
	switch {
	case err != nil:
		return err
	case res.Foreign != "":
		return usagef("--source %s: it has no event of collection %s (%s)", f.Export, f.Collection, res.Foreign)
	}
	u, err := api.Unsearchable(ctx, operate.UnsearchableQuery{Collection: f.Collection, Sink: f.Sink})
	if err != nil {
		terminal.Printf(std.err, "it is not known whether searches find all values: %v\n", err)
	}
	if u.Documents > 0 {
		res.Unsearchable = &u
	}
	err = std.last(res, func(w io.Writer) { printVerified(w, res) })
	switch bad := res.Invalid; {
	case err != nil:
	case bad > 0 && f.FromSource:
		err = &exitError{exitWrong, fmt.Errorf("%d documents could not be compared with the source, the first %d are named "+
			"above", bad, min(bad, verify.MaxNamedInvalid))}
	case bad > 0 && res.Orphans > 0:
		err = &exitError{exitWrong, fmt.Errorf("%d events of the export cannot be read, and may belong to the %d documents "+
			"that only the sink has: none of these was removed", bad, res.Orphans)}
	case res.Remaining > 0:
		err = &exitError{exitWrong, fmt.Errorf("%d documents of %s differ", res.Remaining, res.Collection)}
	case bad > 0:
		err = &exitError{exitWrong, fmt.Errorf("%d events of the export could not be compared, the first %d are named above",
			bad, min(bad, verify.MaxNamedInvalid))}
	}
	return err
}

func printVerified(w io.Writer, r verify.Result) {
	terminal.Printf(w, "%d documents in the sink, %d rows\n", r.Documents, r.Rows)
	counts := func(of map[string]int) (text string) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			text += fmt.Sprintf(", %d %s", of[name], name)
		}
		return text
	}
	if r.Requests > 0 {
		terminal.Printf(w, "%d requests to the source\n", r.Requests)
	} else if len(r.Export) > 0 {
		terminal.Printf(w, "%d events of the export%s\n", sum(r.Export), counts(r.Export))
	}
	if len(r.Drift) == 0 {
		fmt.Fprintln(w, "no drift")
	} else {
		terminal.Printf(w, "drift%s\n", counts(r.Drift))
	}
	if len(r.Repaired) > 0 {
		terminal.Printf(w, "repaired%s\n", counts(r.Repaired))
	}
	if r.InMotion > 0 {
		terminal.Printf(w, "%d are in motion\n", r.InMotion)
	}
	if u := r.Unsearchable; u != nil {
		terminal.Printf(w, "%d documents have values that searches do not find, because the mapping does not accept them: "+
			"fields %s, such as in %s\n", u.Documents, strings.Join(u.Fields, ", "), strings.Join(texts(u.Some), ", "))
	}
	if !r.Repair && len(r.Drift) > 0 {
		from := ""
		if r.Requests > 0 {
			from = " --from-source"
		}
		terminal.Printf(w, "nothing was changed: `lull index repair %s%s` repairs\n", r.Collection, from)
	}
}

// sayPrice prints how much of a deployed table the run reads, and what that costs.
func sayPrice(ctx context.Context, w io.Writer, api operate.API, f verifyFlags) {
	if api.Size == nil || f.Sample > 0 {
		return
	}
	items, bytes, err := api.Size(ctx)
	if err != nil {
		return // reading the table will fail with the same error
	}
	const page = 4096
	rows := float64(items)
	units := float64(bytes)/page/2 + rows*price.ReadUnits(0, false)
	if f.Export != "" {
		units += rows * price.ReadUnits(0, true)
	}
	terminal.Printf(w, "the table has about %d rows (%d MB): reading them costs about $%.2f\n", items,
		(bytes+1<<20-1)>>20, units*price.USEast1.ReadUnits/1e6)
}

// texts returns the keys of documents as strings.
func texts(docs []shard.DocID) []string {
	all := make([]string, len(docs))
	for i, d := range docs {
		all[i] = string(d)
	}
	return all
}
