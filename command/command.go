// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"go/doc/comment"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lullhq/lull/internal/deploy/version"
)

// The groups of the commands, in the order of the help.
const (
	groupStart    = "start"
	groupLook     = "look"
	groupDead     = "dead"
	groupControl  = "control"
	groupIndex    = "index"
	groupSettings = "settings"
	groupRare     = "rare"
)

// The help lists the commands in the order in which they are added, and not by name.
func init() { cobra.EnableCommandSorting = false }

// alone is the annotation of a command that does not talk to a stack.
const alone = "alone"

// command is the tree of all commands.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "lull",
		Short: "Event-driven debounced indexing",
		Long: "lull indexes a document in the lull after a burst of changes: the newest version, once per burst, " +
			"and never backwards.\n\n" +
			"`lull dev` runs it in one process. The other commands talk to a stack: to a running `lull dev`, " +
			"or with --aws to a deployed one.",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: a.check, Version: version.Of().String(),
	}
	root.SetVersionTemplate("lull {{.Version}}\n")
	root.Flags().Bool("version", false, "say which build of lull this is")
	wide := fmt.Sprint(".FlagUsagesWrapped ", columns)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", wide))
	std, t := &a.streams, &a.target
	for _, o := range slices.Concat(t.flags(), []option{std.outputFlag()}, std.look.flags()) {
		o.add(root.PersistentFlags())
	}
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupDead, Title: "Dead letters:"},
		&cobra.Group{ID: groupControl, Title: "Control:"},
		&cobra.Group{ID: groupIndex, Title: "Index:"},
		&cobra.Group{ID: groupSettings, Title: "Settings:"},
		&cobra.Group{ID: groupRare, Title: "Rare:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupStart, standAlone(devCommand(std, t.aws, &a.ctrlC)), standAlone(newCommand(std)),
		standAlone(costCommand()), standAlone(simulateCommand()), doctorCommand(std, t))
	add(groupLook, publishCommand(std, t), waitCommand(std, t), getCommand(std, t), explainCommand(std, t),
		listCommand(std, t), statusCommand(std, t), consoleCommand(std, t))
	add(groupDead, deadCommand(std, t))
	add(groupControl, pauseCommand(std, t), resumeCommand(std, t), cancelCommand(std, t), forgetCommand(std, t),
		resetCommand(std, t))
	add(groupIndex, indexCommand(std, t), rebuildCommand(std, t), resyncCommand(std, t), replayCommand(std, t),
		backfillCommand(std, t), jobsCommand(std, t))
	add(groupSettings, configCommand(std))
	add(groupRare, rescueCommand(std, t), objectCommand(std, t), bridgeCommand(std, t),
		standAlone(completionCommand(std)), standAlone(versionCommand(std)))
	root.SetHelpCommandGroupID(groupRare)
	t.complete(root)
	parent(root)
	root.SetFlagErrorFunc(flagError)
	showArgs(root)
	addExamples(root)
	root.SetHelpCommand(helpCommand(root))
	return root
}

// showArgs makes every command refuse wrong or empty arguments, and show the right ones. For
// example, an empty variable of a script must not mean this folder, or all dead letters. If an
// error has no exit code, showArgs gives it one.
func showArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		showArgs(sub)
	}
	if do := c.RunE; do != nil {
		c.RunE = func(c *cobra.Command, args []string) error { return failed(do(c, args)) }
	}
	if c.HasSubCommands() || c.Args == nil {
		return // cobra has its own answer to an unknown command
	}
	takes := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if err := takes(c, args); err != nil {
			return argsError(c, args, err)
		}
		if i := slices.Index(args, ""); i >= 0 {
			return usagef("argument %d is empty: leave it out, or give a value: write %s", i+1, c.UseLine())
		}
		return nil
	}
}

// standAlone marks a command that does not talk to a stack. Its help leaves out the flags that
// choose a stack.
func standAlone(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{alone: "yes"}
	c.SetUsageTemplate(strings.Replace(c.UsageTemplate(), "{{if .HasAvailableInheritedFlags}}", "{{if false}}", 1))
	return c
}

// parent adds subcommands to a command. The command alone prints its help, which lists them.
func parent(c *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	c.Args, c.RunE = knownCommand, func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(subs...)
	return c
}

// check refuses flags that make no sense together, before a command runs.
func (a *app) check(c *cobra.Command, _ []string) error {
	std := &a.streams
	if err := cmp.Or(std.look.check(std.out, std.err), checkEmpty(c.Flags())); err != nil {
		return err
	}
	if c.Annotations[alone] != "" {
		var wrong []string
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Changed && !looks(f) {
				wrong = append(wrong, "--"+f.Name)
			}
		})
		if len(wrong) > 0 {
			return usagef("%s: %s does not talk to a stack: leave it out", strings.Join(wrong, ", "), c.CommandPath())
		}
		return std.checkOutput()
	}
	return cmp.Or(std.checkOutput(), a.target.check(c.Flags()))
}

// checkEmpty refuses a flag with an empty value. For example, an empty variable of a script must
// not widen a filter, or start the demo.
func checkEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" {
			err = usagef("--%s: is empty: leave it out, or give a value", f.Name)
		}
	})
	return err
}

// define gives a command its flags, and adds the meaning of its exit codes to its help.
func define(c *cobra.Command, meaning ends, options ...option) *cobra.Command {
	var lines []string
	for _, code := range slices.Sorted(maps.Keys(meaning)) {
		lines = append(lines, fmt.Sprintf("  %d  %s", code, meaning[code]))
	}
	c.Long = wrapped(strings.TrimSuffix(c.Short+".\n\n"+c.Long, "\n\n")) + "\nExit codes:\n" + strings.Join(lines, "\n")
	return flags(c, options...)
}

// columns is how wide help is, in a terminal and in docs/cli.md.
const columns = 100

// wrapped breaks the lines of a text after at most columns characters.
func wrapped(text string) string {
	var p comment.Parser
	return string((&comment.Printer{TextWidth: columns}).Text(p.Parse(text)))
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command", Annotations: map[string]string{alone: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err == nil {
				err = knownCommand(c, rest)
			}
			if err != nil {
				return usage(err)
			}
			return c.Help()
		},
	}
}
