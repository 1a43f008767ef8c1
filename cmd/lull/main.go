// Command lull runs lull on one machine and talks to its stacks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes of every command.
const (
	exitOK      = 0
	exitFailed  = 1 // something stopped the run, or work is left
	exitUsage   = 2 // usage or configuration, before anything was read or changed
	exitLetters = 3 // settled, but dead letters are parked
	exitMissing = 4 // what was asked for is not there, or not yet
)

// exitError carries an exit code. A nil err prints nothing.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(err error) error { return &exitError{exitUsage, err} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	root := command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{exitUsage, err} // cobra's own: an unknown command or flag
	}
	if exit.err != nil {
		fmt.Fprintln(os.Stderr, "lull:", exit.err)
	}
	return exit.code
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "lull",
		Short: "Event-driven debounced indexing",
		Long: "lull indexes a document in the lull after a burst of changes: the newest version, once per burst, and never backwards.\n\n" +
			"Exit codes: 0 done; 1 something stopped the run or left work; 2 usage or configuration; 3 settled, but dead letters are parked;\n" +
			"4 what was asked for is not there, or not in time.",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	t := &target{}
	t.flags(root.PersistentFlags())
	root.AddCommand(devCommand(), simulateCommand(), publishCommand(t), getCommand(t), statusCommand(t), waitCommand(t), explainCommand(t), deadCommand(t),
		cancelCommand(t), rescueCommand(t), resyncCommand(t), doctorCommand(t), initCommand(t))
	return root
}
