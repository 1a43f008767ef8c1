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
	"strings"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/simulation/cost"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// defaultFile is the settings file that commands read when they are given none.
const defaultFile = "lull.yaml"

// fileFlag also accepts the file as a flag, like the other commands.
func fileFlag() option {
	file := defaultFile
	return flag("config", &file, "`FILE` of settings, as other commands name it")
}

// fileArg returns the file that a command of config reads.
func fileArg(c *cobra.Command, args []string) (string, error) {
	if len(args) == 0 {
		return c.Flags().GetString("config")
	}
	if c.Flags().Changed("config") {
		return "", usagef("--config: %s is named already: name one file", args[0])
	}
	return args[0], nil
}

// checked is the answer of config check.
type checked struct {
	File       string            `json:"file"`
	OK         bool              `json:"ok"`
	Deployable bool              `json:"deployable"`
	Faults     []faultLine       `json:"faults"`
	Why        string            `json:"why,omitempty"`       // the first reason why they are not deployable
	Unchecked  []config.Unlinked `json:"unchecked,omitempty"` // not checked, because their kinds are not linked
	Follows    []config.Value    `json:"follows,omitempty"`
	Idle       float64           `json:"idle_dollars_a_month,omitempty"`
	Messages   []sample          `json:"messages,omitempty"`
}

// faultLine is one thing that is wrong.
type faultLine struct {
	Line    int    `json:"line,omitempty"`
	Setting string `json:"setting"`
	Value   string `json:"value,omitempty"`
	Problem string `json:"problem"`
	Fix     string `json:"fix"`
	Rule    string `json:"rule"`
}

func faultLines(err error) []faultLine {
	lines := []faultLine{}
	for _, f := range config.Faults(err) {
		lines = append(lines, faultLine{f.Line, f.Setting, f.Value, f.Problem, f.Fix, f.Rule})
	}
	slices.SortStableFunc(lines, func(a, b faultLine) int { return cmp.Compare(a.Line, b.Line) })
	return lines
}

// configCheckCommand judges a settings file.
func configCheckCommand(std *streams) *cobra.Command {
	var deploy bool
	var messages, sink string
	return define(&cobra.Command{
		Use: "check [FILE]", Short: "Find every fault of a settings file, and say what follows from it",
		Long: "Names every fault at once, each with its line and the fix. Without faults it says how fresh documents " +
			"are, how long a lease is, and what a stack costs a month in which nothing happens. Without FILE it reads " +
			defaultFile + ".\n\nThe settings of a kind that this program does not link are not checked: the answer names " +
			"them. With --deploy or --message such a kind is a fault.\n\n" +
			"With --message it shows for each message which rule chooses its source, and the result: the document, the " +
			"version and the sink. It reads the same input as `lull publish`.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := fileArg(c, args)
			if err != nil {
				return err
			}
			if sink != "" && messages == "" {
				return usagef("--sink: only with --message")
			}
			return checkSettings(c.Context(), std, path, deploy, messages, sink)
		},
	}, ends{
		exitOK: "the settings are valid", exitFailed: "the answer could not be written",
		exitUsage:   "usage, a file that cannot be read, or settings with faults",
		exitRefused: "the settings are valid, and a message of --message would become a dead letter",
	},
		fileFlag(), std.outputFlag(),
		flag("deploy", &deploy, "also refuse settings that only 'lull dev' runs, such as the sink bleve, and addresses of "+
			"example.org"),
		flag("message", &messages, "`FILE|DIR|-` of messages: show which source decodes each, and the result"),
		flag("sink", &sink, "with --message: the `NAME` of the sink whose queue has the messages; without it the sink "+
			"that lull publish chooses"),
	)
}

func checkSettings(ctx context.Context, std *streams, path string, deploy bool, messages, sink string) error {
	kinds := config.KindsAlsoOthers
	if deploy || messages != "" {
		kinds = config.KindsLinked
	}
	cfg, lines, err := yamlfile.CheckAs(path, kinds)
	if err != nil && len(config.Faults(err)) == 0 {
		return usage(err) // there is no such file, or it is not YAML
	}
	answer := checked{File: path, OK: err == nil, Faults: faultLines(err)}
	if err != nil && kinds == config.KindsAlsoOthers {
		answer.Unchecked = unlinkedBeside(path, answer.Faults)
	}
	if err == nil {
		undeployable := errors.Join(cfg.ValidateDeployed(), cfg.Placeholders())
		answer.Unchecked = cfg.Unlinked()
		answer.Deployable = undeployable == nil
		if !answer.Deployable {
			answer.Why = config.Apart(undeployable)[0].Error()
		}
		if lines.Locate(undeployable); deploy && undeployable != nil {
			answer.OK, answer.Faults = false, faultLines(undeployable)
		}
	}
	if answer.OK {
		answer.Follows = cfg.Follows()
		idle, err := cost.Of(ctx, &cfg, cost.Load{Burst: 1, Hours: 24, Bytes: 700})
		if err != nil {
			return &exitError{exitFailed, fmt.Errorf("estimate the bill: %w", err)}
		}
		answer.Idle = idle.Ceiling.Total
		if messages != "" {
			if answer.Messages, err = samples(ctx, std, &cfg, messages, sink); err != nil {
				return err
			}
		}
	}
	err = std.print(answer, func(w io.Writer) { answer.show(w, &cfg) })
	if err == nil && !answer.OK {
		err = usagef("%s has %s", path, plural(len(answer.Faults), "fault"))
	}
	if n := dead(answer.Messages); err == nil && n > 0 {
		err = &exitError{exitRefused, fmt.Errorf("%s of %d would become dead letters", plural(n, "message"), len(answer.Messages))}
	}
	return err
}

