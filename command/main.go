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
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/lullhq/lull/internal/terminal"
)

// app has what all commands share: where they read and write, and which stack they talk to.
type app struct {
	in       io.Reader
	out, err *terminal.Writer                          // both escape what a sender may have chosen
	aws      func(context.Context) (aws.Config, error) // endpoint, region and credentials as the SDK finds them

	target target
	look   look
	meter  *awsMeter     // of the deployed stack; nil before it is opened
	logs   time.Duration // how far back explain reads the functions' logs, 0 for not at all
	// saving says that a data folder is to be saved: a second Ctrl-C must not end the process before
	saving  atomic.Bool
	release func() // lets the next Ctrl-C end the process at once
}

func newApp(in io.Reader, out, err io.Writer) *app {
	load := func(ctx context.Context) (aws.Config, error) { return awsconfig.LoadDefaultConfig(ctx) }
	return &app{
		in: in, out: terminal.NewWriter(out), err: terminal.NewWriter(err), aws: load, release: func() {},
		target: target{dev: "http://" + defaultListen, config: defaultFile, output: "table"},
		look:   look{colour: colourAuto},
	}
}

// Main runs the program: it reads the process's arguments and input, and ends the process with the
// command's exit code. It does not return.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	a.release = stop
	context.AfterFunc(ctx, func() {
		if !a.saving.Load() {
			stop() // the second Ctrl-C ends at once
		}
	})
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(int(code))
}

// saved says that no data folder is to be saved any more.
func (a *app) saved() {
	a.saving.Store(false)
	a.release()
}

// run is the program: it prints what went wrong and returns the exit code.
func (a *app) run(ctx context.Context, args []string) exitCode {
	root := a.command()
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for the process's own
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{exitUsage, err} // cobra's own: an unknown command or flag
	}
	if exit.err != nil {
		terminal.Printf(a.err, "%s ", terminal.Styled{Style: terminal.Red, Text: "lull:"})
		fmt.Fprintln(a.err, exit.err) // an error may have several lines
	}
	return exit.code
}
