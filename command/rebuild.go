// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// maxIndexFile bounds a mapping or settings of an index.
const maxIndexFile = 4 << 20

// rebuildFlags are the flags of `lull rebuild`.
type rebuildFlags struct {
	mapping, settings, source string
	sink                      string
	keep, allow               int
	drop, dryRun              bool
	rate, sourceRate          float64
}

func rebuildCommand(std *streams, t *target) *cobra.Command {
	f := rebuildFlags{sourceRate: 200, keep: 1}
	c := define(&cobra.Command{
		Use: "rebuild COLLECTION", Short: "Build a new index during live traffic, and replace the index in use",
		Long: "Changes the mapping of an index during live traffic. It makes a new index, and from then on every write " +
			"goes to both indices. The engine copies the documents that were written before. lull compares the two " +
			"indices until nothing differs. Then it switches the alias in one step. Readers find no gap, and no document " +
			"goes backwards. A write waits for the new index for a second at most.\n\n" +
			"After Ctrl-C or a failure `lull rebuild resume` continues, on any machine. " +
			"`lull rebuild abort` deletes the new index, unless readers have it already.\n\n" +
			"If the name is an index and not an alias, the switch must delete the index and give its name to the new " +
			"one. This needs --drop-old. From then on the name is an alias.",
		Args: cobra.ExactArgs(1),
		RunE: t.verb(func(c *cobra.Command, api operate.API, args []string) error {
			order := operate.RebuildOrder{
				Action: rebuild.Start, Collection: shard.Collection(args[0]), Source: f.source != "",
				Keep: f.keep,
				Drop: f.drop, Allow: &f.allow, Rate: f.rate, DryRun: f.dryRun, Sink: f.sink,
			}
			if err := order.Collection.Validate(); err != nil { // also of an empty one: subcommands need no argument
				return usagef("COLLECTION: %w", err)
			}
			order.By = whoami()
			if f.mapping == "" && f.settings == "" && f.source == "" && !f.dryRun {
				order.DryRun = true // a sink that cannot be rebuilt says so first
				if _, err := api.Rebuild(c.Context(), order); errors.Is(err, operate.ErrInput) {
					return err
				}
				return usagef("say what changes: --mapping, --settings or --source")
			}
			var err error
			if order.Mapping, err = indexFile("--mapping", f.mapping); err != nil {
				return err
			}
			if order.Settings, err = indexFile("--settings", f.settings); err != nil {
				return err
			}
			if f.rate > 0 && f.source != "" {
				return usagef("--rate limits the engine's copy: with --source give --source-rate")
			}
			if f.dryRun {
				step, err := api.Rebuild(c.Context(), order)
				if err != nil {
					return err
				}
				p := operate.RebuildProgress{Sink: step.Sink, Progress: step.Next.Progress}
				return std.print(p, func(w io.Writer) { showDryRun(w, p, order) })
			}
			p, err := runRebuild(c.Context(), std, api, order)
			if err != nil || p.Phase != rebuild.Sourcing {
				return err
			}
			return rebuildFromSource(c.Context(), std, t.aws, api, p, f)
		}),
	}, ends{
		exitOK:      "readers have the new index",
		exitFailed:  "it stopped: see 'lull rebuild status', then resume or abort it",
		exitUsage:   "usage or settings, or an index that cannot be rebuilt: nothing was changed",
		exitRefused: "readers have the new index, and documents were left out",
		exitMissing: "not found",
	},
		flag("mapping", &f.mapping, "`FILE` with the new mapping, as JSON; without it the mapping of the index in use"),
		flag("settings", &f.settings, "`FILE` with settings of the new index, as JSON; they replace settings of the "+
			"index in use"),
		flag("source", &f.source, "fill the new index from `FILE`, events as for 'lull resync', instead of the "+
			"engine's copy: if the source now writes the documents in another form"),
		flag("source-rate", &f.sourceRate, "with --source: `N` messages a second", sends(&f.sourceRate)),
		flag("keep", &f.keep, "keep the `N` newest indices that rebuilds of this collection have replaced",
			between(&f.keep, 0, math.MaxInt, "0 or more")),
		flag("drop-old", &f.drop, "delete the index that was in use, after readers have the new one"),
		flag("rate", &f.rate, "the engine copies at most `N` documents a second, 0 for no limit",
			between(&f.rate, 0, 1e9, "documents a second, or 0 for no limit")),
		flag("dry-run", &f.dryRun, "say what would happen, change nothing; --mapping and --settings are tried "+
			"with an empty index, which is deleted at once"),
		flag("sink", &f.sink, "`NAME` of the sink, if the collection has several"),
		allowFlag(&f.allow),
	)
	c.AddCommand(rebuildStatusCommand(std, t), rebuildResumeCommand(std, t), rebuildAbortCommand(std, t))
	return c
}

