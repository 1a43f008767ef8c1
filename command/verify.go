package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/price"
	"github.com/lullhq/lull/internal/terminal"
)

// verifyFlags are the flags of `lull verify`.
type verifyFlags struct {
	sink, export, source, group, checkpoint string
	sample                                  int
	repair, versions                        bool
	rate                                    float64
	patience                                time.Duration
	wholeAt                                 string
	completeAt                              time.Time // zero if the export may be only a part
	may                                     consent
}

func (a *app) verifyCommand() *cobra.Command {
	f := verifyFlags{patience: 2 * time.Minute}
	return define(&cobra.Command{
		Use: "verify COLLECTION", Short: "Compare a collection in the sink with its rows and with the source",
		Long: "Compares every document of a collection with its row. With --source it also compares the sink with an " +
			"export of the source, NDJSON in its form. It names each document that is missing, older, changed, " +
			"or back after its delete, and those that lull did not write. It changes nothing without --repair.\n\n" +
			"With --repair it raises rows and deletes again as reconcile does. It sends the documents of the export " +
			"again that differ, through the bulk lane as one resync run. A row refuses what is older, so a repair " +
			"never makes a document older. It then looks again until what it repaired is there.\n\n" +
			"What is pending, leased or was just written is in motion and not drift: verify looks again. A " +
			"checkpoint keeps how far a long run has come, and the same command goes on from there. With -o json each document " +
			"that differs is one line, and the last line counts.",
		Args: cobra.ExactArgs(1),
		RunE: a.verb(func(c *cobra.Command, api operate.API, args []string) error {
			if err := f.check(args[0]); err != nil {
				return err
			}
			if f.wholeAt != "" && f.repair {
				if err := f.may.check(a, "the removal of documents"); err != nil {
					return err
				}
			}
			if err := f.decodes(c.Context(), api); err != nil {
				return err
			}
			v := &verification{app: a, api: api, verifyFlags: f, collection: shard.Collection(args[0])}
			return v.run(c.Context())
		}),
	}, map[int]string{
		exitOK:      "nothing differs, or nothing does any more; what is in motion is counted",
		exitFailed:  "something stopped it: run it again to go on",
		exitUsage:   "usage or settings, a checkpoint that does not fit, or a sink that cannot be read from here",
		exitMissing: "no setting, row or document is of this collection",
		exitWrong:   "drift: documents differ, or events of the export could not be compared",
	},
		flag("source", &f.export, "compare with this export of the source too, a `FILE` or s3://BUCKET/KEY"),
		flag("as", &f.source, "`NAME` of the source that decodes the export (the attribute lull-source)"),
		flag("complete-at", &f.wholeAt, "the export holds every document that the source had at this `TIME` (RFC "+
			"3339): what only the sink has, and had "+
			"before, is an orphan. --repair removes it"),
		f.may.flag(),
		flag("repair", &f.repair, "repair what differs"),
		flag("versions-only", &f.versions, "do not compare the content: for an engine whose mapping or pipeline "+
			"changes what it keeps"),
		flag("sample", &f.sample, "compare `N` rows at random, not the whole collection",
			between(&f.sample, 0, math.MaxInt, "a number of rows")),
		flag("sink", &f.sink, "`NAME` of the sink, where the collection has several: one that does not have it is "+
			"refused"),
		flag("rate", &f.rate, "at most `N` documents a second, 0 for no limit; repairs are at most 200",
			perSecond(&f.rate, "documents")),
		flag("patience", &f.patience, "how long `D` to look again while nothing that is in motion or was repaired "+
			"comes to its end",
			between(&f.patience, 0, math.MaxInt64, "a duration")),
		flag("checkpoint", &f.checkpoint, "`FILE` that keeps how far a long run has come; without it "+
			"lull-verify-COLLECTION.checkpoint in this folder, "+
			"with --sink lull-verify-COLLECTION@SINK.checkpoint"),
		groupFlag(&f.group),
	)
}

