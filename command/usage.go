// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lullhq/lull/setting"
)

// flagError names a flag that cannot be read, and how to write it. It is cobra's FlagErrorFunc.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return usagef("unknown flag %s: %s", typedFlag(unknown), knownFlags(c, unknown.GetSpecifiedName()))
	case errors.As(err, &missing):
		f := missing.GetFlag()
		value, about := pflag.UnquoteUsage(f)
		return usagef("--%s needs a value: --%s %s (%s)", f.Name, f.Name, value, about)
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		want, typed := flagValues[f.Value.Type()]
		if !typed {
			return usagef("--%s: %w", f.Name, invalid.Unwrap())
		}
		return usagef("--%s %s: want %s", f.Name, invalid.GetValue(), want)
	}
	return usagef("%w: `%s --help` shows how flags are written", err, c.CommandPath())
}

// flagValues says how the values of each type of flag are written, by pflag's name of the type.
var flagValues = map[string]string{
	"bool": "true or false", "duration": "a duration such as 500ms, 5s or 1h30m", "float64": "a number",
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, 0 or more",
}

// typedFlag is an unknown flag as it was typed.
func typedFlag(unknown *pflag.NotExistError) string {
	if unknown.GetSpecifiedShortnames() != "" {
		return "-" + unknown.GetSpecifiedName()
	}
	return "--" + unknown.GetSpecifiedName()
}

// knownFlags names the flag that somebody probably meant, and who lists them all.
func knownFlags(c *cobra.Command, name string) string {
	var names []string
	add := func(f *pflag.Flag) { names = append(names, f.Name) }
	c.Flags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	list := fmt.Sprintf("`%s --help` lists the flags", c.CommandPath())
	if near := setting.Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean --%s? %s", near, list)
	}
	return list
}

// knownCommand refuses an argument of a command that has only subcommands.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unknown command %q: %s`%s --help` lists the commands", args[0], meant(c, args[0]), c.CommandPath())
}

// meant is what somebody probably meant by an unknown command: one that is spelt like it, or to
// send a file.
func meant(c *cobra.Command, typed string) string {
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	if near := setting.Nearest(typed, names); near != "" {
		return fmt.Sprintf("did you mean `%s %s`? ", c.CommandPath(), near)
	}
	if !c.HasParent() && strings.Contains(typed, ".") {
		return "`lull publish FILE` sends a file to a stack, `lull dev --events FILE` runs one. "
	}
	return ""
}

// argsError says which argument is missing, or which is one too many.
func argsError(c *cobra.Command, args []string, err error) error {
	_, use, _ := strings.Cut(c.Use, " ")
	var names []string // of the arguments, as the help calls them
	for name := range strings.FieldsSeq(use) {
		if strings.HasPrefix(name, "--") {
			break
		}
		names = append(names, name)
	}
	switch {
	case len(args) > len(names):
		err = fmt.Errorf("%q is one argument too many", args[len(names)])
	case len(args) < len(names) && !strings.HasPrefix(names[len(args)], "["):
		err = fmt.Errorf("%s is missing", names[len(args)])
	}
	return usagef("%w: write %s", err, c.UseLine())
}