func allowFlag(n *int) option {
	return flag("allow", n, "leave out up to `N` documents that the new index refuses, or that --source does not have",
		between(n, 0, math.MaxInt, "0 or more"))
}

// indexFile reads a file with JSON for the engine.
func indexFile(flag, path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxIndexFile+1))
	if err != nil {
		return nil, usagef("%s: %w", flag, err)
	}
	var object map[string]any
	switch err := json.Unmarshal(text, &object); {
	case len(text) > maxIndexFile:
		return nil, usagef("%s %s: more than %d MB", flag, path, maxIndexFile>>20)
	case err != nil:
		return nil, usagef("%s %s: want a JSON object: %w", flag, path, err)
	}
	return text, nil
}

// runRebuild carries out an order, and prints its progress.
func runRebuild(ctx context.Context, std *streams, api operate.API, order operate.RebuildOrder,
) (p operate.RebuildProgress, err error) {
	order.By = whoami()
	j, name, err := operate.RebuildJob(ctx, api, order)
	if err != nil {
		return p, err
	}
	state, err := runJob(ctx, std, api, j, job.Runner{}, func(p rebuild.Progress) {
		now := operate.RebuildProgress{Sink: name, Progress: p}
		if std.output == "json" {
			_ = json.NewEncoder(std.err).Encode(now)
			return
		}
		terminal.Printf(std.err, "%s  %s\n", time.Now().Format(time.TimeOnly), rebuildText(now))
	})
	if p, err = operate.RebuildResult(name, state, err); err == nil && p.Phase != rebuild.Sourcing {
		err = std.print(p, func(w io.Writer) { showRebuild(w, p) })
		if err == nil && p.Phase == rebuild.Done && p.Left > 0 {
			err = &exitError{exitRefused, fmt.Errorf("readers have the new index, without %d documents", p.Left)}
		}
	}
	return p, err
}

// phases describes what a rebuild does in each phase. Names in braces are replaced by values of the
// progress.
var phases = map[rebuild.Phase]string{
	rebuild.Creating:  "makes the index {new}, like {old}",
	rebuild.Announced: "every write goes to both indices from now on",
	rebuild.Filling:   "the engine copies: {count}",
	rebuild.Sourcing:  "waits for the source: send its documents with `lull resync`, then resume",
	rebuild.Comparing: "compares: {count}",
	rebuild.Switching: "switches {name}",
	rebuild.Tidying:   "readers have the new index; deletes the indices that are no longer needed",
	rebuild.Done:      "done",
	rebuild.Aborted:   "aborted",
}

// rebuildText returns the progress of a rebuild as one line.
func rebuildText(p operate.RebuildProgress) string {
	text := strings.NewReplacer("{new}", p.New, "{old}", p.Old, "{name}", p.Name,
		"{count}", fmt.Sprintf("%d of %d documents", p.Done, p.Total)).Replace(cmp.Or(phases[p.Phase], string(p.Phase)))
	if p.Phase == rebuild.Comparing {
		switch p.Passes {
		case 0:
			text = "waits until every turn knows of the rebuild, and then compares"
		case 1:
		default:
			text += fmt.Sprintf(", the %d. time", p.Passes)
		}
		text += fmt.Sprintf("; %d repaired", p.Repaired)
	}
	if p.Missed > 0 {
		text += fmt.Sprintf("; the new index missed %d writes", p.Missed)
	}
	if p.Newer > 0 {
		text += fmt.Sprintf("; %d documents newer than the export are copied as they are", p.Newer)
	}
	if p.Left > 0 {
		text += fmt.Sprintf("; %d documents are left out", p.Left)
	}
	return text
}

func showDryRun(w io.Writer, p operate.RebuildProgress, order operate.RebuildOrder) {
	terminal.Printf(w, "%s points to %s, with %d documents\n", p.Name, p.Old, p.Total)
	terminal.Printf(w, "the new index would be called %s\n", p.New)
	if !p.Alias {
		terminal.Printf(w, "%s is an index, not an alias: the switch would delete it and give its name to the new index\n",
			p.Old)
	}
	if order.Mapping != nil || order.Settings != nil {
		fmt.Fprintln(w, "the engine accepts your changes: it made an empty index with them, which was deleted")
	}
	fmt.Fprintln(w, "dry run: nothing was changed")
}