// decodes refuses --as if the stack has no such source. Otherwise each line of the export would
// fail.
func (f *verifyFlags) decodes(ctx context.Context, api operate.API) error {
	if f.source == "" {
		return nil
	}
	known, err := api.Forms(ctx)
	if err != nil || known.Why != "" { // then the answer lacks some sources
		return err
	}
	var names []string
	for _, form := range known.Forms {
		names = append(names, form.Source)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if !slices.Contains(names, f.source) {
		return usagef("--as %s: no such source: want %s", f.source, strings.Join(names, ", "))
	}
	return nil
}

func (f *verifyFlags) check(collection string) error {
	if err := checkCollection("COLLECTION", collection); err != nil {
		return err
	}
	switch {
	case f.sample > 0 && f.export != "":
		return usagef("--sample and --source: a sample is of rows, and an export is compared whole")
	case f.export == "" && (f.source != "" || f.group != "" || f.versions):
		return usagef("--as, --group and --versions-only: only with --source")
	case f.wholeAt != "" && f.export == "":
		return usagef("--complete-at: only with --source")
	}
	if f.wholeAt != "" {
		at, err := time.Parse(time.RFC3339, f.wholeAt)
		if err != nil || at.After(time.Now()) {
			return usagef("--complete-at %s: want a time that has been, such as 2026-11-22T10:00:00Z", f.wholeAt)
		}
		f.completeAt = at
	}
	return nil
}

// verified is the last line of verify's answer.
type verified struct {
	Collection shard.Collection `json:"collection"`
	Documents  int              `json:"documents"`          // in the sink
	Rows       int              `json:"rows"`               // of the collection
	Export     map[string]int   `json:"export,omitempty"`   // events of the export by state
	Drift      map[string]int   `json:"drift"`              // documents that differed
	Repaired   map[string]int   `json:"repaired,omitempty"` // how
	InMotion   int              `json:"in_motion"`          // at the end
	Remaining  int              `json:"remaining"`          // documents that differ at the end
	Run        string           `json:"run,omitempty"`      // of the repair
	Repair     bool             `json:"repair,omitempty"`
	// Unsearchable are documents of which searches do not find every value; nil for none.
	Unsearchable *operate.Unsearchable `json:"unsearchable,omitempty"`
}

// drifted is a line of the answer: a document that differs.
type drifted struct {
	Key        shard.DocID `json:"key"`
	Difference string      `json:"difference"`
	Version    string      `json:"version,omitempty"`
	Outcome    string      `json:"outcome"` // found, or the outcome of the repair
	Error      string      `json:"error,omitempty"`
}

// The outcomes that verify adds to those of reconcile.
const (
	found   = "found"   // nothing was changed
	resent  = "resent"  // sent again, from the export
	removed = "removed" // because the source does not have it
)

// tell prints each document that differs once, and counts it.
func (v *verification) tell(d drifted) {
	if _, told := v.cp.Told[d.Key]; told && d.Outcome == found {
		return
	} else if !told {
		v.cp.Total.Drift[d.Difference]++
	}
	v.cp.Told[d.Key] = d.Outcome == resent
	switch d.Outcome {
	case resent, removed, "raised", "reasserted":
		v.cp.Total.Repaired[d.Outcome]++
	default:
		v.cp.Total.Remaining++
	}
	cells := []string{fmt.Sprintf("%-11s", d.Difference), string(d.Key)}
	if d.Version != "" {
		cells[1] += " v" + d.Version
	}
	if d.Outcome != found {
		cells = append(cells, d.Outcome)
	}
	v.line(d, append(cells, d.Error)...)
}

// end prints the counts, and says by the exit code whether anything differs.
func (v *verification) end(ctx context.Context) error {
	res := v.cp.Total
	u, err := v.api.Unsearchable(ctx, operate.UnsearchableQuery{Collection: v.collection, Sink: v.sink})
	if err != nil {
		terminal.Printf(v.err, "whether all values can be searched is not known: %v\n", err)
	}
	if u.Documents > 0 {
		res.Unsearchable = &u
	}
	err = v.last(res, res.print)
	switch bad := res.Export[notDecoded]; {
	case err != nil:
	case res.Remaining > 0:
		err = &exitError{exitWrong, fmt.Errorf("%d documents of %s differ", res.Remaining, res.Collection)}
	case bad > 0:
		err = &exitError{exitWrong, fmt.Errorf("%d events of the export could not be compared, the first %d are named above",
			bad, min(bad, maxNamedInvalid))}
	}
	return err
}

func (r verified) print(w io.Writer) {
	terminal.Printf(w, "%d documents in the sink, %d rows\n", r.Documents, r.Rows)
	counts := func(of map[string]int) (text string) {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			text += fmt.Sprintf(", %d %s", of[name], name)
		}
		return text
	}
	if len(r.Export) > 0 {
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
		terminal.Printf(w, "%d documents have values that searches do not find, because the mapping does not take them: "+
			"fields %s, such as in %s\n", u.Documents, strings.Join(u.Fields, ", "), strings.Join(texts(u.Some), ", "))
	}
	if !r.Repair && len(r.Drift) > 0 {
		fmt.Fprintln(w, "nothing was changed: --repair repairs")
	}
}

// sayPrice prints how much the run reads of a table that costs money.
func (v *verification) sayPrice(ctx context.Context) {
	o, ok := v.api.(*operate.Operator)
	if !ok || o.Size == nil || v.sample > 0 {
		return
	}
	items, bytes, err := o.Size(ctx)
	if err != nil {
		return // reading the table will fail with the same error
	}
	const page = 4096
	rows := float64(items)
	units := float64(bytes)/page/2 + rows*price.ReadUnits(0, false)
	if v.export != "" {
		units += rows * price.ReadUnits(0, true)
	}
	terminal.Printf(v.err, "the table has about %d rows (%d MB): reading them costs about $%.2f\n", items,
		(bytes+1<<20-1)>>20, units*price.USEast1.ReadUnits/1e6)
}

// texts are the keys of documents as texts.
func texts(docs []shard.DocID) []string {
	all := make([]string, len(docs))
	for i, d := range docs {
		all[i] = string(d)
	}
	return all
}
