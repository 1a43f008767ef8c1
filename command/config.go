// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/operator/transition"
	"github.com/lullhq/lull/internal/terminal"
)

func configCommand(std *streams) *cobra.Command {
	c := parent(&cobra.Command{
		Use: "config", Short: "Check, show and compare settings",
		Long: "Settings are the contents of lull.yaml. These commands ask no stack.",
	}, configCheckCommand(std), configShowCommand(std), configSchemaCommand(std), configDiffCommand(std))
	for _, sub := range append(c.Commands(), c) {
		standAlone(sub)
	}
	return c
}

// configDiffCommand shows from two files how a deploy would change the stack.
func configDiffCommand(std *streams) *cobra.Command {
	var templates bool
	return define(&cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what a deploy changes, replaces and leaves behind, and what to do first",
		Long: "OLD and NEW are two files like lull.yaml: the deployed settings, and the new settings. With --templates " +
			"they are two CloudFormation templates in JSON. Templates also show the effects of the stack's options, and " +
			"of another version of lull. `aws cloudformation get-template --stack-name STACK` prints the deployed " +
			"template, and `make synth` writes the new one to cdk.out.",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if templates {
				return diffTemplates(std, args[0], args[1])
			}
			return diffSettings(std, args[0], args[1])
		},
	}, ends{
		exitOK: "everything changes in place, or is added", exitFailed: "the answer could not be written",
		exitUsage: "usage, or a file that cannot be read",
		exitWrong: "something is replaced, refused, lost or left behind: read the answer before you deploy",
	}, flag("templates", &templates, "compare CloudFormation templates"), std.outputFlag())
}

func diffSettings(std *streams, older, newer string) error {
	c, err := both(yamlfile.Load, older, newer)
	if err != nil {
		return err
	}
	for i := range c {
		c[i].Complete()
	}
	// Only the new file must be valid. The deployed file may break a rule that this version has added.
	if err := c[1].Validate(); err != nil {
		return usage(fmt.Errorf("%s: %w", newer, err))
	}
	found := transition.Settings(&c[0], &c[1])
	err = std.print(list(found), func(w io.Writer) {
		for _, f := range found {
			terminal.Printf(
				w,
				"%s: %s -> %s\n    %s: %s\n",
				f.Setting,
				cmp.Or(f.Old, "not set"),
				cmp.Or(f.New, "not set"),
				string(f.Stack),
				f.Does,
			)
			if f.First != "" {
				terminal.Printf(w, "    %s\n", f.First)
			}
		}
		if len(found) == 0 {
			terminal.Printf(w, "the settings are the same\n")
		}
	})
	return serious(err, slices.ContainsFunc(found, func(f transition.Finding) bool { return f.Serious }))
}

func diffTemplates(std *streams, older, newer string) error {
	t, err := both(readTemplate, older, newer)
	if err != nil {
		return err
	}
	changes := transition.Templates(t[0], t[1])
	err = std.print(list(changes), func(w io.Writer) {
		for _, c := range changes {
			terminal.Printf(w, "%s\t%s\t%s\t%s\t%s\n", string(c.Action), c.Type, c.ID, c.Name, c.Says())
		}
		if len(changes) == 0 {
			terminal.Printf(w, "the templates are the same\n")
		}
	})
	return serious(err, slices.ContainsFunc(changes, transition.Change.Serious))
}

// both reads two files.
func both[A any](read func(path string) (A, error), older, newer string) (all [2]A, err error) {
	for i, path := range []string{older, newer} {
		if all[i], err = read(path); err != nil {
			return all, usage(err)
		}
	}
	return all, nil
}

func readTemplate(path string) (transition.Template, error) {
	file, err := os.Open(path)
	if err != nil {
		return transition.Template{}, fmt.Errorf("open the template: %w", err)
	}
	defer file.Close()
	t, err := transition.ReadTemplate(file)
	if err != nil {
		return t, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// serious sets the exit code if a person should read the answer before a deploy.
func serious(err error, is bool) error {
	if err == nil && is {
		return &exitError{exitWrong, nil}
	}
	return err
}

// list turns nil into an empty list, so that JSON has [] and not null.
func list[A any](l []A) []A {
	if l == nil {
		return []A{}
	}
	return l
}
