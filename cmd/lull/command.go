package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The groups of the commands.
const (
	groupHere = "here"
	groupAsk  = "ask"
	groupMend = "mend"
)

// alone is the annotation of a command that talks to no stack.
const alone = "alone"

// command is the tree of all commands.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "lull",
		Short: "Event-driven debounced indexing",
		Long: "lull indexes a document in the lull after a burst of changes: the newest version, once per burst, and " +
			"never backwards.\n\n" +
			"`lull dev` runs it in one process. The other commands talk to a stack: to a running `lull dev`, or with " +
			"--aws to a deployed one.",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: a.check,
	}
	a.target.flags(root.PersistentFlags())
	root.AddGroup(
		&cobra.Group{ID: groupHere, Title: "Run it here:"},
		&cobra.Group{ID: groupAsk, Title: "Publish and ask:"},
		&cobra.Group{ID: groupMend, Title: "Prepare and mend:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			if group == groupHere {
				standAlone(c)
			}
			root.AddCommand(c)
		}
	}
	add(groupHere, a.devCommand(), exits(simulateCommand(), map[int]string{
		exitOK: "every promise held", exitFailed: "a promise was broken, or something stopped it",
		exitUsage: "usage or settings, before anything was run",
	}))
	add(groupAsk, a.publishCommand(), a.waitCommand(), a.getCommand(), a.explainCommand(), a.statusCommand(),
		a.doctorCommand())
	add(groupMend, a.deadCommand(), a.cancelCommand(), a.rescueCommand(), a.resyncCommand(), a.initCommand())
	root.SetHelpCommand(helpCommand(root))
	return root
}

// standAlone marks a command that talks to no stack: the flags that choose one are not its own, and
// not in its help.
func standAlone(c *cobra.Command) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[alone] = "yes"
	c.SetUsageTemplate(strings.Replace(c.UsageTemplate(), "{{if .HasAvailableInheritedFlags}}", "{{if false}}", 1))
}

// check refuses flags that make no sense together, before a command runs.
func (a *app) check(c *cobra.Command, _ []string) error {
	if err := checkEmpty(c.Flags()); err != nil {
		return err
	}
	if c.Annotations[alone] != "" {
		var wrong []string
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Changed {
				wrong = append(wrong, "--"+f.Name)
			}
		})
		if len(wrong) > 0 {
			return usagef("%s: %s talks to no stack", strings.Join(wrong, ", "), c.CommandPath())
		}
		return nil
	}
	return a.target.check(c.Flags())
}

// checkEmpty refuses a flag that was given nothing: a script's variable that was never set must not
// widen a filter, or begin the demo.
func checkEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" {
			err = usagef("--%s: is empty: leave it out, or say what", f.Name)
		}
	})
	return err
}

// exits adds to a command's help what its exit codes mean.
func exits(c *cobra.Command, meaning map[int]string) *cobra.Command {
	var lines []string
	for _, code := range slices.Sorted(maps.Keys(meaning)) {
		lines = append(lines, fmt.Sprintf("  %d  %s", code, meaning[code]))
	}
	if c.Long == "" {
		c.Long = c.Short + "."
	}
	c.Long += "\n\nExit codes:\n" + strings.Join(lines, "\n")
	return c
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command", Annotations: map[string]string{alone: "yes"},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("unknown command %q for %q", rest[0], c.CommandPath())
			}
			if err != nil {
				return usage(err)
			}
			return c.Help()
		},
	}
}