func showRebuild(w io.Writer, p operate.RebuildProgress) {
	switch p.Phase {
	case rebuild.Aborted:
		terminal.Printf(w, "aborted: %s is deleted, %s did not change\n", p.New, p.Name)
	case rebuild.Done:
		terminal.Printf(
			w,
			"%s now points to %s: %d documents were compared, %d repaired, %d left out\n",
			p.Name,
			p.New,
			p.Total,
			p.Repaired,
			p.Left,
		)
		if p.Newer > 0 {
			terminal.Printf(w, "newer than the export, and copied as they are: %d, such as %s\n", p.Newer,
				strings.Join(p.NewerIDs, " "))
		}
		for _, d := range p.Refused {
			terminal.Printf(w, "left out: %s  %s\n", d.ID, d.Reason)
		}
		switch {
		case p.Drop || !p.Alias:
			terminal.Printf(w, "%s is deleted\n", p.Old)
		case p.Keep > 0:
			terminal.Printf(w, "%s is kept: delete it when you no longer need it\n", p.Old)
		}
	default:
		terminal.Printf(w, "%s\n", rebuildText(p))
	}
}

// rebuildFromSource sends the documents of the source, and then resumes the rebuild.
func rebuildFromSource(ctx context.Context, std *streams, find credentials, api operate.API,
	p operate.RebuildProgress, f rebuildFlags,
) error {
	o := operate.ResyncOrder{Collection: string(p.Collection), Sink: f.sink}
	err := runResync(ctx, std, find, api, f.source, o, f.sourceRate)
	if err != nil {
		return fmt.Errorf("%w; after that run `lull rebuild resume`", err)
	}
	_, err = runRebuild(ctx, std, api, operate.RebuildOrder{Action: rebuild.Resume, Sink: p.Sink})
	return err
}

func rebuildStatusCommand(std *streams, t *target) *cobra.Command {
	ask := func(api operate.API, ctx context.Context, _ []string) ([]operate.RebuildProgress, error) {
		return api.Rebuilds(ctx)
	}
	return define(&cobra.Command{
		Use: "status", Short: "Show the progress of rebuilds", Args: cobra.NoArgs,
		RunE: question(std, t, ask, func(w io.Writer, all []operate.RebuildProgress) {
			if len(all) == 0 {
				fmt.Fprintln(w, "nothing is being rebuilt")
			}
			for _, p := range all {
				terminal.Printf(w, "sink %s, collection %s: %s\n", p.Sink, p.Collection, rebuildText(p))
				terminal.Printf(
					w,
					"  begun at %s; %s will replace %s; last driven by %s\n",
					p.Begun.Format(time.RFC3339),
					p.New,
					p.Old,
					p.By,
				)
				for _, d := range p.Refused {
					terminal.Printf(w, "  would be missing: %s  %s\n", d.ID, d.Reason)
				}
				if p.Error != "" {
					terminal.Printf(w, "  stopped: %s\n", p.Error)
				}
			}
		}),
	}, ends{exitOK: "the progress was printed", exitFailed: "the table does not answer", exitUsage: "usage or settings"})
}

func rebuildResumeCommand(std *streams, t *target) *cobra.Command {
	return rebuildOn(std, t, rebuild.Resume, &cobra.Command{
		Use: "resume", Short: "Continue a rebuild that was interrupted",
		Long: "Continues where the rebuild was interrupted, killed or stopped by a failure. It refuses if another program " +
			"drives the rebuild, or was killed less than two minutes ago.",
	}, ends{
		exitOK: "readers have the new index", exitFailed: "it stopped again: see 'lull rebuild status'",
		exitUsage: "usage or settings", exitMissing: "nothing is being rebuilt",
		exitRefused: "readers have the new index, and documents were left out",
	})
}

func rebuildAbortCommand(std *streams, t *target) *cobra.Command {
	return rebuildOn(std, t, rebuild.Abort, &cobra.Command{
		Use: "abort", Short: "End a rebuild, and delete its new index",
		Long: "The index in use does not change. If readers have the new index already, it refuses: `lull rebuild resume` " +
			"then ends the rebuild.",
	}, ends{
		exitOK:     "nothing of the rebuild remains",
		exitFailed: "it stopped: run it again, or readers have the new index already",
		exitUsage:  "usage or settings", exitMissing: "nothing is being rebuilt",
	})
}

// rebuildOn makes c a command for the rebuild that is under way.
func rebuildOn(std *streams, t *target, action rebuild.Action, c *cobra.Command, codes ends) *cobra.Command {
	var allow int
	order := operate.RebuildOrder{Action: action}
	c.Args = cobra.NoArgs
	c.RunE = t.verb(func(c *cobra.Command, api operate.API, _ []string) error {
		if c.Flags().Changed("allow") {
			order.Allow = &allow
		}
		_, err := runRebuild(c.Context(), std, api, order)
		return err
	})
	options := []option{flag("sink", &order.Sink, "the `NAME` of the sink, if several sinks are being rebuilt")}
	if action == rebuild.Resume {
		options = append(options, allowFlag(&allow))
	}
	return define(c, codes, options...)
}
