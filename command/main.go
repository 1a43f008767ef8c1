// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/lullhq/lull/internal/terminal"
)

// app is the program. A command gets only the parts that it uses.
type app struct {
	streams streams
	target  target
	ctrlC   ctrlC
}

func newApp(in io.Reader, out, err io.Writer) *app {
	load := func(ctx context.Context) (aws.Config, error) { return awsconfig.LoadDefaultConfig(ctx) }
	std := streams{
		in: in, out: terminal.NewWriter(out), err: terminal.NewWriter(err), look: look{colour: colourAuto},
		output: "table",
	}
	return &app{
		streams: std,
		target:  target{dev: "http://" + defaultListen, config: defaultFile, aws: load, audit: std.err},
		ctrlC:   ctrlC{release: func() {}},
	}
}

// ctrlC says when Ctrl-C ends the process.
type ctrlC struct {
	// saving says that a data folder is to be saved: a second Ctrl-C must not end the process before
	saving  atomic.Bool
	release func() // lets the next Ctrl-C end the process at once
}

// Main runs the program: it reads the process's arguments and input, and ends the process with the
// command's exit code. It does not return.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.ctrlC.release = stop
	context.AfterFunc(ctx, func() {
		if !a.ctrlC.saving.Load() {
			stop() // the second Ctrl-C ends at once
		}
	})
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(int(code))
}

// saved says that no data folder is to be saved any more.
func (c *ctrlC) saved() {
	c.saving.Store(false)
	c.release()
}

// run is the program: it prints what went wrong and returns the exit code.
func (a *app) run(ctx context.Context, args []string) exitCode {
	root := a.command()
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for the process's own
	root.SetIn(a.streams.in)
	root.SetOut(a.streams.out)
	root.SetErr(a.streams.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{exitUsage, err} // cobra's own: an unknown command or flag
	}
	if exit.err != nil {
		terminal.Printf(a.streams.err, "%s ", terminal.Styled{Style: terminal.Red, Text: "lull:"})
		fmt.Fprintln(a.streams.err, exit.err) // an error may have several lines
	}
	return exit.code
}
