// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/terminal"
)

// configShowCommand prints the settings that apply.
func configShowCommand(std *streams) *cobra.Command {
	var defaults bool
	return define(&cobra.Command{
		Use: "show [FILE]", Short: "Print the settings that apply, and where each comes from",
		Long: "Lists the settings of the file (yours, with the line) and the settings that follow from them (derived, with " +
			"the reason). With --defaults it also lists the other settings, which have lull's defaults. Without FILE it " +
			"reads " + defaultFile + ". The list has no passwords: add it to the report of a bug.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := fileArg(c, args)
			if err != nil {
				return err
			}
			cfg, lines, err := yamlfile.Check(path)
			if err != nil {
				return usage(err)
			}
			all := cfg.Effective(lines)
			if !defaults {
				all = slices.DeleteFunc(all, func(v config.Value) bool { return v.From == config.OfDefault })
			}
			return std.print(list(all), func(w io.Writer) { showSettings(w, all) })
		},
	}, ends{
		exitOK: "they were printed", exitFailed: "the answer could not be written",
		exitUsage: "usage, a file that cannot be read, or settings with faults",
	}, flag("defaults", &defaults, "also the settings that have lull's own defaults"), fileFlag(),
		std.outputFlag())
}

func showSettings(w io.Writer, all []config.Value) {
	header(w, "SETTING", "VALUE", "~FROM")
	for _, v := range all {
		from := string(v.From)
		switch {
		case v.Line > 0:
			from += fmt.Sprintf(", line %d", v.Line)
		case v.Why != "":
			from += ": " + v.Why
		}
		terminal.Printf(w, "%s\t%s\t%s\n", v.Setting, v.Value, from)
	}
}

// configSchemaCommand prints what editors need to complete and check a settings file.
func configSchemaCommand(std *streams) *cobra.Command {
	return define(&cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of lull.yaml, for editors",
		Long: "Prints a JSON Schema (draft 2020-12) with the kinds of sources and sinks that this program knows. " +
			"Write it beside your settings, and name it in their first line:\n\n" +
			"  lull config schema > lull.schema.json\n" +
			"  # yaml-language-server: $schema=lull.schema.json\n\n" +
			"Then editors with the YAML language server complete names, show what each means, and mark mistakes. " +
			"`lull config check` also finds contradictions between settings, which a schema cannot.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := std.out.Write(config.Schema())
			return err
		},
	}, ends{exitOK: "it was printed", exitFailed: "the answer could not be written", exitUsage: "usage"})
}