// unlinkedBeside returns the sinks and sources of unlinked kinds in a file that also has faults.
// There are no settings for such a file, so the file is read again: if only linked kinds are
// allowed, each unlinked kind is one more fault.
func unlinkedBeside(path string, faults []faultLine) (all []config.Unlinked) {
	_, _, err := yamlfile.CheckAs(path, config.KindsLinked)
	for _, f := range faultLines(err) {
		if name, ok := strings.CutSuffix(f.Setting, ".kind"); ok && !slices.Contains(faults, f) {
			all = append(all, config.Unlinked{Setting: name, Kind: f.Value})
		}
	}
	return all
}

// plural returns a number and the noun that it counts.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (k checked) show(w io.Writer, cfg *config.Config) {
	for _, f := range k.Faults {
		at := k.File
		if f.Line > 0 {
			at += fmt.Sprintf(":%d", f.Line)
		}
		name := terminal.Styled{Style: terminal.Bold, Text: f.Setting}
		if f.Value == "" {
			terminal.Printf(w, "%s: %s: %s\n    %s\n", at, name, f.Problem, f.Fix)
			continue
		}
		terminal.Printf(w, "%s: %s (%s): %s\n    %s\n", at, name, f.Value, f.Problem, f.Fix)
	}
	for _, u := range k.Unchecked {
		known := source.Kinds()
		if strings.HasPrefix(u.Setting, "sinks.") {
			known = sink.Kinds()
		}
		terminal.Printf(w, "%s: unknown kind %s: known are %s; or it is a kind of another program, which must check it\n",
			u.Setting, u.Kind, strings.Join(known, ", "))
	}
	if !k.OK {
		return
	}
	valid := terminal.Styled{Style: terminal.Green, Text: "the settings are valid"}
	if len(k.Unchecked) > 0 {
		valid = terminal.Styled{Style: terminal.Bold, Text: "no fault was found in the settings of the known kinds"}
	}
	if len(k.Messages) > 0 { // a user who asks about messages has seen the settings
		terminal.Printf(w, "%s: %s\n", k.File, valid)
		for i, s := range k.Messages {
			s.show(w, i)
		}
		return
	}
	terminal.Printf(w, "%s: %s\n", k.File, valid)
	fmt.Fprintln(w)
	header(w, "SOURCE", "KIND", "COLLECTION")
	for _, name := range slices.Sorted(maps.Keys(cfg.Sources)) {
		terminal.Printf(w, "%s\t%s\t%s\n", name, cfg.Sources[name].Kind, cfg.CollectionFor(name))
	}
	fmt.Fprintln(w)
	header(w, "SINK", "KIND", "LEASE")
	for _, name := range slices.Sorted(maps.Keys(cfg.Sinks)) {
		lease := "unknown"
		if config.LeaseIsKnown(cfg.Sinks[name]) {
			lease = setting.FormatDuration(cfg.Lease(name))
		}
		terminal.Printf(w, "%s\t%s\t%s\n", name, cfg.Sinks[name].Kind, lease)
	}
	fmt.Fprintln(w)
	header(w, "COLLECTION", "SINK", "QUIET", "MAX WAIT", "FRESH WITHIN (P99)")
	row := func(shown, name string) {
		to := strings.Join(cfg.SinksFor(name), ", ")
		d := cfg.For(name)
		terminal.Printf(w, "%s\t%s\t%s\t%s\t%s\n", shown, to, setting.FormatDuration(d.Quiet),
			setting.FormatDuration(d.MaxWait), setting.FormatDuration(cfg.Fresh(name)))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Collections)) {
		row(name, name)
	}
	if len(cfg.Collections) == 0 {
		row("any", "")
	}
	terminal.Printf(w, "\nA stack in which nothing happens costs about $%.0f a month: `lull cost` has the rest.\n", k.Idle)
	switch {
	case len(k.Unchecked) > 0:
		fmt.Fprintln(w, "Whether these settings can be deployed depends on the kinds that were not checked.")
	case !k.Deployable:
		terminal.Printf(w, "Only `lull dev` runs these settings: %s.\n--deploy names everything that a deploy needs.\n", k.Why)
	}
}
